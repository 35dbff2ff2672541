/** What a sandbox changed in its copy of the project, told without the native helper and without following a link. */
import { constants } from "node:fs";
import { mkdir, mkdtemp, open, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { DiffEntry } from "../../schema/files.ts";
import { numstat } from "../diff.ts";
import type { Sides } from "../volumes.ts";
import { compareTrees, type Difference } from "./compare.ts";
import { isGone, within } from "./trees.ts";

/** Line counts are for text that people read. */
const MAX_COUNTED_BYTES = 8 * 1024 ** 2;
const GIT = /^\.git$/i;

/** Sorted by path; anything called .git is left out. Line counts where asked, made in a folder below `temporary`. */
export async function diffCopies(sides: Sides, lines: boolean, temporary: string): Promise<DiffEntry[]> {
  const [old] = sides.old;
  if (old === undefined) return [];
  const found = await compareTrees(old, sides.new, {
    content: true,
    since: await completedAt(sides.new),
    leaveOut: (_path, name) => GIT.test(name.toString("latin1")),
  });
  const sorted = found.toSorted((one, other) => Buffer.compare(one.path, other.path));
  const entries = sorted.map(entryOf);
  if (!lines) return entries;
  const counts = await countLines(old, sides.new, sorted, temporary);
  return entries.map((entry, index) => ({ ...entry, ...counts.get(String(index)) }));
}

/** When the copy was complete: the time of the mark beside its roots. */
async function completedAt(copy: string): Promise<number> {
  try {
    return (await stat(join(dirname(dirname(copy)), "base"))).mtimeMs;
  } catch (error) {
    if (isGone(error)) return 0;
    throw error;
  }
}

function entryOf({ path, status, stats }: Difference): DiffEntry {
  const type = stats.isDirectory() ? "dir" : stats.isSymbolicLink() ? "link" : "file";
  return { path: path.toString(), status, type, added: null, removed: null };
}

/** The files are copied out first, under names of our own, and git sees only those. */
async function countLines(
  old: string,
  now: string,
  found: readonly Difference[],
  temporary: string,
): Promise<Map<string, { added: number; removed: number }>> {
  const folder = await mkdtemp(join(temporary, "diff-"));
  try {
    for (const side of ["old", "new"]) await mkdir(join(folder, side));
    for (const [index, { path, status, stats }] of found.entries()) {
      if (!stats.isFile()) continue;
      if (status !== "added") await extract(within(Buffer.from(old), path), join(folder, "old", String(index)));
      if (status !== "deleted") await extract(within(Buffer.from(now), path), join(folder, "new", String(index)));
    }
    return await numstat(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Takes out a regular file; what is none any more, too large or closed to us has no lines. */
async function extract(from: Buffer, to: string): Promise<void> {
  let file;
  try {
    file = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (isGone(error) || ["ELOOP", "EACCES", "ENXIO"].includes((error as NodeJS.ErrnoException).code ?? "")) return;
    throw error;
  }
  try {
    const status = await file.stat();
    if (status.isFile() && status.size <= MAX_COUNTED_BYTES) await writeFile(to, await file.readFile(), { flag: "wx", mode: 0o600 });
  } finally {
    await file.close();
  }
}
