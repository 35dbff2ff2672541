import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";

/** Removes the oldest files of a folder until at most `mostBytes` are left. A file named after something in `keep` stays. Returns what is left. */
export async function trimFolder(folder: string, keep: ReadonlySet<string>, mostBytes: number): Promise<number> {
  const names = await readdir(folder);
  const files = await Promise.all(names.map(async (name) => ({ name, stats: await stat(join(folder, name)).catch(() => undefined) })));
  const found = files.flatMap(({ name, stats }) =>
    stats === undefined ? [] : [{ name, bytes: Math.max(stats.size, stats.blocks * 512), at: stats.mtimeMs }],
  );
  let total = found.reduce((sum, { bytes }) => sum + bytes, 0);
  for (const { name, bytes } of found.toSorted((left, right) => left.at - right.at)) {
    if (total <= mostBytes) break;
    if (keep.has(name.split(".")[0] ?? name)) continue;
    await rm(join(folder, name), { force: true });
    total -= bytes;
  }
  return total;
}
