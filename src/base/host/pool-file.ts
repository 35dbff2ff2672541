/** A btrfs file system in a sparse file, mounted through a loop device. */
import { existsSync, readFileSync, statfsSync, statSync } from "node:fs";
import { open, rename, rm, truncate } from "node:fs/promises";
import { basename } from "node:path";
import { readMounts, type Mount } from "./mounts.ts";
import { runChecked } from "./run.ts";

/** nosuid and nodev because a volume holds files that look like root's and like devices. */
const MOUNT_OPTIONS = "nosuid,nodev,noatime,discard=async";

/** Deleted subvolumes that the kernel has not cleared by then give their space back when the pool is mounted again. */
const SETTLE_MS = 5_000;

/** The file is complete or absent: it is made aside and renamed. */
export async function makePoolFile(file: string, bytes: number): Promise<void> {
  const aside = `${file}.making`;
  await rm(aside, { force: true });
  const handle = await open(aside, "wx", 0o600);
  await handle.truncate(bytes);
  await handle.close();
  // Copies of metadata on one sparse file protect against nothing and cost every write.
  await runChecked("mkfs.btrfs", ["-q", "-m", "single", "-d", "single", aside]);
  await rename(aside, file);
}

/** How a pool is mounted; undefined when it is not. */
export function poolMount(folder: string): Mount | undefined {
  return readMounts().findLast((mount) => mount.target === folder && mount.type === "btrfs");
}

/** Whether what is mounted is this file, and not one that was there under its name before. */
export async function isPoolOf(file: string, folder: string): Promise<boolean> {
  const source = poolMount(folder)?.source;
  if (source === undefined || !existsSync(file)) return false;
  const backing = `/sys/block/${basename(source)}/loop/backing_file`;
  if (existsSync(backing) && readFileSync(backing, "utf8").trim() === file) return true;
  // A mount namespace of another kind may know the file by another path.
  return (await devicesOf(file)).includes(source);
}

async function devicesOf(file: string): Promise<string[]> {
  const { stdout } = await runChecked("losetup", ["-j", file, "-n", "-O", "NAME"]);
  return stdout.toString().trim().split("\n");
}

/** Two loop devices over one file would write past each other: one that sandboxes still use is used again. */
export async function mountPool(file: string, folder: string): Promise<void> {
  const [device] = await devicesOf(file);
  if (device) await runChecked("mount", ["-t", "btrfs", "-o", MOUNT_OPTIONS, device, folder]);
  else await runChecked("mount", ["-t", "btrfs", "-o", `loop,${MOUNT_OPTIONS}`, file, folder]);
}

export async function unmountPool(folder: string): Promise<void> {
  await runChecked("umount", [folder]);
}

/** Makes a mounted pool larger, while it is in use. */
export async function growPool(file: string, folder: string, bytes: number): Promise<void> {
  const device = poolMount(folder)?.source;
  if (device === undefined) return;
  await truncate(file, bytes);
  await runChecked("losetup", ["-c", device]);
  await runChecked("btrfs", ["filesystem", "resize", "max", folder]);
}

/** Bytes of the host's disk that a mounted pool holds and does not use. */
export function unusedBytes(file: string, folder: string): number {
  const { blocks, bfree, bsize } = statfsSync(folder);
  return statSync(file).blocks * 512 - (blocks - bfree) * bsize;
}

/** Gives them back. The kernel does so by itself, but late, and forgets what it has not done when the pool is unmounted. */
export async function trimPool(folder: string): Promise<void> {
  await runChecked("fstrim", [folder]);
}

/** Makes what was removed free now: a deleted subvolume is taken apart after one commit, and its space is free after the next. */
export async function settlePool(folder: string): Promise<void> {
  for (const what of [
    ["filesystem", "sync"],
    ["subvolume", "sync"],
    ["filesystem", "sync"],
  ])
    await runChecked("btrfs", [...what, folder], { timeoutMs: SETTLE_MS });
}
