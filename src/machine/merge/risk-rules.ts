/** Paths whose content runs by itself, or steers what does, once it lies in a project on a real machine. */

interface PathRule {
  readonly pattern: RegExp;
  readonly why: string;
}

/** Matched against the lower-case path. */
export const RUNS_BY_ITSELF: readonly PathRule[] = [
  { pattern: /(^|\/)\.envrc$/, why: "direnv runs it when a person enters the folder." },
  { pattern: /(^|\/)\.(vscode|idea|fleet|zed)\//, why: "Editors run tasks and settings from it when the project is opened." },
  { pattern: /\.code-workspace$/, why: "Editors run tasks and settings from it when the project is opened." },
  { pattern: /(^|\/)\.devcontainer(\/|\.json$)/, why: "Editors build and run it when the project is opened." },
  {
    pattern: /(^|\/)\.(claude|codex|opencode|cursor|gemini|aider|windsurf|continue|roo|kilocode)(\/|$)/,
    why: "Coding agents take commands and hooks from it.",
  },
  {
    pattern: /(^|\/)(\.mcp\.json|opencode\.jsonc?|\.cursorrules|\.windsurfrules|\.aider\.conf\.yml)$/,
    why: "Coding agents take commands from it.",
  },
  { pattern: /(^|\/)(agents|claude|gemini|copilot-instructions)(\.local)?\.md$/, why: "Coding agents follow it as instructions." },
  { pattern: /(^|\/)\.(husky|githooks|git-hooks|hooks)\//, why: "Git runs it as a hook." },
  {
    pattern: /(^|\/)(lefthook|\.lefthook|\.pre-commit-config|\.overcommit)[^/]*\.(ya?ml|toml|json)$/,
    why: "Git runs what it names as hooks.",
  },
  {
    pattern: /(^|\/)\.?(npmrc|yarnrc|yarnrc\.yml|pnpmfile\.cjs|pnpm-workspace\.yaml)$/,
    why: "Package managers take settings and scripts from it.",
  },
  { pattern: /(^|\/)\.yarn\//, why: "The package manager itself lies in it." },
  { pattern: /(^|\/)(gnu)?makefile(\.\w+)?$|\.mk$/, why: "make runs it." },
  {
    pattern: /(^|\/)(justfile|\.justfile|taskfile[^/]*\.ya?ml|rakefile|gemfile|build\.rs|setup\.py|noxfile\.py|tasks\.py|dodo\.py)$/,
    why: "Build tools run it.",
  },
  {
    pattern:
      /(^|\/)(build\.gradle(\.kts)?|settings\.gradle(\.kts)?|gradlew(\.bat)?|mvnw(\.cmd)?|build\.sbt|cmakelists\.txt|meson\.build|configure|binding\.gyp)$/,
    why: "Build tools run it.",
  },
  { pattern: /(^|\/)gradle\/wrapper\//, why: "Build tools run it." },
  {
    pattern: /(^|\/)\.(github|gitea|forgejo|gitlab|circleci|buildkite|woodpecker|drone)\//,
    why: "Continuous integration runs it, with its secrets.",
  },
  {
    pattern:
      /(^|\/)(\.gitlab-ci|\.travis|\.drone|\.woodpecker|azure-pipelines|bitbucket-pipelines|appveyor|cloudbuild|buildspec)[^/]*\.ya?ml$/,
    why: "Continuous integration runs it, with its secrets.",
  },
  { pattern: /(^|\/)jenkinsfile$/, why: "Continuous integration runs it, with its secrets." },
  { pattern: /(^|\/)(dockerfile|containerfile)([.-][^/]*)?$|\.dockerfile$/, why: "Container tools build and run it." },
  { pattern: /(^|\/)(docker-)?compose[^/]*\.ya?ml$/, why: "Container tools run it, with access to what it names." },
  { pattern: /(^|\/)(conftest|sitecustomize|usercustomize)\.py$|\.pth$/, why: "Python runs it without being asked." },
  { pattern: /(^|\/)(vagrantfile|procfile|\.procfile)$/, why: "Tools run it." },
  { pattern: /(^|\/)\.cargo\//, why: "cargo takes runners and wrappers from it." },
  { pattern: /(^|\/)\.(ssh|gnupg|aws|kube|docker|config|local)\//, why: "Programs take settings and logins from it." },
];

export const GIT_PATHS: readonly PathRule[] = [
  { pattern: /(^|\/)\.gitattributes$/, why: "It makes git run filters and drivers." },
  { pattern: /(^|\/)\.(gitconfig|lfsconfig)$/, why: "Git may take settings from it." },
];

export const SUBMODULES = { pattern: /(^|\/)\.gitmodules$/, why: "It names repositories that git fetches." } as const;

/** Dotfiles that nothing runs. */
const HARMLESS_DOTFILES =
  /^\.(gitignore|gitkeep|keep|editorconfig|nvmrc|node-version|python-version|ruby-version|tool-versions|dockerignore|npmignore|eslintignore|prettierignore|mailmap)$/;

/** Notes of what agents leave for later, by the names that the server gives them. */
const BACKLOG_NOTES = /^\.tasks\/tsk[0-9a-z]{26}\.md$/;

/** Whether a file or a folder on its way begins with a dot, which programs read without being asked. */
export function isRunningDotfile(path: string): boolean {
  return !BACKLOG_NOTES.test(path) && path.split("/").some((part) => part.startsWith(".") && !HARMLESS_DOTFILES.test(part));
}
