/** A file system in memory for small things that must not lie on the machine's disk. */
import { existsSync, realpathSync } from "node:fs";
import { readMounts } from "./mounts.ts";
import { runChecked } from "./run.ts";

/** Does nothing if one is mounted there already, which outlives a crash of the server. */
export async function mountTmpfs(folder: string, size: string): Promise<void> {
  if (!isMounted(folder)) await runChecked("mount", ["-t", "tmpfs", "-o", `nosuid,nodev,mode=0700,size=${size}`, "vivarium", folder]);
}

/** Absent is fine. */
export async function unmountTmpfs(folder: string): Promise<void> {
  if (isMounted(folder)) await runChecked("umount", [folder]);
}

function isMounted(folder: string): boolean {
  // The kernel tells where it is, not by which links somebody went there.
  const place = existsSync(folder) ? realpathSync(folder) : folder;
  return readMounts().some((mount) => mount.target === place && mount.type === "tmpfs");
}
