/**
 * Where a test of a part makes its files: in memory, where the machine has room for them. A test that writes and removes thousands
 * of files takes twice the processor time on a disk. A sandbox has a /dev/shm of its own, so what a sandbox is to see lies on the disk.
 */
import { readFileSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";

const MEMORY = "/dev/shm";
/** More than all the tests that run beside each other hold at once. */
const ROOM_BYTES = 2 * 1024 ** 3;

export function memoryFolder(): string {
  return hasRoom() ? MEMORY : tmpdir();
}

/** Those of containers are often small, or run no programs. */
function hasRoom(): boolean {
  try {
    const [, options] = /^\S+ \/dev\/shm tmpfs (\S+)/m.exec(readFileSync("/proc/self/mounts", "utf8")) ?? [];
    const { bavail, bsize } = statfsSync(MEMORY);
    return options !== undefined && !/\b(ro|noexec|nodev|nosuid)\b/.test(options) && bavail * bsize >= ROOM_BYTES;
  } catch {
    return false;
  }
}
