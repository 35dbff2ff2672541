/** The part of a sandbox's change that can be promoted: what ignore rules don't leave out, and what was asked for. */
import { join } from "node:path";
import { decodePath } from "../../base/schema/path-bytes.ts";
import { BLOBS, type Gather, type Gathered, type GatheredChange } from "../volumes/gather.ts";
import type { CopyFilesOut } from "../volumes/copy-files-out.ts";
import type { FolderSides } from "../volumes/comparison.ts";
import { changeSetOf, EVERYTHING, type ChangeSet } from "./change-set.ts";
import { sideEntries } from "./changes.ts";
import { GatheredContents } from "./gathered-contents.ts";
import { ignoredPaths, type OuterRules } from "./ignore.ts";
import { foldersAbove } from "./folders.ts";
import { staysInChange } from "./kept-paths.ts";
import type { GitStore, TreeEntry } from "./store.ts";
import type { MergedChange } from "./three-way.ts";
import type { StoredFile } from "./merge.ts";

export interface PromotableRequest {
  readonly gather: Gather;
  readonly takeOut: CopyFilesOut;
  readonly sides: FolderSides;
  /** Ignore rules that are not in the base. */
  readonly outer: () => Promise<OuterRules>;
  /** Paths that the rules ignore and the project's git holds all the same, as latin1. */
  readonly tracked: () => Promise<ReadonlySet<string>>;
  /** New paths that no rule made inside leaves out; those that are risky by their name never are. */
  readonly protects?: ((path: string) => boolean) | undefined;
  /** Ignored paths that count all the same, and what is below them; relative to the project. */
  readonly include: readonly string[];
  /** If given, only these paths and what is below them. */
  readonly only?: readonly string[] | undefined;
  /** Hears every path that differs, ignored or not, before git is asked about them; nothing where not all are known, which fails. */
  readonly onTouched?: ((paths: readonly Buffer[]) => void) | undefined;
}

export interface LeftOut {
  readonly path: Buffer;
  /** git: a file system may take its name for a repository's own folder. */
  readonly why: "ignored" | "special" | "git" | "protected" | "not asked for";
}

export interface Promotable {
  readonly changes: ChangeSet;
  /** The changed paths as they were and as they are, as trees in the store; undefined where nothing changed. */
  readonly trees: { readonly old: string; readonly new: string } | undefined;
  readonly leftOut: readonly LeftOut[];
  /** Of the changes, files that are setuid or setgid inside; those bits are not part of a change. */
  readonly privileged: readonly Buffer[];
}

/** Brings the promotable change into the store, with every content. Of many, git takes these in while the ignore rules are still asked. */
export async function promotable(store: GitStore, request: PromotableRequest): Promise<Promotable> {
  const { blobs, gathering, sorting } = await begin(store, request);
  const bothSides = sorting.then(({ chosen }) =>
    chosen.length === 0 ? [] : (["old", "new"] as const).map((side) => ({ entries: sideEntries(chosen, side) })),
  );
  const { trees, contents } = await store.writeAlong(bothSides, blobs);
  const [old, now] = trees;
  return {
    ...asPromotable(await gathering, await sorting, contents),
    trees: old === undefined || now === undefined ? undefined : { old, new: now },
  };
}

/** The same change with its contents where they were gathered: git has none of them yet. */
export interface GatheredPromotable extends Omit<Promotable, "trees"> {
  readonly contents: GatheredContents;
}

/** The promotable change; the store is for the ignore rules alone. */
export async function gatherPromotable(store: GitStore, request: PromotableRequest): Promise<GatheredPromotable> {
  const { blobs, gathering, sorting } = await begin(store, request);
  const contents = await GatheredContents.read(blobs, gathering);
  return { ...asPromotable(await gathering, await sorting, contents.ids), contents };
}

interface BegunGathering {
  /** File with the contents, while it grows. */
  readonly blobs: string;
  readonly gathering: Promise<Gathered>;
  readonly sorting: Promise<PromotableChange>;
}

