/**
 * A change of a sandbox as a tree on a commit of the real repository. The sandbox began with what lay in the folder, uncommitted
 * edits of the user included; where it changed a file that the user had edited, only its own part goes on the commit.
 */
import { mergeTrees, type Conflict, type StoredFile } from "../../machine/merge/merge.ts";
import type { GitStore } from "../../machine/merge/store.ts";
import type { MergedChange } from "../../machine/merge/three-way.ts";
import { filesOf, isSame, treeWith } from "./index-file.ts";
import { withCommittedLineEnds } from "./line-ends.ts";
import { locate, type LocatedChange } from "./located-changes.ts";
import { requirePlainPaths, requireUnfiltered, requireUnfilteredByUser } from "./refusals.ts";
import type { Identity, ProjectGit } from "./project-git.ts";

export interface ChangeRequest {
  readonly parent: string;
  /** From the sandbox's base to its promotable state; paths are relative to the project. */
  readonly changes: readonly MergedChange[];
  /** Folder with the contents of both sides. */
  readonly contents: string;
}

export interface ChangedTree {
  readonly tree: string;
  /** Every path of the change, in the repository, as latin1. */
  readonly paths: ReadonlySet<string>;
  /** Of these, what the user had edited without committing. */
  readonly edited: ReadonlySet<string>;
  /** Of the parent. */
  readonly files: ReadonlyMap<string, StoredFile>;
  /** Not empty: the tree holds conflict markers, and is no answer. */
  readonly conflicts: readonly Conflict[];
}

const OURS = "committed";
const THEIRS = "sandbox";

export async function changeOnParent(store: GitStore, project: ProjectGit, prefix: Buffer, request: ChangeRequest): Promise<ChangedTree> {
  const { parent, contents } = request;
  const files = await filesOf(store, parent);
  const seen = await locate(store, prefix, request.changes, contents);
  requirePlainPaths(seen, files);
  await requireUnfilteredByUser(project, prefix, seen);
  await treeWith(store, parent, []);
  await requireUnfiltered(store, seen);
  const isEdited = ({ path, from }: LocatedChange): boolean => !isSame(files.get(path.toString("latin1")), from);
  const other = await withCommittedLineEnds(store, contents, seen.filter(isEdited), files);
  const changes = [...seen.filter((change) => !isEdited(change)), ...other];
  const edited = other.filter(isEdited);
  const { tree, conflicts } =
    edited.length === 0 ? { tree: await treeWith(store, parent, changes), conflicts: [] } : await merge(store, parent, changes, edited);
  if (conflicts.length === 0) {
    await treeWith(store, tree, []);
    await requireUnfiltered(store, changes);
  }
  const keys = (list: readonly LocatedChange[]): Set<string> => new Set(list.map(({ path }) => path.toString("latin1")));
  return { tree, paths: keys(changes), edited: keys(edited), files, conflicts };
}

/** The common base is the commit with the user's edits of exactly these paths; git then takes them out again. */
async function merge(store: GitStore, parent: string, changes: readonly LocatedChange[], edited: readonly LocatedChange[]) {
  const baseTree = await treeWith(
    store,
    parent,
    edited.map(({ path, from }) => ({ path, to: from })),
  );
  const theirTree = await treeWith(store, baseTree, changes);
  const { stdout } = await store.git(["rev-parse", "--verify", "--end-of-options", `${parent}^{tree}`]);
  const base = await commitTree(store, { tree: baseTree, parents: [], message: "base\n" });
  for (const [name, tree] of [[OURS, stdout.toString().trim()] as const, [THEIRS, theirTree] as const]) {
    const commit = await commitTree(store, { tree, parents: [base], message: `${name}\n` });
    await store.git(["update-ref", `refs/heads/${name}`, commit]);
  }
  return mergeTrees(store, OURS, THEIRS);
}

export interface CommitRequest {
  readonly tree: string;
  readonly parents: readonly string[];
  readonly message: string;
  readonly author?: Identity;
  /** When it was written, as git reads it; now if left out. */
  readonly date?: string;
  readonly committer?: Identity;
}

const VIVARIUM: Identity = { name: "vivarium", email: "vivarium" };

export async function commitTree(store: GitStore, request: CommitRequest): Promise<string> {
  const { tree, parents, message, author = VIVARIUM, date, committer = author } = request;
  const env = {
    GIT_AUTHOR_NAME: author.name,
    GIT_AUTHOR_EMAIL: author.email,
    ...(date === undefined ? {} : { GIT_AUTHOR_DATE: date }),
    GIT_COMMITTER_NAME: committer.name,
    GIT_COMMITTER_EMAIL: committer.email,
  };
  const args = ["commit-tree", ...parents.flatMap((parent) => ["-p", parent]), "-F", "-", tree];
  const { stdout } = await store.git(args, { env, input: [Buffer.from(message)] });
  return stdout.toString().trim();
}
