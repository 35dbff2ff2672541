/** Changes of a sandbox brought into a store: the same paths as they were and as they are. */
import { join } from "node:path";
import { VivError } from "../../base/schema/errors.ts";
import { BLOBS, type ContentLimits, type Gather, type Gathered, type GatheredChange, type GatheredSide } from "../volumes/gather.ts";
import type { FolderSides } from "../volumes/comparison.ts";
import type { GitStore, TreeEntry } from "./store.ts";

/** Whether git can hold this side of a change: a file or a link whose content was taken out. */
function isHeld(side: GatheredSide | null): boolean {
  return side === null || side.mode === "40000" || side.mode === "other" || side.mark > 0;
}

/** Whether git shows a change; folders, special files and what is too large are not. */
export function isShownByGit(change: GatheredChange): boolean {
  const isContent = (side: GatheredSide | null): boolean => side !== null && side.mark > 0;
  return (isContent(change.old) || isContent(change.new)) && isHeld(change.old) && isHeld(change.new);
}

export function sideEntries(changes: readonly GatheredChange[], side: "old" | "new"): TreeEntry[] {
  return changes.flatMap((change): TreeEntry[] => {
    const one = change[side];
    return one === null || one.mark === 0 || !isShownByGit(change) ? [] : [{ path: change.path, mode: one.mode, content: one.mark }];
  });
}

export interface StoredSides {
  readonly gathered: Gathered;
  readonly old: string;
  readonly new: string;
}

/** Both sides as trees of the changed paths alone. Git takes the contents in while they are still being gathered. */
export async function storeSides(store: GitStore, gather: Gather, sides: FolderSides, limits: ContentLimits): Promise<StoredSides> {
  const folder = await store.place("sides");
  const gathering = gather(sides, folder, limits);
  const requests = gathering.then(({ changes }) => [{ entries: sideEntries(changes, "old") }, { entries: sideEntries(changes, "new") }]);
  const { trees } = await store.writeAlong(requests, join(folder, BLOBS));
  return { gathered: await gathering, old: trees[0] ?? "", new: trees[1] ?? "" };
}

/** A patch or a merge needs every content. */
export function requireWhole(gathered: Gathered): void {
  if (gathered.more) throw new VivError("too_large", "There are too many changes, or folders too deep or closed to look into.");
  const missing = gathered.changes.find((change) => !isHeld(change.old) || !isHeld(change.new));
  if (missing !== undefined)
    throw new VivError("too_large", `${missing.path.toString()} can't be taken out: it is too large, closed, or changes all the time.`);
}
