/** A file system in memory for small things that must not lie on the machine's disk. */
import { existsSync, realpathSync } from "node:fs";
import { readMounts } from "./mounts.ts";
import { runChecked } from "./run.ts";

/** Does nothing if one of this name is mounted there already, which outlives a crash of the server. Another's stays below it. */
export async function mountTmpfs(folder: string, size: string, name: string): Promise<void> {
  if (!isMounted(folder, name)) await runChecked("mount", ["-t", "tmpfs", "-o", `nosuid,nodev,mode=0700,size=${size}`, name, folder]);
}

/** Absent is fine. */
export async function unmountTmpfs(folder: string, name: string): Promise<void> {
  if (isMounted(folder, name)) await runChecked("umount", [folder]);
}

function isMounted(folder: string, name: string): boolean {
  // The kernel tells the real path of a mount, not the links by which a caller reached it.
  const place = existsSync(folder) ? realpathSync(folder) : folder;
  const newest = readMounts().findLast((mount) => mount.target === place);
  return newest?.type === "tmpfs" && newest.source === name;
}