async function begin(store: GitStore, request: PromotableRequest): Promise<BegunGathering> {
  const folder = await store.place("change");
  const gathering = request.gather(request.sides, folder, EVERYTHING);
  const sorting = gathering.then((gathered) => splitPromotable(store, request, gathered));
  sorting.catch(() => undefined);
  return { blobs: join(folder, BLOBS), gathering, sorting };
}

function asPromotable(
  gathered: Gathered,
  { chosen, leftOut }: PromotableChange,
  contents: ReadonlyMap<number, string>,
): Omit<Promotable, "trees"> {
  const changes = changeSetOf({ gathered: { ...gathered, changes: chosen }, contents });
  return {
    changes: { ...changes, kept: [...changes.kept, ...leftOut.flatMap(({ path }) => foldersAbove(path))] },
    leftOut,
    privileged: chosen.filter((change) => change.new?.privileged === true).map(({ path }) => path),
  };
}

/** What is needed to sort a change. */
export type PromotableOptions = Omit<PromotableRequest, "gather">;

export interface PromotableChange {
  readonly chosen: readonly GatheredChange[];
  readonly leftOut: readonly LeftOut[];
}

/** What a promotion takes, and what it leaves out; folders are neither. */
export async function splitPromotable(store: GitStore, request: PromotableOptions, { changes, more }: Gathered): Promise<PromotableChange> {
  const files = changes.filter((change) => !isFolder(change));
  if (!more) request.onTouched?.(files.map(({ path }) => path));
  if (files.length === 0) return { chosen: [], leftOut: [] };
  const { byBase, byInside } = await ignoredPaths(store, request.takeOut, request.sides, files, await request.outer());
  const held = byBase.size === 0 ? new Set<string>() : await request.tracked();
  const stays = (path: Buffer): boolean => staysInChange(decodePath(path), request.protects ?? (() => false));
  const included = below(request.include);
  const asked = request.only === undefined ? () => true : below(request.only);
  const leftOut: LeftOut[] = [];
  const chosen = files.filter((change) => {
    const key = change.path.toString("latin1");
    const isIgnored = ((byBase.has(key) && !held.has(key)) || (byInside.has(key) && !stays(change.path))) && !included(key);
    const why = isSpecial(change) ? "special" : isGit(change) ? "git" : isIgnored ? "ignored" : asked(key) ? undefined : "not asked for";
    if (why !== undefined) leftOut.push({ path: change.path, why });
    return why === undefined;
  });
  return { chosen, leftOut };
}

/** What must be written to a clone of the base to become the changed state. */
export function asMerged({ changes }: ChangeSet): MergedChange[] {
  const side = (entry: TreeEntry | null): StoredFile | null => (entry === null ? null : { mode: entry.mode, id: String(entry.content) });
  return [...changes.values()].map((change) => ({ path: change.path, old: side(change.old), new: side(change.new) }));
}

export function isFolder({ old, new: now }: GatheredChange): boolean {
  const folderOrNothing = (side: GatheredChange["old"]): boolean => side === null || side.mode === "40000";
  return folderOrNothing(old) && folderOrNothing(now);
}

/** Devices, sockets and pipes are nothing that git or a promotion knows. */
function isSpecial({ old, new: now }: GatheredChange): boolean {
  return old?.mode === "other" || now?.mode === "other";
}

/** Characters that HFS+ leaves out when it compares names. */
const UNSEEN = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;
/** As NTFS sees it: short names, trailing dots and spaces, streams. */
const GIT_NAME = /^(\.git|git~\d+)[. ]*(:.*)?$/i;

function isGit({ path }: GatheredChange): boolean {
  return path
    .toString()
    .split(/[/\\]/)
    .some((part) => GIT_NAME.test(part.replace(UNSEEN, "")));
}

/** Whether a path is one of these or lies below one. */
export function below(paths: readonly string[]): (key: string) => boolean {
  const wanted = paths.map((path) => Buffer.from(path.replace(/^(\.\/)+/, "").replace(/\/+$/, "")).toString("latin1"));
  return (key) => wanted.some((path) => path === "" || path === "." || key === path || key.startsWith(`${path}/`));
}
