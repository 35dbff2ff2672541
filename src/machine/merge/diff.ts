/** What changed in the project since the base: names alone, or with renames, modes and lines as git tells them. */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { Diff, DiffEntry } from "../../base/schema/files.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { decodePath } from "../../base/schema/path-bytes.ts";
import { BLOBS, type ContentLimits, type Gather, type Gathered, type GatheredChange, type GitMode } from "../volumes/gather.ts";
import type { Tool } from "../../base/host/tool.ts";
import type { FolderSides } from "../volumes/comparison.ts";
import { EVERYTHING } from "./change-set.ts";
import { isShownByGit, requireWhole, sideEntries, storeSides, type StoredSides } from "./changes.ts";
import { foldersAbove } from "./folders.ts";
import { isFolder, splitPromotable, type PromotableChange, type PromotableOptions } from "./promotable.ts";
import { GitStore } from "./store.ts";

/** Where and how an operation works. */
export interface GitWorkspace {
  readonly gather: Gather;
  /** A folder of ours for what is taken out. */
  readonly temporary: string;
  /** What runs git; a child of this process if left out. */
  readonly tool?: Tool | undefined;
}

const COUNTED = { fileBytes: LIMITS.maxCountedFileBytes, totalBytes: LIMITS.maxCountedBytes };
const STATUS = { A: "added", D: "deleted", M: "changed", T: "changed", R: "renamed" } as const;

/** Names, types and modes, without looking into contents that are known to differ. */
export async function diffNames({ gather, temporary }: GitWorkspace, sides: FolderSides): Promise<Diff> {
  const folder = await mkdtemp(join(temporary, "diff-"));
  try {
    const { changes, more } = await gather(sides, folder);
    return { entries: changes.map(bareEntry).toSorted(byPath), more };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The same, with what a promotion would leave out. */
export async function diffSorted({ gather, temporary, tool }: GitWorkspace, sorting: PromotableOptions): Promise<Diff> {
  const store = await GitStore.open(temporary, { tool });
  try {
    const gathered = await gather(sorting.sides, await store.place("sides"));
    const why = whyLeftOut(gathered, await splitPromotable(store, sorting, gathered));
    return { entries: gathered.changes.map(bareEntry).map(why).toSorted(byPath), more: gathered.more };
  } finally {
    store.discard();
  }
}

/** With renames and counts of lines, too: of what is promoted and of what is not, each for itself. */
export async function diffInFull({ gather, temporary, tool }: GitWorkspace, sorting: PromotableOptions): Promise<Diff> {
  const store = await GitStore.open(temporary, { tool });
  try {
    const { gathered, trees, sorted } = await storeSorted(store, gather, sorting, COUNTED);
    const shownByGit = (await Promise.all(trees.map((each) => diffTrees(store, each)))).flat();
    const others = gathered.changes.filter((change) => !isShownByGit(change)).map(bareEntry);
    const why = whyLeftOut(gathered, sorted);
    return { entries: [...withFolders(shownByGit, gathered.changes), ...others].map(why).toSorted(byPath), more: gathered.more };
  } finally {
    store.discard();
  }
}

/** Two states of some paths, as trees in a store. */
interface Trees {
  readonly old: string;
  readonly new: string;
}

/** What is promoted, then what is left out, if anything is. Git takes the contents in while they are being gathered and sorted. */
async function storeSorted(
  store: GitStore,
  gather: Gather,
  sorting: PromotableOptions,
  limits: ContentLimits,
): Promise<{ gathered: Gathered; sorted: PromotableChange; trees: Trees[] }> {
  const folder = await store.place("sides");
  const gathering = gather(sorting.sides, folder, limits);
  const sortedSoon = gathering.then((gathered) => splitPromotable(store, sorting, gathered));
  sortedSoon.catch(() => undefined);
  const requests = sortedSoon.then(async ({ leftOut }) => {
    const { changes } = await gathering;
    const left = new Set(leftOut.map(({ path }) => path.toString("latin1")));
    const isLeft = ({ path }: GatheredChange): boolean => left.has(path.toString("latin1"));
    const parts = left.size === 0 ? [changes] : [changes.filter((change) => !isLeft(change)), changes.filter(isLeft)];
    return parts.flatMap((part) => [{ entries: sideEntries(part, "old") }, { entries: sideEntries(part, "new") }]);
  });
  const { trees } = await store.writeAlong(requests, join(folder, BLOBS));
  const pairs = trees.flatMap((old, index) => (index % 2 === 0 ? [{ old, new: trees[index + 1] ?? "" }] : []));
  return { gathered: await gathering, sorted: await sortedSoon, trees: pairs };
}

async function diffTrees(store: GitStore, trees: Trees): Promise<DiffEntry[]> {
  const { stdout } = await store.git(["diff-tree", "-r", "-z", "-M", "--raw", "--numstat", "--no-abbrev", trees.old, trees.new]);
  return readDiffTree(stdout);
}

/** Marks what a promotion leaves out. A folder goes with what is in it. */
function whyLeftOut({ changes }: Gathered, { chosen, leftOut }: PromotableChange): (entry: DiffEntry) => DiffEntry {
  const reasons = new Map<string, DiffEntry["leftOut"]>();
  const taken = new Set(chosen.flatMap(({ path }) => foldersAbove(path)).map((path) => path.toString("latin1")));
  const left = new Map<string, DiffEntry["leftOut"]>();
  for (const { path, why } of leftOut) {
    const reason = why === "special" || why === "git" ? why : "ignored";
    reasons.set(decodePath(path), reason);
    for (const folder of foldersAbove(path)) left.set(folder.toString("latin1"), reason);
  }
  for (const change of changes.filter(isFolder)) {
    const key = change.path.toString("latin1");
    if (!taken.has(key)) reasons.set(decodePath(change.path), left.get(key) ?? "folder");
  }
  return (entry) => ({ ...entry, leftOut: reasons.get(entry.path) ?? null });
}

/** A patch that `git apply` takes on a copy of the base, byte for byte. Empty folders and special files are not in it. */
export async function makePatch({ gather, temporary, tool }: GitWorkspace, sides: FolderSides): Promise<Readable> {
  return streamPatch(await GitStore.open(temporary, { tool }), async (store) => storeSides(store, gather, sides, EVERYTHING));
}

/** The same of what a promotion would take. */
export async function makePromotablePatch({ gather, temporary, tool }: GitWorkspace, sorting: PromotableOptions): Promise<Readable> {
  return streamPatch(await GitStore.open(temporary, { tool }), async (store) => {
    const { gathered, sorted, trees } = await storeSorted(store, gather, sorting, EVERYTHING);
    const [{ old, new: now } = { old: "", new: "" }] = trees;
    return { gathered: { ...gathered, changes: sorted.chosen }, old, new: now };
  });
}

async function streamPatch(store: GitStore, make: (store: GitStore) => Promise<StoredSides>): Promise<Readable> {
  try {
    const { gathered, ...trees } = await make(store);
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
    leftOut: null,
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
      leftOut: null,
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
