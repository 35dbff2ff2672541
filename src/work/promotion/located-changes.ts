/** Changes of a project as changes of its repository: paths from the repository's top, contents in the store. */
import { Blobs } from "../../machine/merge/blobs.ts";
import { withContents } from "../../machine/merge/contents.ts";
import type { StoredFile } from "../../machine/merge/merge.ts";
import type { GitStore } from "../../machine/merge/store.ts";
import type { MergedChange } from "../../machine/merge/three-way.ts";
import type { PathChange } from "./index-file.ts";

export interface LocatedChange extends PathChange {
  readonly from: StoredFile | null;
  /** As it came, with ids by which its contents are found. */
  readonly sides: MergedChange;
}

export async function locate(
  store: GitStore,
  prefix: Buffer,
  changes: readonly MergedChange[],
  contents: string,
): Promise<LocatedChange[]> {
  const all = changes.flatMap((change) => [change.old, change.new].filter((side) => side !== null));
  const ids = await storeContents(store, [...new Set(all.map(({ id }) => id))], contents);
  const stored = (side: StoredFile | null): StoredFile | null =>
    side === null ? null : { mode: side.mode, id: ids.get(side.id) ?? side.id };
  return changes.map((sides) => ({
    path: Buffer.concat([prefix, sides.path]),
    from: stored(sides.old),
    to: stored(sides.new),
    sides,
  }));
}

/** Contents as objects of the store, byte for byte. A file that is not kept was not edited: the commit has it. */
export async function storeContents(store: GitStore, ids: readonly string[], folder: string): Promise<Map<string, string>> {
  return withContents(folder, async (contents) => {
    const there = ids.filter((id) => contents.has(id));
    return storeEach(store, there, (id) => contents.read(id));
  });
}

/** The ids that git gives to what `read` makes of ids. */
export async function storeEach(store: GitStore, ids: readonly string[], read: (id: string) => Buffer): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map();
  const blobs = new Blobs(store);
  const marks = ids.map((id) => blobs.add(read(id)));
  const stored = await blobs.store();
  return new Map(ids.map((id, index) => [id, stored.get(marks[index] ?? 0) ?? id]));
}
