/** The way back of a written change: turned round as it is, and merged where the files were edited since. */
import { lstat, readFile, readlink, realpath } from "node:fs/promises";
import { dirname } from "node:path";
import type { ChangeSet, StoredChange } from "../../machine/merge/change-set.ts";
import { Blobs } from "../../machine/merge/blobs.ts";
import { type Contents, withContents, writeContents } from "../../machine/merge/contents.ts";
import { GitStore, type TreeEntry } from "../../machine/merge/store.ts";
import { mergeSides, type MergedChange, type ThreeWay } from "../../machine/merge/three-way.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { decodePath } from "../../base/schema/path-bytes.ts";
import type { GitMode } from "../../machine/volumes/gather.ts";

export function reversed(changes: readonly MergedChange[]): MergedChange[] {
  return changes.map(({ path, old, new: now }) => ({ path, old: now, new: old }));
}

/** Merges the way back with what the files are now. Contents that come of it are added to `contents`. */
export async function mergeBack(temporary: string, project: string, written: readonly MergedChange[], contents: string): Promise<ThreeWay> {
  const store = await GitStore.open(temporary);
  try {
    const blobs = new Sides(store);
    const kept = await withContents(contents, (held) =>
      Promise.all(
        written.map(async ({ path, old, new: now }) => ({
          path,
          before: blobs.addKept(path, old, held),
          after: blobs.addKept(path, now, held),
          now: await blobs.addPresent(project, path),
        })),
      ),
    );
    const ids = await blobs.store();
    const entry = (path: Buffer, held: StoredSide | null): TreeEntry | null => {
      const content = held === null ? undefined : ids.get(held.mark);
      return held === null || content === undefined ? null : { path, mode: held.mode, content };
    };
    const since = kept.map(({ path, after, now }) => ({ path, old: entry(path, after), new: entry(path, now) }));
    const back = kept.map(({ path, after, before }) => ({ path, old: entry(path, after), new: entry(path, before) }));
    const merged = await mergeSides(store, { label: "reality", changes: changeSet(since) }, { label: "undo", changes: changeSet(back) });
    const named = merged.changes.flatMap(({ old, new: next }) => [old, next].flatMap((side) => (side === null ? [] : [side.id])));
    const known = new Set(written.flatMap(({ old, new: now }) => [old?.id, now?.id]));
    await writeContents(
      store,
      named.filter((id) => !known.has(id)),
      contents,
    );
    return merged;
  } finally {
    await store.close();
  }
}

/** Only what differs is a change. */
function changeSet(changes: readonly StoredChange[]): ChangeSet {
  const differing = changes.filter(({ old, new: now }) => old?.mode !== now?.mode || old?.content !== now?.content);
  return { changes: new Map(differing.map((change) => [change.path.toString("latin1"), change])), kept: [] };
}

interface StoredSide {
  readonly mode: GitMode;
  readonly mark: number;
}

/** What few files held and hold, for a merge. */
class Sides {
  readonly #blobs: Blobs;
  #bytes = 0;

  constructor(store: GitStore) {
    this.#blobs = new Blobs(store);
  }

  addKept(path: Buffer, side: MergedChange["old"], contents: Contents): StoredSide | null {
    return side === null ? null : this.#add(path, side.mode as GitMode, contents.read(side.id));
  }

  /** What lies at a path of the real project now: nothing too where there is a folder, or a link on the way. */
  async addPresent(project: string, path: Buffer): Promise<StoredSide | null> {
    const full = Buffer.concat([Buffer.from(`${project}/`), path]);
    try {
      const parent = Buffer.from(dirname(full.toString("latin1")), "latin1");
      if (!(await realpath(parent, { encoding: "buffer" })).equals(parent)) return null;
      const found = await lstat(full);
      if (found.isSymbolicLink()) return this.#add(path, "120000", await readlink(full, { encoding: "buffer" }));
      if (!found.isFile()) return null;
      return this.#add(path, (found.mode & 0o100) === 0 ? "100644" : "100755", await readFile(full));
    } catch (error) {
      if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return null;
      throw error;
    }
  }

  #add(path: Buffer, mode: GitMode, content: Buffer): StoredSide {
    this.#bytes += content.length;
    if (this.#bytes > LIMITS.maxCountedBytes)
      throw new VivError("too_large", `${decodePath(path)} was edited since, and there is too much of that to be merged.`);
    return { mode, mark: this.#blobs.add(content) };
  }

  store(): Promise<ReadonlyMap<number, string>> {
    return this.#blobs.store();
  }
}
