/** Whole trees that a sandbox wrote: copied and counted by tools that never follow a link. They do not change meanwhile. */
import { mkdir, readdir } from "node:fs/promises";
import { run } from "../../../base/host/run.ts";
import { VivError } from "../../../base/schema/errors.ts";
import { copyAttributes } from "./layers.ts";

export const HOUR_MS = 3_600_000;

/** Links, owners, times, holes, hard links, whiteouts and overlay attributes are kept. */
export async function copyTree(from: string, to: string): Promise<void> {
  const names = await readdir(from, { encoding: "buffer" });
  if (names.length === 0) {
    await mkdir(to, { mode: 0o755 });
    await copyAttributes(from, to);
    return;
  }
  const result = await run(...overAllModes("cp", ["-a", "--reflink=auto", "--sparse=auto", "--", from, to]), { timeoutMs: HOUR_MS });
  if (result.code !== 0) throw explain(result.stderr);
}

/** What cp says of the disk, in the words every part uses. */
function explain(said: string): VivError {
  const last = said.split("\n").at(-1) ?? "";
  if (/No space left on device|Disk quota exceeded/.test(said)) return new VivError("disk_full", `The disk is full: ${last}.`);
  if (/Input\/output error/.test(said)) return new VivError("storage_damaged", `A file could not be read or written: ${last}.`);
  return new VivError("internal", `The files could not be copied: ${last}.`);
}

/** Bytes on disk, hard links once. */
export async function diskUsage(folders: readonly string[]): Promise<number> {
  if (folders.length === 0) return 0;
  const result = await run(...overAllModes("du", ["-sxc", "-B1", "--", ...folders]), { timeoutMs: HOUR_MS });
  const total = /(\d+)\s+total\s*$/.exec(result.stdout.toString());
  if (total?.[1] === undefined) throw new VivError("internal", `du found no total: ${result.stderr}`);
  return Number(total[1]);
}

/** A sandbox of an ordinary user may shut its own folders; in a user namespace of its own that user can open them all the same. */
export function overAllModes(program: string, args: readonly string[]): [program: string, args: readonly string[]] {
  return process.geteuid?.() === 0 ? [program, args] : ["unshare", ["-Ur", "--", program, ...args]];
}
