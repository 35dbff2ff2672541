/** Changes of a sandbox brought into a store: the same paths as they were and as they are. */
import { VivError } from "../schema/errors.ts";
import type { Gathered, GatheredChange, GatheredSide } from "../volumes/gather.ts";
import type { GitStore, TreeEntry } from "./store.ts";

/** Whether git can hold this side of a change: a file or a link whose content was taken out. */
function isHeld(side: GatheredSide | null): boolean {
  return side === null || side.mode === "40000" || side.mode === "other" || side.mark > 0;
}

/** Whether a change is told by git; folders, special files and what is too large are not. */
export function isTold(change: GatheredChange): boolean {
  const isContent = (side: GatheredSide | null): boolean => side !== null && side.mark > 0;
  return (isContent(change.old) || isContent(change.new)) && isHeld(change.old) && isHeld(change.new);
}

export function sideEntries(changes: readonly GatheredChange[], side: "old" | "new"): TreeEntry[] {
  return changes.flatMap((change): TreeEntry[] => {
    const one = change[side];
    return one === null || one.mark === 0 || !isTold(change) ? [] : [{ path: change.path, mode: one.mode, content: one.mark }];
  });
}

/** Both sides as trees of the changed paths alone. */
export async function storeSides(store: GitStore, { changes, blobs }: Gathered): Promise<{ old: string; new: string }> {
  const { trees } = await store.write([{ entries: sideEntries(changes, "old") }, { entries: sideEntries(changes, "new") }], blobs);
  return { old: trees[0] ?? "", new: trees[1] ?? "" };
}

/** A patch or a merge needs every content. */
export function requireWhole(gathered: Gathered): void {
  if (gathered.more) throw new VivError("too_large", "There are too many changes, or folders too deep or closed to look into.");
  const missing = gathered.changes.find((change) => !isHeld(change.old) || !isHeld(change.new));
  if (missing !== undefined)
    throw new VivError("too_large", `${missing.path.toString()} can't be taken out: it is too large, closed, or changes all the time.`);
}
