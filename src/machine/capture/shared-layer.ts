/**
 * The layer that lies below a project's volume and shows the folders it shares with reality: the project in it is opaque, so
 * that nothing else of reality's shows, and each shared folder leads to the real one in the layer below. What the mask says
 * of a place in such a folder holds here, too.
 */
import { lstatSync } from "node:fs";
import { dirname, join } from "node:path";
import type { SharedList } from "../volumes/shared.ts";
import type { MaskEntry, Owner } from "./mask.ts";
import { isWithin } from "./project.ts";

/** An entry, and the folder of the layer below that it leads to. */
export interface SharedEntry {
  readonly entry: MaskEntry;
  readonly redirect?: string;
}

/** `place` is the project's folder in the layer. Parents come first. */
export function sharedEntries(place: string, { root, folders }: SharedList, masked: readonly MaskEntry[]): SharedEntry[] {
  const entries = new Map<string, SharedEntry>();
  const put = (shared: SharedEntry): unknown => entries.set(shared.entry.path, shared);
  const at = (path: string): string => join(place, path.slice(root.length));
  put({ entry: { kind: "opaque", path: place, like: ownerOf(root) } });
  for (const folder of folders) {
    const real = join(root, folder);
    for (let parent = dirname(real); parent !== root; parent = dirname(parent))
      if (!entries.has(at(parent))) put({ entry: { kind: "dir", path: at(parent), like: ownerOf(parent) } });
    const rule = masked.find(({ path }) => path === real);
    const isShown = rule === undefined || rule.kind === "dir" || rule.kind === "through";
    const like = ownerOf(real);
    put(
      isShown
        ? { entry: { kind: "through", path: at(real), like }, redirect: `/${folder}` }
        : { entry: { kind: "dir", path: at(real), like } },
    );
    for (const entry of masked)
      if (entry.path !== real && isWithin(entry.path, real))
        put({ entry: { ...entry, path: at(entry.path) }, redirect: entry.path.slice(root.length) });
  }
  return [...entries.values()].toSorted((one, other) => (one.entry.path < other.entry.path ? -1 : 1));
}

/** Of a folder that is gone meanwhile, the layer shows an empty one. */
function ownerOf(path: string): Owner {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found === undefined ? { uid: 0, gid: 0, mode: 0o755 } : { uid: found.uid, gid: found.gid, mode: found.mode & 0o7777 };
}
