/** Which folder of the machine each live/<n> of a volume serves, beyond those that its base gave to the project. */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Beside what is mounted, so that a sandbox can't write it, and part of every snapshot. */
export const SLOTS_FILE = "slots.json";

/** Undefined where nothing was written down: no slot was given, or before there were lists. */
export function readSlots(volume: string): Map<string, number> | undefined {
  try {
    const slots: Record<string, number> = JSON.parse(readFileSync(join(volume, SLOTS_FILE), "utf8"));
    return new Map(Object.entries(slots));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

export function writeSlots(volume: string, slots: ReadonlyMap<string, number>): void {
  const file = join(volume, SLOTS_FILE);
  // On the disk before it has its name: half a list would keep the volume from ever being launched again.
  writeFileSync(`${file}.new`, JSON.stringify(Object.fromEntries(slots)), { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
}
