/** Which folders of its project a volume shares with reality: they lie below what the sandbox writes, as if they were captured. */
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface SharedList {
  /** The project in reality. */
  readonly root: string;
  /** Relative to it. */
  readonly folders: readonly string[];
  /** Relative paths below these folders that are hidden from sandboxes. */
  readonly hidden: readonly string[];
}

/** Beside what is mounted, so that a sandbox can't write it, and part of every base and snapshot. */
const SHARED_FILE = "shared.json";

/** Undefined where nothing is shared in this way. */
export function readShared(volume: string): SharedList | undefined {
  try {
    return JSON.parse(readFileSync(join(volume, SHARED_FILE), "utf8")) as SharedList;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

export function writeShared(volume: string, shared: SharedList): void {
  const file = join(volume, SHARED_FILE);
  const before = readShared(volume);
  if (JSON.stringify(before) === JSON.stringify(shared)) return;
  if (shared.folders.length === 0) return rmSync(file, { force: true });
  // On the disk before it has its name: half a list would keep the volume from ever being launched.
  writeFileSync(`${file}.new`, JSON.stringify(shared), { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
}
