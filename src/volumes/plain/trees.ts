/** Whole trees that a sandbox wrote: copied and counted by tools that never follow a link. Nobody writes them meanwhile. */
import { mkdir, readdir } from "node:fs/promises";
import { run, runChecked } from "../../host/run.ts";
import { VivError } from "../../schema/errors.ts";
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
  await runChecked(...overAllModes("cp", ["-a", "--reflink=auto", "--sparse=auto", "--", from, to]), { timeoutMs: HOUR_MS });
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
