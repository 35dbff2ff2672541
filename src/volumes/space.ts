/** The space of the host's disk that is never given to sandboxes. */
import { statfsSync } from "node:fs";
import { VivError } from "../schema/errors.ts";
import { LIMITS } from "../schema/limits.ts";

/** Bytes of the file system under a folder that volumes may still use; negative when it is too full already. */
export function spareHostBytes(folder: string): number {
  const found = statfsSync(folder);
  const kept = Math.max(LIMITS.minFreeDiskBytes, found.blocks * found.bsize * LIMITS.minFreeDiskShare);
  return found.bavail * found.bsize - kept;
}

export function requireHostSpace(folder: string): void {
  const spare = spareHostBytes(folder);
  if (spare >= 0) return;
  const needed = Math.ceil(-spare / 1024 ** 2);
  throw new VivError("disk_full", `The disk under ${folder} is too full: ${needed} MiB more must be free before anything is made.`);
}
