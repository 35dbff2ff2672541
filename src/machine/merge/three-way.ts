/** Merges what a sandbox changed with what changed in reality since. Only changed files are looked at, whatever the project's size. */
import { randomBytes } from "node:crypto";
import type { ChangeSet } from "./change-set.ts";
import { foldersAbove } from "./folders.ts";
import { mergeTrees, type Conflict, type StoredFile } from "./merge.ts";
import type { GitStore, TreeEntry } from "./store.ts";

/** One side of a merge: its name in conflict markers, and its changes since the common base. */
export interface MergeSide {
  readonly label: string;
  readonly changes: ChangeSet;
}

/** What must change on our side to become the merged state. */
export interface MergedChange {
  readonly path: Buffer;
  readonly old: StoredFile | null;
  readonly new: StoredFile | null;
}

export interface ThreeWay {
  readonly changes: readonly MergedChange[];
  readonly conflicts: readonly Conflict[];
}

const SLASH = 0x2f;

/** Both sides come from the same base. The store keeps every content that is named in the answer. */
export async function mergeSides(store: GitStore, ours: MergeSide, theirs: MergeSide): Promise<ThreeWay> {
  const marker = new FolderMarkers(ours.changes, theirs.changes);
  const base = new Map([...sideOf(ours.changes, "old"), ...sideOf(theirs.changes, "old")]);
  const whole = ({ changes }: MergeSide): TreeEntry[] => [...present([...base, ...sideOf(changes, "new")]), ...marker.of(changes)];
  const { trees } = await store.write([
    { entries: [...present([...base]), ...marker.base()] },
    { entries: whole(ours), parent: 0, name: ours.label },
    { entries: whole(theirs), parent: 0, name: theirs.label },
  ]);
  const { tree, conflicts } = await mergeTrees(store, ours.label, theirs.label);
  const changes = await differences(store, trees[1] ?? "", tree);
  return {
    changes: changes.filter(({ path }) => !marker.is(path)),
    conflicts: conflicts.filter(({ paths }) => !paths.every((path) => marker.is(path))),
  };
}

type Entry = readonly [key: string, entry: TreeEntry | null];

function sideOf({ changes }: ChangeSet, side: "old" | "new"): Entry[] {
  return [...changes].map(([key, change]) => [key, change[side]]);
}

/** The last word on each path counts. */
function present(entries: readonly Entry[]): TreeEntry[] {
  return [...new Map(entries).values()].filter((entry) => entry !== null);
}

/**
 * Trees of the changed files alone would make a folder that lost some files look as if it were gone, and git would move
 * other files after it. An empty file with an unused name stands for what such a folder still holds.
 */
class FolderMarkers {
  readonly #name = Buffer.from(`.vivarium-${randomBytes(16).toString("hex")}`);
  readonly #folders: ReadonlyMap<string, Buffer>;

  constructor(...sides: readonly ChangeSet[]) {
    this.#folders = new Map(sides.flatMap(({ kept }) => kept).map((path) => [path.toString("latin1"), path]));
  }

  base(): TreeEntry[] {
    return [...this.#folders.values()].map((folder) => this.#entry(folder));
  }

  /** In the folders that still hold something on a side: it says so, or deleted nothing below. */
  of({ kept, changes }: ChangeSet): TreeEntry[] {
    const holding = new Set(kept.map((path) => path.toString("latin1")));
    const robbed = new Set(
      [...changes.values()]
        .filter((change) => change.new === null)
        .flatMap(({ path }) => foldersAbove(path).map((folder) => folder.toString("latin1"))),
    );
    return [...this.#folders].filter(([key]) => holding.has(key) || !robbed.has(key)).map(([, folder]) => this.#entry(folder));
  }

  is(path: Buffer): boolean {
    return path.subarray(path.lastIndexOf(SLASH) + 1).equals(this.#name);
  }

  #entry(folder: Buffer): TreeEntry {
    return { path: Buffer.concat([folder, Buffer.from("/"), this.#name]), mode: "100644", content: EMPTY };
  }
}

/** What git calls an empty content. */
const EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

/** What must change to get from one tree to another. */
export async function differences(store: GitStore, from: string, to: string): Promise<MergedChange[]> {
  const { stdout } = await store.git(["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", from, to]);
  const changes: MergedChange[] = [];
  for (let at = 0; at < stdout.length;) {
    const middle = stdout.indexOf(0, at);
    const end = stdout.indexOf(0, middle + 1);
    const [oldMode = "", newMode = "", oldId = "", newId = ""] = stdout.toString("latin1", at + 1, middle).split(" ");
    const side = (mode: string, id: string): StoredFile | null => (mode === "000000" ? null : { mode, id });
    changes.push({ path: stdout.subarray(middle + 1, end), old: side(oldMode, oldId), new: side(newMode, newId) });
    at = end + 1;
  }
  return changes;
}
