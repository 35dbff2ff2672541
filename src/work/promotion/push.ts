/** Pushes one branch with the user's own git and logins, outside every sandbox. Nothing is forced, no hook runs, no question is asked. */
import { realpath } from "node:fs/promises";
import { resolve } from "node:path";
import { withoutLogin } from "../../machine/capture/addresses.ts";
import { VivError } from "../../base/schema/errors.ts";
import { requireBranchName } from "./branch-name.ts";
import { withTemporaryRepository, type TemporaryRepository } from "./temporary-repository.ts";
import { lastLine, ProjectGit } from "./project-git.ts";
import { folderOf, isRemoteName, repositoryOf, requireRemoteAddress, type ForgeRepository } from "./remote.ts";

export interface PushRequest {
  /** The project's real folder. */
  readonly project: string;
  /** A remote of the repository, or an address. */
  readonly remote: string;
  readonly branch: string;
  readonly variables?: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface PushResult {
  /** Where it went, without a login. */
  readonly address: string;
  /** What that is on a forge; undefined where it is none. */
  readonly repository: ForgeRepository | undefined;
  readonly branch: string;
  readonly commit: string;
  /** The remote had it already. */
  readonly unchanged: boolean;
}

const TIMEOUT_MS = 5 * 60_000;
const SETTINGS = [
  "push.followTags=false",
  "push.gpgSign=false",
  "push.recurseSubmodules=no",
  "push.autoSetupRemote=false",
  "credential.interactive=false",
  "submodule.recurse=false",
];
/** What git may speak with a remote. */
export const REMOTE_PROTOCOLS = { GIT_ALLOW_PROTOCOL: "https:http:ssh:file" };

export async function push(request: PushRequest): Promise<PushResult> {
  const { remote, branch } = request;
  await requireBranchName(branch);
  if (!isRemoteName(remote)) requireRemoteAddress(remote);
  const project = await ProjectGit.open(request.project, request.variables);
  const commit = await project.branch(branch);
  if (commit === undefined) throw new VivError("not_found", `There is no branch ${branch}.`, { remedy: "Look at `git branch`." });
  return withTemporaryRepository(project, { branch, commit, remote }, (temporary) => pushFrom(request, project, temporary, commit));
}

async function pushFrom(request: PushRequest, project: ProjectGit, temporary: TemporaryRepository, commit: string): Promise<PushResult> {
  const { remote, branch, timeoutMs = TIMEOUT_MS } = request;
  const address = await addressOf(project, temporary, remote);
  const ref = `refs/heads/${branch}`;
  const args = [
    "push",
    "--porcelain",
    "--no-verify",
    "--no-follow-tags",
    "--no-signed",
    "--recurse-submodules=no",
    "--no-thin",
    "--end-of-options",
    remote,
    `${ref}:${ref}`,
  ];
  const env = { ...temporary.env, ...REMOTE_PROTOCOLS, ...sshOf(temporary) };
  const settings = { timeoutMs, env, ...(request.signal === undefined ? {} : { signal: request.signal }) };
  const { code, stdout, stderr } = await project.asUser([...SETTINGS.flatMap((setting) => ["-c", setting]), ...args], settings);
  const row =
    stdout
      .toString()
      .split("\n")
      .find((line) => line.includes(`\t${ref}:${ref}\t`)) ?? "";
  if (code !== 0) throw refusal({ remote: isRemoteName(remote) ? remote : shown(address), branch, row, stderr });
  return { address: shown(address), repository: repositoryOf(address), branch, commit, unchanged: row.startsWith("=") };
}

/** The address that git pushes to, after the user's own rewriting; refused if git may not go there. */
export async function addressOf(project: ProjectGit, { env }: TemporaryRepository, remote: string): Promise<string> {
  const isName = isRemoteName(remote);
  const args = isName
    ? ["remote", "get-url", "--push", "--all", "--end-of-options", remote]
    : ["ls-remote", "--get-url", "--end-of-options", remote];
  const { code, stdout } = await project.ask(args, { userSettings: true, env });
  const addresses = stdout
    .toString()
    .split("\n")
    .filter((line) => line !== "");
  const [address] = addresses;
  if (code !== 0 || address === undefined)
    throw new VivError("not_found", `The repository has no remote ${remote}.`, { remedy: "Look at `git remote -v`." });
  for (const each of addresses) {
    requireRemoteAddress(each);
    await requireElsewhere(project.folder, each);
  }
  return isName ? address : remote;
}

/** The hooks of a repository that is pushed to run here if it is a folder; those of a folder in the project came with the project. */
async function requireElsewhere(project: string, address: string): Promise<void> {
  const folder = folderOf(address);
  if (folder === undefined) return;
  // As git walks it: `..` behind a link is not where the text says, and git tries these endings.
  const walked = folder.startsWith("/") ? folder : `${project}/${folder}`;
  const found = await Promise.all(["", "/.git", ".git", ".git/.git"].map((end) => realpath(walked + end).catch(() => undefined)));
  if (![resolve(project, folder), ...found].some((path) => path !== undefined && isBelow(path, project))) return;
  throw new VivError("invalid_input", "The remote's address is refused: it is a folder of the project itself.", {
    remedy: "Push to a repository outside the project.",
  });
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

/** Without a terminal ssh would still look for one; the user's own ssh command stays as it is. */
export function sshOf({ user }: TemporaryRepository): Record<string, string> {
  return user.some(({ key }) => key === "core.sshcommand") ? {} : { GIT_SSH_COMMAND: "ssh -o BatchMode=yes" };
}

interface RefusedPush {
  readonly remote: string;
  readonly branch: string;
  /** Git's row about the branch: a flag, the refs, and why. */
  readonly row: string;
  readonly stderr: string;
}

/** What git or a config said, without logins. */
export function shown(text: string): string {
  return withoutLogin(text) ?? "what it said may hold a login and is not shown";
}

function refusal({ remote, branch, row, stderr }: RefusedPush): VivError {
  const why = shown(row.split("\t").at(-1) ?? "").trim();
  if (/non-fast-forward|fetch first|stale info/.test(why))
    return new VivError("push_refused", `${remote} has commits on ${branch} that are not in it here, and nothing is forced.`, {
      remedy: "Use another branch name, or bring the remote's commits in first.",
    });
  if (row.startsWith("!")) return new VivError("push_refused", `${remote} refused ${branch}: ${why}.`);
  const said = shown(lastLine(stderr)) || "git did not say why";
  if (/could not read (Username|Password)|Authentication failed|Permission denied|terminal prompts disabled|403|401/i.test(stderr))
    return new VivError("push_refused", `${remote} did not accept your login: ${said}.`, {
      remedy: "Push once with your own git, so that a credential helper or ssh agent knows the login.",
    });
  return new VivError("push_refused", `${branch} could not be pushed to ${remote}: ${said}.`, {
    remedy: "Check the remote's address and your connection; the branch is kept here.",
  });
}
