/** Folders to compare that several storages name alike. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { BaseSteps, LiveSlot, FolderSides, SystemPart } from "./comparison.ts";
import { readShared } from "./shared.ts";
import { readSlots } from "./slots.ts";
import type { VolumeFolders } from "./volume-folders.ts";
import { projectIn } from "./volumes.ts";

/** The system itself, then disks and folders that are mounted apart. */
export function systemParts(volume: string): SystemPart[] {
  const apart = [...(readSlots(volume) ?? [])].filter(([path]) => existsSync(path));
  return [
    { at: "/", sides: { old: ["/"], new: join(volume, "system", "upper"), overlay: true } },
    ...apart.map(([path, slot]) => ({ at: path, sides: liveSides(volume, { path, slot }) })),
  ];
}

export function liveSides(volume: string, { path, slot }: LiveSlot): FolderSides {
  const shared = readShared(volume);
  const at = shared?.folders.find((folder) => join(shared.root, folder) === path);
  if (shared !== undefined && at !== undefined) return { old: [shared.root], new: projectIn(volume), overlay: true, at };
  return { old: [path], new: join(volume, "live", String(slot), "upper"), overlay: true };
}

/** Of a volume whose roots are direct: the base's folder as a whole, and the volume's. */
export function directSides(folders: VolumeFolders, volume: string, base: string): FolderSides {
  return { old: [projectOf(folders, base)], new: projectIn(volume), overlay: false };
}

/** Where every base is whole: one step from any to any. */
export function directBetween(folders: VolumeFolders, from: string, to: string): BaseSteps {
  const step: FolderSides = { old: [projectOf(folders, from)], new: projectOf(folders, to), overlay: false };
  return { back: [], forth: from === to ? [] : [step] };
}

function projectOf(folders: VolumeFolders, base: string): string {
  return projectIn(folders.path("base", base));
}
