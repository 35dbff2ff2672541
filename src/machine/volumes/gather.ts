/** What changed in a captured folder, with its contents taken out for git, found without following a link that a sandbox wrote. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { CellHost } from "../../base/host/cell-host.ts";
import { splitParts } from "../../base/host/frames.ts";
import type { FileType } from "../../base/schema/files.ts";
import { chained } from "./chained.ts";
import type { FolderSides } from "./comparison.ts";

/** Modes as git knows them; `none` is not there, `other` what git has no word for. */
export type GitMode = "100644" | "100755" | "120000" | "40000" | "other";

export interface GatheredSide {
  readonly mode: GitMode;
  /** Number of its content in the blobs; 0 for a folder, and for what is too large or can't be read. */
  readonly mark: number;
  /** Setuid or setgid; known for the new side alone. */
  readonly privileged?: boolean;
}

export interface GatheredChange {
  /** Relative to the folder, as the bytes it is. */
  readonly path: Buffer;
  /** Type on the new side, or on the old side if the entry is gone. */
  readonly type: FileType;
  readonly old: GatheredSide | null;
  readonly new: GatheredSide | null;
}

export interface Gathered {
  readonly changes: readonly GatheredChange[];
  /** Folders in which something came or went and something is untouched. */
  readonly kept: readonly Buffer[];
  /** File with the contents, as blobs of git's fast-import stream; null if they were not asked for. */
  readonly blobs: string | null;
  /** How many contents are missing. */
  readonly skipped: number;
  /** There is more than is listed: too many changes, or something that can't be looked into. */
  readonly more: boolean;
}

export interface ContentLimits {
  readonly fileBytes: number;
  readonly totalBytes: number;
}

/** Compares two sides; `folder` is an empty one of ours for what is taken out. Contents come along where limits are given. */
export type Gather = (sides: FolderSides, folder: string, contents?: ContentLimits) => Promise<Gathered>;

/** What the file with the contents is called in the folder given. */
export const BLOBS = "blobs";

const MODES: Readonly<Record<string, GitMode>> = {
  "100644": "100644",
  "100755": "100755",
  "120000": "120000",
  "40000": "40000",
  "1": "other",
};

export function gatherWith(host: CellHost): Gather {
  return chained(gatherOne(host));
}

function gatherOne(host: CellHost): Gather {
  return async (sides, folder, contents) => {
    const list = join(folder, "list");
    const blobs = contents === undefined ? null : join(folder, BLOBS);
    const reply = await host.request("diff", [
      ["new", sides.new],
      ["overlay", sides.overlay ? "1" : "0"],
      ...sides.old.map((layer) => ["old", layer] as const),
      ...(sides.at === undefined ? [] : [["at", sides.at] as const]),
      ...(sides.origin === undefined ? [] : [["origin", sides.origin] as const]),
      ...(sides.shared === undefined ? [] : [["shared_root", sides.shared.root] as const]),
      ...(sides.shared?.folders ?? []).map((path) => ["shared", path] as const),
      ...(sides.shared?.hidden ?? []).map((path) => ["hidden", path] as const),
      ["list", list],
      ...(blobs === null || contents === undefined
        ? []
        : [["blobs", blobs] as const, ["most", String(contents.fileBytes)] as const, ["total", String(contents.totalBytes)] as const]),
    ]);
    return { ...readList(await readFile(list)), blobs, skipped: reply.number("skipped") ?? 0, more: reply.flag("more") };
  };
}

function readList(list: Buffer): Pick<Gathered, "changes" | "kept"> {
  const changes = new Map<string, GatheredChange>();
  const kept: Buffer[] = [];
  for (let at = 0; at < list.length;) {
    const end = list.indexOf(0, at);
    const [what, type, old, now, path] = splitParts(list.subarray(at, end), 5);
    if (path !== undefined) {
      if (what?.toString() === "K") kept.push(path);
      else add(changes, { path, type: type?.toString() as FileType, old: readSide(old), new: readSide(now) });
    }
    at = end + 1;
  }
  return { changes: [...changes.values()], kept };
}

/** A replaced folder is reported as everything deleted and everything added: the same path then comes twice. */
function add(changes: Map<string, GatheredChange>, change: GatheredChange): void {
  const key = change.path.toString("latin1");
  const known = changes.get(key);
  const both =
    known === undefined
      ? change
      : { ...change, type: known.new === null ? change.type : known.type, old: known.old ?? change.old, new: known.new ?? change.new };
  if (both.old?.mode === "40000" && both.new?.mode === "40000") changes.delete(key);
  else changes.set(key, both);
}

function readSide(text: Buffer | undefined): GatheredSide | null {
  const [mode = "", mark = "", more] = (text?.toString() ?? "").split(":");
  const known = MODES[mode];
  return known === undefined ? null : { mode: known, mark: Number(mark), ...(more === "s" ? { privileged: true } : {}) };
}
