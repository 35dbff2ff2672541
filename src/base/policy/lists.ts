/** The lists that levels are made of. */
import type { PolicyRule, Verdict } from "../schema/policy.ts";

type Patterns = Readonly<Record<string, Verdict>>;

export function withVerdict(verdict: Verdict, patterns: readonly string[]): Patterns {
  return Object.fromEntries(patterns.map((pattern) => [pattern, verdict]));
}

/** Programs with any arguments. */
function programs(text: string): string[] {
  return text
    .trim()
    .split(/\s+/)
    .map((name) => `${name} *`);
}

/** Privileged programs, system services, ways around the walls, and what formats disks. */
export const BLOCKED = [
  ...programs(
    "docker docker-compose dockerd nerdctl podman systemd-run sudo doas su pkexec runuser ssh sshd telnet nc ncat netcat socat systemctl service initctl",
  ),
  ...programs("mount umount losetup insmod rmmod modprobe iptables ip6tables nft ufw reboot shutdown halt poweroff init telinit"),
  ...programs("chroot nsenter unshare setpriv capsh fdisk parted sfdisk mkswap swapon swapoff useradd usermod userdel groupadd"),
  ...programs("passwd chpasswd visudo crontab at batch sysctl kexec nmap tcpdump format gosu su-exec"),
  "mkfs*",
];

/** Programs that look at things. */
export const READING = programs(
  "ls cat head tail wc grep egrep fgrep rg ag find fd tree stat file du df pwd which whereis type whoami id date uname hostname echo printf true false test [ diff cmp comm sort uniq cut tr nl od xxd hexdump strings basename dirname realpath readlink seq sleep column fold paste join rev tac md5sum sha1sum sha256sum jq yq less more man ps env printenv expr bc cal getconf nproc arch locale tty read",
).concat(["node --version", "node -v", "python --version", "python3 --version", "python -V", "python3 -V"]);
/** Programs that work on files. */
export const FILES = programs(
  "cp mv mkdir touch ln tee sed awk gawk tar zip unzip gzip gunzip bzip2 xz zstd truncate install rsync patch split dd chmod",
);
export const DELETING = programs("rm rmdir unlink shred trash srm");

/** Building, testing and formatting. */
export const BUILDING = programs(
  "npm pnpm yarn bun make cmake ninja cargo rustc rustfmt go gofmt gcc g++ clang cc tsc tsx eslint prettier oxlint oxfmt biome vitest jest mocha pytest tox ruff black mypy flake8 mvn gradle javac java dotnet swift mix rake rspec composer phpunit",
).concat(
  ["python -m pytest *", "python3 -m pytest *", ".venv/bin/pytest *", "node_modules/.bin/*", "./node_modules/.bin/*"],
  programs("vitest jest eslint prettier tsc tsx mocha biome oxlint oxfmt").flatMap((name) => [`npx ${name}`, `npm exec ${name}`]),
);
export const INTERPRETERS = programs(
  "python python3 node deno ruby perl php lua Rscript julia pip pip3 uv poetry bundle gem npx uvx bash sh source .",
).concat([".venv/bin/*", "venv/bin/*"]);
export const CALLING = programs("curl wget http https xh");
const GIT_LOOKING = [
  "git status *",
  "git diff *",
  "git log *",
  "git show *",
  "git blame *",
  ...["", " -a", " -r", " -v", " -vv", " --show-current", " --list *"].map((rest) => `git branch${rest}`),
  ...["", " -l *", " --list *"].map((rest) => `git tag${rest}`),
  "git config --get *",
  "git config --list *",
  "git shortlog *",
  "git worktree list *",
  "git rev-parse *",
  "git ls-files *",
  "git grep *",
  "git describe *",
  "git remote -v",
];
export const GIT_READING = GIT_LOOKING.flatMap((pattern) => [pattern, pattern.replace(/^git /, "git --no-pager ")]);
export const GIT_WORKING = [
  "git add *",
  "git commit *",
  "git stash *",
  "git checkout *",
  "git switch *",
  "git restore *",
  "git merge *",
  "git mv *",
];
export const GIT_SENDING = [
  "git push *",
  "git subtree push *",
  "git lfs push *",
  "git svn dcommit *",
  "git p4 submit *",
  "git send-pack *",
  "git http-push *",
];
/** What git can't bring back, or sends out. */
export const GIT_RISKY = [
  ...GIT_SENDING,
  "git rm *",
  "git clean *",
  "git reset --hard *",
  "git checkout -- *",
  "git checkout .",
  "git restore *",
  "git branch -D *",
  "git branch -d *",
  "git stash drop *",
  "git stash clear *",
  "git filter-branch *",
  "git rebase *",
  "git gc *",
  "git reflog *",
  "git update-ref *",
  "git remote add *",
  "git remote set-url *",
  "git config *",
];
export const PUBLISHING = [
  "npm pub*",
  "npm publish *",
  "npm unp*",
  "npm unpublish *",
  "npm login *",
  "npm token *",
  "npm owner *",
  "npm access *",
  "npm deprecate *",
  "npm dist-tag *",
  "pnpm publish *",
  "yarn publish *",
  "yarn npm *",
  "cargo publish *",
  "cargo login *",
  "gem push *",
  "twine *",
  "poetry publish *",
  "uv publish *",
  "bun publish *",
  "deno publish *",
  "mvn deploy *",
  "gradle publish*",
  "dotnet nuget push *",
  "python -m twine *",
  "python3 -m twine *",
  "gh *",
];
/** Changes package.json and its like. */
export const DEPENDENCIES = [
  ...["install", "i", "add", "uninstall", "remove", "rm", "un", "update", "up", "link", "pkg", "init", "version", "config", "set"].flatMap(
    (word) => [`npm ${word} *`, `pnpm ${word} *`, `yarn ${word} *`, `bun ${word} *`],
  ),
  // They fetch a package and run it.
  ...["npm exec", "npm x", "npm create", "npm innit", "pnpm dlx", "pnpm create", "yarn dlx", "yarn create", "bun x", "bun create"].map(
    (words) => `${words} *`,
  ),
  "cargo add *",
  "cargo remove *",
  "go get *",
  "poetry add *",
  "uv add *",
];
/** Installs what the project already names. */
export const INSTALLS = ["npm install", "npm i", "npm ci", "npm ci *", "pnpm install", "pnpm i", "yarn install", "bun install"];

