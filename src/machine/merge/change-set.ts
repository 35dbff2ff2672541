/** Changes between two states of a project, in a store: what each changed path was and is. They can be chained and turned round. */
import { join } from "node:path";
import { LIMITS } from "../../base/schema/limits.ts";
import { BLOBS, type Gather, type Gathered, type GatheredChange } from "../volumes/gather.ts";
import type { BaseSteps, FolderSides } from "../volumes/comparison.ts";
import { requireWhole } from "./changes.ts";
import type { GitStore, TreeEntry } from "./store.ts";

export interface StoredChange {
  readonly path: Buffer;
  /** Null where there is nothing that git holds. */
  readonly old: TreeEntry | null;
  readonly new: TreeEntry | null;
}

export interface ChangeSet {
  /** By path, as latin1. */
  readonly changes: ReadonlyMap<string, StoredChange>;
  /** Folders in which something came or went and something is untouched. */
  readonly kept: readonly Buffer[];
  /** Folders that came (true) or went, by path as latin1: git knows none, but an empty one is there all the same. */
  readonly folders?: ReadonlyMap<string, boolean>;
}

/** A merge needs every content. */
export const EVERYTHING = { fileBytes: LIMITS.maxPatchFileBytes, totalBytes: LIMITS.maxPatchBytes };

/** Changes whose contents are in a store. */
export interface StoredChanges {
  readonly gathered: Gathered;
  /** Object ids, by number of the content. */
  readonly contents: ReadonlyMap<number, string>;
}

/** Gathers changes with all their contents into a store. Git takes these in while they are still being gathered. */
export async function gatherInto(store: GitStore, gather: Gather, sides: FolderSides, name: string): Promise<StoredChanges> {
  const folder = await store.place(name);
  const gathering = gather(sides, folder, EVERYTHING);
  const { contents } = await store.writeAlong(
    gathering.then(() => []),
    join(folder, BLOBS),
  );
  return { gathered: await gathering, contents };
}

/** Makes a change set from gathered changes. */
export function changeSetOf({ gathered, contents }: StoredChanges): ChangeSet {
  requireWhole(gathered);
  if (gathered.changes.length === 0) return { changes: new Map(), kept: gathered.kept };
  const changes = new Map<string, StoredChange>();
  for (const change of gathered.changes) {
    const stored = { path: change.path, old: entryOf(change, "old", contents), new: entryOf(change, "new", contents) };
    if (stored.old !== null || stored.new !== null) changes.set(change.path.toString("latin1"), stored);
  }
  return { changes, kept: gathered.kept, folders: foldersOf(gathered) };
}

function foldersOf({ changes }: Gathered): Map<string, boolean> {
  const isFolder = (side: GatheredChange["old"]): boolean => side?.mode === "40000";
  const moved = changes.filter((change) => isFolder(change.old) !== isFolder(change.new));
  return new Map(moved.map(({ path, new: now }) => [path.toString("latin1"), isFolder(now)]));
}

function entryOf(change: GatheredChange, side: "old" | "new", contents: ReadonlyMap<number, string>): TreeEntry | null {
  const one = change[side];
  const content = one === null ? undefined : contents.get(one.mark);
  return one === null || content === undefined ? null : { path: change.path, mode: one.mode, content };
}

/** The changes from one base to another, whatever they are made of. */
export async function changesBetween(gather: Gather, store: GitStore, { back, forth }: BaseSteps): Promise<ChangeSet> {
  let all: ChangeSet = { changes: new Map(), kept: [] };
  let step = 0;
  for (const [sides, turned] of [...back.map((each) => [each, true] as const), ...forth.map((each) => [each, false] as const)]) {
    step += 1;
    const next = changeSetOf(await gatherInto(store, gather, sides, `step-${step}`));
    all = chain(all, turned ? turn(next) : next);
  }
  return all;
}

/** The same way backwards. What is kept is kept both ways. */
function turn({ changes, kept, folders = new Map<string, boolean>() }: ChangeSet): ChangeSet {
  return {
    changes: new Map([...changes].map(([key, { path, old, new: now }]) => [key, { path, old: now, new: old }])),
    kept,
    folders: new Map([...folders].map(([key, came]) => [key, !came])),
  };
}

/** One after the other; what ends as it began is no change. */
function chain(first: ChangeSet, second: ChangeSet): ChangeSet {
  const changes = new Map(first.changes);
  for (const [key, change] of second.changes) {
    const old = changes.has(key) ? (changes.get(key)?.old ?? null) : change.old;
    if (old?.mode === change.new?.mode && old?.content === change.new?.content) changes.delete(key);
    else changes.set(key, { path: change.path, old, new: change.new });
  }
  const folders = new Map(first.folders);
  for (const [key, came] of second.folders ?? []) if (!folders.delete(key)) folders.set(key, came);
  return { changes, kept: [...first.kept, ...second.kept], folders };
}
