/**
 * A change as a new branch of the real repository (PROM-6). Everything is built in a store of ours that reads the repository's
 * objects; then the new objects go over, and the branch appears. Checkout, index, HEAD and stash are never touched.
 */
import type { Conflict } from "../../machine/merge/merge.ts";
import { writeContents } from "../../machine/merge/contents.ts";
import { GitStore } from "../../machine/merge/store.ts";
import { differences, type MergedChange } from "../../machine/merge/three-way.ts";
import { VivError } from "../../base/schema/errors.ts";
import { requireBranchName } from "./branch-name.ts";
import { commitMessage, statLines, type CheckLine } from "./commit-message.ts";
import { changeOnParent, commitTree, type ChangedTree, type ChangeRequest } from "./commit.ts";
import { keepCommits, type KeptCommit, type RunInside } from "./keep-commits.ts";
import { lastLine, ProjectGit, type Identity } from "./project-git.ts";

export interface BranchRequest extends ChangeRequest {
  /** The project's real folder. */
  readonly project: string;
  /** A folder of ours for what is built. */
  readonly temporary: string;
  readonly branch: string;
  readonly message: string;
  readonly checks?: readonly CheckLine[];
  /** As in a trailer: `Name <address>`. */
  readonly coAuthor?: string;
  /** Replays the commits that were made inside the sandbox, which runs git for that. */
  readonly keepCommits?: RunInside;
  /** The environment of the user whom the server works for. */
  readonly variables?: Readonly<Record<string, string | undefined>>;
}

export interface BranchCommits {
  readonly outcome: "ready";
  readonly branch: string;
  /** The last one; its tree is the parent's with the change. */
  readonly commit: string;
  /** The commits made inside that were replayed, oldest first; empty where one commit holds it all. */
  readonly kept: readonly KeptCommit[];
  /** What the user should know about replayed commits, in sentences. */
  readonly notes: readonly string[];
}

/** The merged state with its conflicts marked, as changes of the parent's tree; paths are relative to the project. */
export interface BranchConflict {
  readonly outcome: "conflict";
  readonly conflicts: readonly Conflict[];
  readonly changes: readonly MergedChange[];
  /** Folder with their contents, until `close`. */
  readonly contents: string;
  close(): Promise<void>;
}

/** The commits exist in the store alone until `publish`. */
export interface PreparedBranch extends BranchCommits {
  publish(): Promise<void>;
  close(): Promise<void>;
}

const OBJECT_ID = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
/** As many objects as git itself leaves loose after a fetch. */
const MOST_LOOSE_OBJECTS = 100;

