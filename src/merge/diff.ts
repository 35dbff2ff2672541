/** What changed in the project since the base: names alone, or with renames, modes and lines as git tells them. */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { Diff, DiffEntry } from "../schema/files.ts";
import { LIMITS } from "../schema/limits.ts";
import { decodePath } from "../schema/path-bytes.ts";
import type { Gather, GatheredChange, GitMode } from "../volumes/gather.ts";
import type { Tool } from "../host/tool.ts";
import type { Sides } from "../volumes/volumes.ts";
import { EVERYTHING } from "./change-set.ts";
import { isTold, requireWhole, storeSides } from "./changes.ts";
import { GitStore } from "./store.ts";

/** Where and how an operation works. */
export interface Workplace {
  readonly gather: Gather;
  /** A folder of ours for what is taken out. */
  readonly temporary: string;
  /** What runs git; a child of this process if left out. */
  readonly tool?: Tool | undefined;
}

const COUNTED = { fileBytes: LIMITS.maxCountedFileBytes, totalBytes: LIMITS.maxCountedBytes };
const STATUS = { A: "added", D: "deleted", M: "changed", T: "changed", R: "renamed" } as const;

/** Names, types and modes, without looking into contents that are known to differ. */
export async function diffNames({ gather, temporary }: Workplace, sides: Sides): Promise<Diff> {
  const folder = await mkdtemp(join(temporary, "diff-"));
  try {
    const { changes, more } = await gather(sides, folder);
    return { entries: changes.map(bareEntry).toSorted(byPath), more };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** With renames and counts of lines. */
export async function diffInFull({ gather, temporary, tool }: Workplace, sides: Sides): Promise<Diff> {
  const store = await GitStore.open(temporary, { tool });
  try {
    const { gathered, ...trees } = await storeSides(store, gather, sides, COUNTED);
    const { stdout } = await store.git(["diff-tree", "-r", "-z", "-M", "--raw", "--numstat", "--no-abbrev", trees.old, trees.new]);
    const untold = gathered.changes.filter((change) => !isTold(change)).map(bareEntry);
    const told = readDiffTree(stdout);
    return { entries: [...withFolders(told, gathered.changes), ...untold].toSorted(byPath), more: gathered.more };
  } finally {
    store.discard();
  }
}

/** A patch that `git apply` takes on a copy of the base, byte for byte. Empty folders and special files are not in it. */
export async function makePatch({ gather, temporary, tool }: Workplace, sides: Sides): Promise<Readable> {
  const store = await GitStore.open(temporary, { tool });
  try {
    const { gathered, ...trees } = await storeSides(store, gather, sides, EVERYTHING);
    requireWhole(gathered);
    const patch = store.stream([
      "diff-tree",
      "-r",
      "-p",
      "--binary",
      "--full-index",
      "-M",
      "--no-ext-diff",
      "--no-textconv",
      "--src-prefix=a/",
      "--dst-prefix=b/",
      trees.old,
      trees.new,
    ]);
    patch.once("close", () => store.discard());
    return patch;
  } catch (error) {
    await store.close();
    throw error;
  }
}

function byPath(one: DiffEntry, other: DiffEntry): number {
  return one.path < other.path ? -1 : one.path > other.path ? 1 : 0;
}

function bareEntry(change: GatheredChange): DiffEntry {
  return {
    path: decodePath(change.path),
    from: null,
    status: change.old === null ? "added" : change.new === null ? "deleted" : "changed",
    type: change.type,
    oldMode: modeText(change.old?.mode),
    newMode: modeText(change.new?.mode),
    added: null,
    removed: null,
  };
}

function modeText(mode: GitMode | undefined): string | null {
  return mode === undefined || mode === "other" ? null : mode;
}

/** To git, a folder in the place of a file is a file that is gone; here it is a path that changed. */
function withFolders(entries: readonly DiffEntry[], changes: readonly GatheredChange[]): DiffEntry[] {
  const turned = new Map(
    changes.filter((change) => change.old !== null && change.new !== null).map((change) => [decodePath(change.path), bareEntry(change)]),
  );
  return entries.map((entry) => {
    const change = entry.from === null && entry.status !== "changed" ? turned.get(entry.path) : undefined;
    return change ?? entry;
  });
}

/** The raw rows, then the counts, of the same changes in the same order. */
function readDiffTree(output: Buffer): DiffEntry[] {
  const parts = splitNul(output);
  const entries: DiffEntry[] = [];
  let at = 0;
  for (; parts[at]?.[0] === 0x3a; at += 2) {
    const [oldMode = "", newMode = "", , , letter = ""] = (parts[at]?.toString("latin1") ?? "").slice(1).split(" ");
    const renamed = letter.startsWith("R");
    const path = parts[at + (renamed ? 2 : 1)] ?? Buffer.alloc(0);
    entries.push({
      path: decodePath(path),
      from: renamed ? decodePath(parts[at + 1] ?? Buffer.alloc(0)) : null,
      status: STATUS[letter[0] as keyof typeof STATUS],
      type: (newMode === "000000" ? oldMode : newMode) === "120000" ? "link" : "file",
      oldMode: oldMode === "000000" ? null : oldMode,
      newMode: newMode === "000000" ? null : newMode,
      added: null,
      removed: null,
    });
    if (renamed) at += 1;
  }
  for (const [index, entry] of entries.entries()) {
    const [added = "-", removed = "-"] = (parts[at]?.toString("latin1") ?? "").split("\t");
    at += entry.from === null ? 1 : 3;
    if (entry.type === "file" && added !== "-") entries[index] = { ...entry, added: Number(added), removed: Number(removed) };
  }
  return entries;
}

function splitNul(output: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; at < output.length;) {
    const end = output.indexOf(0, at);
    parts.push(output.subarray(at, end));
    at = end + 1;
  }
  return parts;
}