/** Files that say how the project is built, checked and automated. */
export const PROJECT_CONFIGURATION = [
  "package.json",
  "*/package.json",
  "*package-lock.json",
  "*pnpm-lock.yaml",
  "*pnpm-workspace.yaml",
  "*yarn.lock",
  "*bun.lock*",
  "*tsconfig*.json",
  "*.config.js",
  "*.config.cjs",
  "*.config.mjs",
  "*.config.ts",
  "*pyproject.toml",
  "*setup.py",
  "*setup.cfg",
  "*requirements*.txt",
  "*Cargo.toml",
  "*Cargo.lock",
  "*go.mod",
  "*go.sum",
  "*Gemfile*",
  "*composer.json",
  "*pom.xml",
  "*build.gradle*",
  "*Makefile",
  "*CMakeLists.txt",
  "*Dockerfile*",
  "*docker-compose*",
  "*.gitlab-ci.yml",
  ".github/*",
  ".git/*",
  ".gitmodules",
  ".gitattributes",
  ".husky/*",
  ".vscode/*",
  ".claude/*",
  ".codex/*",
  ".opencode/*",
  "opencode.json*",
  "vivarium.json",
  "*AGENTS.md",
  "*CLAUDE.md",
  "*.npmrc",
  "*.env",
  "*.env.*",
];

/** Deleting these ends the system or the home. */
const PRECIOUS = [
  "/",
  "/bin",
  "/boot",
  "/dev",
  "/etc",
  "/home",
  "/lib",
  "/lib64",
  "/opt",
  "/proc",
  "/root",
  "/sbin",
  "/srv",
  "/sys",
  "/usr",
  "/var",
  "~",
];
export const DELETES_PRECIOUS = withVerdict("deny", [
  ...PRECIOUS,
  ...["/bin", "/boot", "/dev", "/etc", "/lib", "/sbin", "/sys", "/usr"].map((path) => `${path}/*`),
]);

/** Where packages come from. */
export const PACKAGE_HOSTS = [
  "registry.npmjs.org",
  "registry.yarnpkg.com",
  "pypi.org",
  "files.pythonhosted.org",
  "crates.io",
  "*.crates.io",
  "proxy.golang.org",
  "sum.golang.org",
  "rubygems.org",
  "deb.debian.org",
  "archive.ubuntu.com",
  "security.debian.org",
];

/** Well-known packages that are installed without a question. */
export const SAFE_PACKAGES: PolicyRule = {
  "*": "ask",
  ...withVerdict(
    "allow",
    (
      "pandas numpy scipy matplotlib seaborn scikit-learn pillow requests httpx beautifulsoup4 lxml openpyxl xlsxwriter xlrd pyyaml " +
      "python-dateutil pytz tqdm rich click pydantic jinja2 flask fastapi uvicorn sqlalchemy polars pyarrow plotly statsmodels sympy " +
      "networkx nltk pytest pytest-cov ruff black mypy flake8 isort tox coverage reportlab pypdf python-docx python-pptx opencv-python " +
      "typescript eslint prettier vitest jest mocha chai tsx ts-node @types/node lodash express axios zod react react-dom vue svelte " +
      "vite webpack esbuild rollup dayjs date-fns uuid chalk commander yargs dotenv sharp csv-parse papaparse cheerio pdfkit exceljs " +
      "nodemon rimraf cross-env glob fs-extra semver ws undici pip setuptools wheel tsc playwright @playwright/test prisma next nx turbo storybook knip biome " +
      "@biomejs/biome oxlint oxfmt tailwindcss drizzle-kit serve http-server cypress ava tap c8 nyc husky lint-staged concurrently"
    ).split(" "),
  ),
};