/** The caller closes what it gets. */
export async function prepareBranch(request: BranchRequest): Promise<PreparedBranch | BranchConflict> {
  const { branch, parent, temporary } = request;
  await requireBranchName(branch);
  const project = await ProjectGit.open(request.project, request.variables);
  const repository = await project.repository();
  await requireParent(project, parent);
  await requireFree(project, branch);
  const user = await project.identity();
  const store = await GitStore.open(temporary, { borrowed: repository });
  try {
    const changed = await changeOnParent(store, project, repository.prefix, request);
    if (changed.conflicts.length > 0) return await conflictIn(store, parent, repository.prefix, changed);
    const commits = await makeCommits(store, request, changed, user);
    const publish = (): Promise<void> => publishCommits({ store, project, branch, parent, commit: commits.commit, user });
    return { outcome: "ready", branch, ...commits, publish, close: () => store.close() };
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function conflictIn(store: GitStore, parent: string, prefix: Buffer, { tree, conflicts }: ChangedTree): Promise<BranchConflict> {
  const changes = (await differences(store, `${parent}^{tree}`, tree))
    .filter(({ path }) => path.subarray(0, prefix.length).equals(prefix))
    .map((change) => ({ ...change, path: change.path.subarray(prefix.length) }));
  const contents = await store.place("marked");
  const files = changes.flatMap((change) => change.new?.id ?? []);
  await writeContents(store, files, contents);
  return { outcome: "conflict", conflicts, changes, contents, close: () => store.close() };
}

async function requireParent(project: ProjectGit, parent: string): Promise<void> {
  const known = OBJECT_ID.test(parent) && (await project.ask(["cat-file", "-t", parent])).stdout.toString().trim() === "commit";
  if (!known) throw new VivError("not_found", "The commit that the sandbox began with is not in the repository any more.");
}

async function requireFree(project: ProjectGit, branch: string): Promise<void> {
  if ((await project.branch(branch)) !== undefined) throw await taken(project, branch);
  const { stdout } = await project.ask(["symbolic-ref", "--quiet", "HEAD"]);
  if (stdout.toString().trim() === `refs/heads/${branch}`)
    throw new VivError("exists", `${branch} is the branch that is checked out, and has no commit yet.`, { remedy: "Choose another name." });
}

async function taken(project: ProjectGit, branch: string): Promise<VivError> {
  let number = 2;
  while ((await project.branch(`${branch}-${number}`)) !== undefined) number += 1;
  return new VivError("exists", `There is a branch ${branch} already, and it is never overwritten.`, {
    remedy: `Use another name, such as ${branch}-${number}, or remove the branch with \`git branch -D ${branch}\`.`,
  });
}

type Commits = Pick<BranchCommits, "commit" | "kept" | "notes">;

async function makeCommits(store: GitStore, request: BranchRequest, changed: ChangedTree, user: Identity): Promise<Commits> {
  const { parent, checks = [], coAuthor } = request;
  const { stdout } = await store.git(["rev-parse", "--verify", "--end-of-options", `${parent}^{tree}`]);
  if (stdout.toString().trim() === changed.tree)
    throw new VivError("invalid_input", "There is nothing to commit: the commit that the sandbox began with has all of it.", {
      remedy: "Look at `viv diff SANDBOX`.",
    });
  const replay =
    request.keepCommits === undefined
      ? { tip: parent, tree: "", kept: [], notes: [] }
      : await keepCommits({ store, run: request.keepCommits, parent, changed, user, coAuthor });
  const { tip, kept, notes } = replay;
  if (replay.tree === changed.tree) return { commit: tip, kept, notes };
  const stat = await statLines(store, tip, changed.tree);
  const message = commitMessage({ message: request.message, stat, checks, coAuthor });
  const commit = await commitTree(store, { tree: changed.tree, parents: [tip], message, author: user });
  const rest = kept.length === 0 ? [] : ["What the commits made inside do not hold is in a last commit of its own."];
  return { commit, kept, notes: [...notes, ...rest] };
}

interface Publication {
  readonly store: GitStore;
  readonly project: ProjectGit;
  readonly branch: string;
  readonly parent: string;
  readonly commit: string;
  readonly user: Identity;
}

async function publishCommits({ store, project, branch, parent, commit, user }: Publication): Promise<void> {
  const range = [Buffer.from(`${commit}\n^${parent}\n`)];
  const { stdout } = await store.git(["rev-list", "--objects", commit, `^${parent}`]);
  const count = stdout.toString("latin1").split("\n").length - 1;
  const pack = store.stream(["-c", "pack.compression=-1", "pack-objects", "--revs", "--stdout", "--quiet", "--delta-base-offset"], range);
  const take = count > MOST_LOOSE_OBJECTS ? ["index-pack", "--stdin"] : ["unpack-objects", "-q"];
  const taking = await project.ask(take, { input: pack });
  if (taking.code !== 0) throw new VivError("internal", `The repository did not take the new objects: ${lastLine(taking.stderr)}.`);
  const env = { GIT_COMMITTER_NAME: user.name, GIT_COMMITTER_EMAIL: user.email };
  const args = ["update-ref", "-m", "viv promote: branch made", `refs/heads/${branch}`, commit, "0".repeat(commit.length)];
  const made = await project.ask(args, { env });
  if (made.code === 0) return;
  if ((await project.branch(branch)) !== undefined) throw await taken(project, branch);
  throw new VivError("exists", `The branch ${branch} can't be made: ${lastLine(made.stderr)}.`, {
    remedy: "Choose another name: a branch can't lie below one that exists.",
  });
}

/** Takes a branch away that is still on this commit and that is not checked out; false if it stays. */
export async function removeBranch(folder: string, branch: string, commit: string): Promise<boolean> {
  await requireBranchName(branch);
  const project = await ProjectGit.open(folder);
  const { stdout } = await project.ask(["worktree", "list", "--porcelain", "-z"]);
  if (stdout.toString().split("\0").includes(`branch refs/heads/${branch}`)) return false;
  const { code } = await project.ask(["update-ref", "-d", `refs/heads/${branch}`, commit]);
  return code === 0;
}
