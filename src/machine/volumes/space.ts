/** The space of the host's disk that is never given to sandboxes. */
import { statfsSync } from "node:fs";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";

/** Bytes of the file system under a folder that volumes may still use; negative when it is too full already. */
export function spareHostBytes(folder: string): number {
  const found = statfsSync(folder);
  const kept = Math.max(LIMITS.minFreeDiskBytes, found.blocks * found.bsize * LIMITS.minFreeDiskShare);
  return found.bavail * found.bsize - kept;
}

/** Files that may still be made there; file systems that make room for them as they go say zero of both. */
function spareHostFiles(folder: string): number {
  const { files, ffree } = statfsSync(folder);
  return files === 0 ? Number.POSITIVE_INFINITY : ffree - Math.min(LIMITS.minFreeFiles, files * LIMITS.minFreeDiskShare);
}

export function requireHostSpace(folder: string): void {
  if (spareHostFiles(folder) < 0)
    throw new VivError("disk_full", `The disk under ${folder} has room for too few files: it is out of inodes, or nearly.`, {
      remedy: "Remove files on the host, or move the state folder with VIV_HOME.",
    });
  const spare = spareHostBytes(folder);
  if (spare >= 0) return;
  const needed = Math.ceil(-spare / 1024 ** 2);
  throw new VivError("disk_full", `The disk under ${folder} is too full: ${needed} MiB more must be free before anything is made.`);
}
