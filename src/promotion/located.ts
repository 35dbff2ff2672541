/** Changes of a project as changes of its repository: paths from the repository's top, contents in the store. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { StoredFile } from "../merge/merge.ts";
import type { GitStore } from "../merge/store.ts";
import type { MergedChange } from "../merge/three-way.ts";
import { VivError } from "../schema/errors.ts";
import type { PathChange } from "./index-file.ts";

export interface Located extends PathChange {
  readonly from: StoredFile | null;
  /** As it came, with ids by which its contents are found. */
  readonly sides: MergedChange;
}

export async function locate(store: GitStore, prefix: Buffer, changes: readonly MergedChange[], contents: string): Promise<Located[]> {
  const all = changes.flatMap((change) => [change.old, change.new].filter((side) => side !== null));
  const ids = await bringIn(store, [...new Set(all.map(({ id }) => id))], contents);
  const stored = (side: StoredFile | null): StoredFile | null =>
    side === null ? null : { mode: side.mode, id: ids.get(side.id) ?? side.id };
  return changes.map((sides) => ({
    path: Buffer.concat([prefix, sides.path]),
    from: stored(sides.old),
    to: stored(sides.new),
    sides,
  }));
}

/** Contents as objects of the store, byte for byte. One that has no file is one that nobody edited: the commit has it. */
export async function bringIn(store: GitStore, ids: readonly string[], folder: string): Promise<Map<string, string>> {
  const there = ids.filter((id) => /^[0-9a-f]+$/.test(id) && existsSync(join(folder, id)));
  if (there.length === 0) return new Map();
  const list = Buffer.from(there.map((id) => `${join(folder, id)}\n`).join(""));
  const { stdout } = await store.git(["hash-object", "-w", "--no-filters", "--stdin-paths"], { input: [list] });
  const written = stdout.toString().trim().split("\n");
  if (written.length !== there.length) throw new VivError("internal", `git wrote ${written.length} of ${there.length} contents.`);
  return new Map(there.map((id, index) => [id, written[index] ?? id]));
}
