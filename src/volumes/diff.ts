/** What a sandbox changed in a captured folder, told without following anything it wrote. */
import { mkdtemp, rm, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { CellHost } from "../host/cell-host.ts";
import { joinParts, splitParts } from "../host/frames.ts";
import { runChecked, TOOL_PATH } from "../host/run.ts";
import type { Diff, DiffEntry } from "../schema/files.ts";
import type { Sides } from "./volumes.ts";

/** Line counts are for text that people read. */
const MAX_COUNTED_BYTES = 8 * 1024 ** 2;
/** Of each side: a sandbox's sparse files take no space of its own, their copies would. */
const MAX_COPIED_BYTES = 256 * 1024 ** 2;
const PART_SEPARATOR = "\x1f";
const STATUS = { A: "added", M: "changed", D: "deleted" } as const;

export async function diffFolders(host: CellHost, sides: Sides): Promise<Diff> {
  const reply = await host.request("diff", [
    ["new", sides.new],
    ["overlay", sides.overlay ? "1" : "0"],
    ...sides.old.map((folder) => ["old", folder] as const),
  ]);
  const entries = reply.rawAll("row").map((row): DiffEntry => {
    const [what, type, path] = splitParts(row, 3);
    return {
      path: path?.toString("utf8") ?? "",
      status: STATUS[what?.toString() as keyof typeof STATUS],
      type: type?.toString() as DiffEntry["type"],
      added: null,
      removed: null,
    };
  });
  return { entries, more: reply.get("more") === "1" };
}

/** Adds line counts. The files are copied out first, under names of our own, and git sees only those. */
export async function countLines(host: CellHost, sides: Sides, entries: readonly DiffEntry[], temporary: string): Promise<DiffEntry[]> {
  const folder = await mkdtemp(join(temporary, "diff-"));
  try {
    await mkdir(join(folder, "old"));
    await mkdir(join(folder, "new"));
    const files = entries.flatMap((entry, index) => (entry.type === "file" ? [{ ...entry, index }] : []));
    const wanted = (side: "old" | "new", missing: DiffEntry["status"]): { path: string; target: string }[] =>
      files.filter((file) => file.status !== missing).map((file) => ({ path: file.path, target: join(folder, side, String(file.index)) }));
    // Topmost first: what is extracted already is left alone.
    let left = MAX_COPIED_BYTES;
    for (const layer of sides.old) left -= await extract(host, layer, wanted("old", "added"), left);
    await extract(host, sides.new, wanted("new", "deleted"), MAX_COPIED_BYTES);
    const counts = await numstat(folder);
    return entries.map((entry, index) => {
      const count = counts.get(String(index));
      return entry.type === "file" && count !== undefined ? { ...entry, ...count } : entry;
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Copies at most `total` bytes, and tells how many. */
async function extract(host: CellHost, root: string, files: readonly { path: string; target: string }[], total: number): Promise<number> {
  // A name with the byte that separates the parts of a value can't be asked for: it goes without a count.
  const sayable = files.filter((file) => !file.path.includes(PART_SEPARATOR));
  let bytes = 0;
  for (let at = 0; at < sayable.length; at += 500) {
    const part = sayable.slice(at, at + 500);
    const reply = await host.request("extract", [
      ["root", root],
      ["most", String(MAX_COUNTED_BYTES)],
      ["total", String(total - bytes)],
      ...part.map((file) => ["file", joinParts([file.path, file.target])] as const),
    ]);
    bytes += reply.number("bytes") ?? 0;
  }
  return bytes;
}

/** Lines added and removed of old/<name> against new/<name> in a folder of ours, by name. */
export async function numstat(folder: string): Promise<Map<string, { added: number; removed: number }>> {
  const env = {
    PATH: TOOL_PATH,
    LC_ALL: "C",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CEILING_DIRECTORIES: folder,
    HOME: folder,
  };
  const counts = new Map<string, { added: number; removed: number }>();
  // Exit code 1 only says that there are differences.
  const { stdout } = await runChecked(
    "git",
    ["-C", folder, "diff", "--no-index", "--no-ext-diff", "--no-textconv", "--no-renames", "--numstat", "--", "old", "new"],
    { env, okCodes: [0, 1] },
  );
  for (const line of stdout.toString("utf8").split("\n")) {
    const match = /^(\d+)\t(\d+)\t.*\/(\d+)(?: => \/dev\/null)?$/.exec(line);
    if (match?.[3] !== undefined) counts.set(match[3], { added: Number(match[1]), removed: Number(match[2]) });
  }
  return counts;
}
