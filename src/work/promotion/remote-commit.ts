/** The commit that a branch of a remote has, asked with the user's own git and logins. Nothing of the project's settings counts but the address. */
import { VivError } from "../../base/schema/errors.ts";
import { lastLine, ProjectGit } from "./project-git.ts";
import { addressOf, REMOTE_PROTOCOLS, shown, sshOf } from "./push.ts";
import { isRemoteName, requireRemoteAddress } from "./remote.ts";
import { withTemporaryRepository } from "./temporary-repository.ts";

export interface RemoteBranch {
  /** The project's real folder. */
  readonly project: string;
  /** A remote of the repository, or an address. */
  readonly remote: string;
  readonly branch: string;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export async function remoteCommit({ remote, branch, timeoutMs, signal, ...request }: RemoteBranch): Promise<string> {
  if (!isRemoteName(remote)) requireRemoteAddress(remote);
  const project = await ProjectGit.open(request.project, request.variables);
  return withTemporaryRepository(project, { remote }, async (temporary) => {
    const address = shown(await addressOf(project, temporary, remote));
    const env = { ...temporary.env, ...REMOTE_PROTOCOLS, ...sshOf(temporary) };
    const args = ["-c", "credential.interactive=false", "ls-remote", "--end-of-options", remote, `refs/heads/${branch}`];
    const { code, stdout, stderr } = await project.asUser(args, { timeoutMs, env, signal });
    if (code !== 0) throw new VivError("clone_failed", `${address} does not answer: ${shown(lastLine(stderr)) || "git did not say why"}.`);
    const commit = /^([0-9a-f]{40,64})\t/.exec(stdout.toString())?.[1];
    if (commit === undefined) throw new VivError("ref_not_found", `${address} has no branch ${branch}.`);
    return commit;
  });
}
