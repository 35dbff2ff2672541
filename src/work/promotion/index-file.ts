/** Trees made by way of the store's index, which belongs to no checkout. */
import type { StoredFile } from "../../machine/merge/merge.ts";
import type { GitStore } from "../../machine/merge/store.ts";

/** What a path is to become; null takes it away. */
export interface PathChange {
  readonly path: Buffer;
  readonly to: StoredFile | null;
}

const NOTHING = "0".repeat(40);

/** The index becomes a tree with changes, and is written as a tree. */
export async function treeWith(store: GitStore, from: string, changes: readonly PathChange[]): Promise<string> {
  await store.git(["read-tree", "--end-of-options", from]);
  // Deletions come first: a folder can then take the place of a file.
  const rows = changes.toSorted((one, other) => Number(one.to !== null) - Number(other.to !== null)).map(row);
  if (rows.length > 0) await store.git(["update-index", "-z", "--add", "--replace", "--index-info"], { input: [Buffer.concat(rows)] });
  const { stdout } = await store.git(["write-tree"]);
  return stdout.toString().trim();
}

function row({ path, to }: PathChange): Buffer {
  return Buffer.concat([Buffer.from(`${to?.mode ?? "0"} ${to?.id ?? NOTHING}\t`), path, Buffer.of(0)]);
}

/** The files of a tree, by path as latin1. */
export async function filesOf(store: GitStore, tree: string): Promise<Map<string, StoredFile>> {
  const files = new Map<string, StoredFile>();
  const { stdout } = await store.git(["ls-tree", "-r", "-z", "--full-tree", "--end-of-options", tree]);
  for (let at = 0; at < stdout.length;) {
    const end = stdout.indexOf(0, at);
    const tab = stdout.indexOf("\t", at);
    const [mode = "", , id = ""] = stdout.toString("latin1", at, tab).split(" ");
    files.set(stdout.toString("latin1", tab + 1, end), { mode, id });
    at = end + 1;
  }
  return files;
}

export function isSame(one: StoredFile | null | undefined, other: StoredFile | null | undefined): boolean {
  return one?.id === other?.id && one?.mode === other?.mode;
}
