/** The steps of a transaction, in the order in which they are carried out, as the list that the cell reads. */
import { PART } from "../../base/host/frames.ts";
import type { StoredFile } from "../../machine/merge/merge.ts";
import type { MergedChange } from "../../machine/merge/three-way.ts";
import { VivError } from "../../base/schema/errors.ts";
import { decodePath } from "../../base/schema/path-bytes.ts";
import type { LinkedFiles } from "./hard-links.ts";

/** How a file was that a change replaced or deleted. */
export interface FileAttributes {
  readonly mode: number;
  readonly mtimeNs: bigint;
}

/** D: take a file out, R: take a folder out if it is empty, M: make a folder if it is not there, C: create, X: exchange. */
type Kind = "D" | "R" | "M" | "C" | "X";

interface Entry {
  readonly kind: Kind;
  readonly path: Buffer;
  readonly old?: StoredFile | null;
  readonly new?: StoredFile | null;
}

const SLASH = 0x2f;
const MODES = new Set(["100644", "100755", "120000"]);

/** Deletions make room first, folders come before what lies in them, and deeper folders go before those above. */
function entriesOf(changes: readonly MergedChange[]): Entry[] {
  const files = changes.map((change): Entry => ({ ...change, kind: kindOf(change) }));
  const of = (kind: Kind): Entry[] => files.filter((entry) => entry.kind === kind);
  const needed = foldersAbove(changes.filter((change) => change.new !== null));
  const left = [...foldersAbove(of("D"))].filter(([key]) => !needed.has(key)).map(([, path]): Entry => ({ kind: "R", path }));
  const made = [...foldersAbove(of("C")).values()].map((path): Entry => ({ kind: "M", path }));
  const byDepth = (one: Entry, other: Entry): number => depth(one.path) - depth(other.path);
  return [...of("D"), ...left.toSorted((one, other) => byDepth(other, one)), ...made.toSorted(byDepth), ...of("C"), ...of("X")];
}

function kindOf({ path, old, new: now }: MergedChange): Kind {
  for (const side of [old, now])
    if (side !== null && !MODES.has(side.mode))
      throw new VivError("invalid_input", `${decodePath(path)} is no file or link (${side.mode}), which can't be applied.`);
  if (old === null && now === null) throw new VivError("internal", `${decodePath(path)} is a change from nothing to nothing.`);
  if (now === null) return "D";
  return old === null ? "C" : "X";
}

function foldersAbove(entries: readonly { readonly path: Buffer }[]): Map<string, Buffer> {
  const folders = new Map<string, Buffer>();
  for (const { path } of entries) {
    for (let end = path.lastIndexOf(SLASH); end > 0; end = path.lastIndexOf(SLASH, end - 1)) {
      const key = path.toString("latin1", 0, end);
      if (folders.has(key)) break;
      folders.set(key, path.subarray(0, end));
    }
  }
  return folders;
}

function depth(path: Buffer): number {
  return path.reduce((count, byte) => (byte === SLASH ? count + 1 : count), 0);
}

/** How files were that a change brings back. */
export interface EarlierFiles {
  /** By path, as latin1. */
  readonly attributes: ReadonlyMap<string, FileAttributes>;
  readonly linked: LinkedFiles;
}

export const NOTHING_BEFORE: EarlierFiles = { attributes: new Map(), linked: new Map() };

/** Records ended by NUL; native/PROTOCOL.md says what their parts are. */
export interface EncodedList {
  readonly list: Buffer;
  readonly count: number;
  /** Which entries become names of one file again. */
  readonly twins: Buffer;
}

/** `names` are names that linked files still have in the project, by inode. */
export function encodeList(changes: readonly MergedChange[], before: EarlierFiles, names: ReadonlyMap<bigint, Buffer>): EncodedList {
  const entries = entriesOf(changes);
  const pieces = entries.flatMap((entry) => {
    if (entry.path.includes(0)) throw new VivError("invalid_input", "A path holds a NUL byte.");
    const wanted = entry.kind === "C" || entry.kind === "X" ? before.attributes.get(entry.path.toString("latin1")) : undefined;
    const numbers = [wanted?.mode ?? -1, wanted?.mtimeNs ?? 0, 0, 0, 0];
    const head = [entry.kind, sideText(entry.old), sideText(entry.new), ...numbers, ""].join(PART);
    return [Buffer.from(head), entry.path, Buffer.of(0)];
  });
  return { list: Buffer.concat(pieces), count: entries.length, twins: encodeTwins(entries, before.linked, names) };
}

/** The first entry of a file stands beside a name that it still has, the others are like the first. */
function encodeTwins(entries: readonly Entry[], linked: LinkedFiles, names: ReadonlyMap<bigint, Buffer>): Buffer {
  const first = new Map<bigint, number>();
  const pieces = entries.flatMap((entry, index) => {
    const file = entry.kind === "C" || entry.kind === "X" ? linked.get(entry.path.toString("latin1")) : undefined;
    if (file === undefined) return [];
    const like = first.get(file.inode);
    const beside = like === undefined ? names.get(file.inode) : undefined;
    if (like === undefined) first.set(file.inode, index);
    if (like === undefined && beside === undefined) return [];
    return [Buffer.from([index, like ?? -1, file.inode, ""].join(PART)), beside ?? Buffer.alloc(0), Buffer.of(0)];
  });
  return Buffer.concat(pieces);
}

function sideText(side: StoredFile | null | undefined): string {
  return side === null || side === undefined ? "0:" : `${side.mode}:${side.id}`;
}
