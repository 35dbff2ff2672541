/** The part of a winner's change that was judged: edits of protected files were put back for the checks, and are not promoted. */
import { splitChange } from "../checks/manifest.ts";
import type { ChangeSet, StoredChange } from "../../machine/merge/change-set.ts";
import { asMerged, type Promotable } from "../../machine/merge/promotable.ts";
import type { GitStore } from "../../machine/merge/store.ts";
import type { StoredFile } from "../../machine/merge/merge.ts";
import { encodePath } from "../../base/schema/path-bytes.ts";
import type { GitMode } from "../../machine/volumes/gather.ts";

/** `patterns` are those of the experiment; null stands for tests and what configures them. */
export async function withoutProtected<Change extends Pick<Promotable, "changes" | "leftOut">>(
  store: GitStore,
  change: Change,
  patterns: readonly string[] | null,
): Promise<Change> {
  const text = async (id: string): Promise<string> => (await store.git(["cat-file", "blob", id])).stdout.toString("utf8");
  const hold = async (content: string): Promise<string> =>
    (await store.git(["hash-object", "-w", "--stdin"], { input: [Buffer.from(content)] })).stdout.toString().trim();
  const { free, changed } = await splitChange({ changes: asMerged(change.changes), text, hold }, patterns);
  if (changed.length === 0) return change;
  const changes: ChangeSet = {
    ...change.changes,
    changes: new Map(free.map(({ path, old, new: now }) => [path.toString("latin1"), stored(path, old, now)])),
  };
  const leftOut = changed.map((path) => ({ path: encodePath(path), why: "protected" as const }));
  return { ...change, changes, leftOut: [...change.leftOut, ...leftOut] };
}

function stored(path: Buffer, old: StoredFile | null, now: StoredFile | null): StoredChange {
  const entry = (side: StoredFile | null): StoredChange["old"] =>
    side === null ? null : { path, mode: side.mode as GitMode, content: side.id };
  return { path, old: entry(old), new: entry(now) };
}
