/** A file system in memory for small things that must not lie on the machine's disk. */
import { readMounts } from "./mounts.ts";
import { runChecked } from "./run.ts";

/** Does nothing if one is mounted there already, which outlives a crash of the server. */
export async function mountTmpfs(folder: string, size: string): Promise<void> {
  if (readMounts().some((mount) => mount.target === folder && mount.type === "tmpfs")) return;
  await runChecked("mount", ["-t", "tmpfs", "-o", `nosuid,nodev,mode=0700,size=${size}`, "vivarium-masks", folder]);
}

/** Absent is fine. */
export async function unmountTmpfs(folder: string): Promise<void> {
  const mounted = readMounts().some((mount) => mount.target === folder && mount.type === "tmpfs");
  if (mounted) await runChecked("umount", [folder]);
}
