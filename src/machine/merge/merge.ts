/**
 * Three-way merge of trees in a private store, as `git merge` does it. A conflict is an answer: every one has its path, its kind
 * and what the three sides have, and the tree of the answer holds the files with conflict markers in them.
 */
import { VivError } from "../../base/schema/errors.ts";
import type { GitStore } from "./store.ts";

export type ConflictKind =
  | "content"
  | "binary"
  | "mode"
  | "type"
  | "delete/edit"
  | "directory/file"
  | "rename"
  | "directory rename"
  | "submodule";

export interface StoredFile {
  /** As git writes it, six digits. */
  readonly mode: string;
  readonly id: string;
}

export interface Conflict {
  readonly kind: ConflictKind;
  /** The path, and of renames the others that are part of it. */
  readonly paths: readonly Buffer[];
  /** Git's sentence about it; names in it are the tree's. */
  readonly message: string;
  readonly base: StoredFile | null;
  readonly ours: StoredFile | null;
  readonly theirs: StoredFile | null;
}

export interface MergeResult {
  /** The merged tree; where there are conflicts, with markers in the files. */
  readonly tree: string;
  readonly conflicts: readonly Conflict[];
}

interface Stages {
  base: StoredFile | null;
  ours: StoredFile | null;
  theirs: StoredFile | null;
}

interface Message {
  readonly paths: readonly Buffer[];
  readonly type: string;
  readonly text: string;
}

const SIDES = ["base", "ours", "theirs"] as const;
const KINDS: Readonly<Record<string, ConflictKind>> = {
  contents: "content",
  binary: "binary",
  "file/directory": "directory/file",
  "distinct modes": "type",
  "modify/delete": "delete/edit",
  "rename/rename": "rename",
  "rename involved in collision": "rename",
  "rename/delete": "rename",
  "directory rename suggested": "directory rename",
  "file in way of directory rename": "directory rename",
  "directory rename collision": "directory rename",
  "directory rename unclear split": "directory rename",
};

/** Merges two commits of the store that come from the same third one. Their names are the labels in conflict markers. */
export async function mergeTrees(store: GitStore, ours: string, theirs: string): Promise<MergeResult> {
  const { code, stdout, stderr } = await store.ask(["merge-tree", "--write-tree", "-z", "--messages", ours, theirs]);
  if (code !== 0 && code !== 1) throw new VivError("internal", `git merge-tree ended with ${code}: ${stderr}`);
  const parts = new Parts(stdout);
  const tree = parts.text();
  if (code === 0) return { tree, conflicts: [] };
  const stages = readStages(parts);
  const messages = readMessages(parts).filter(({ type }) => type.startsWith("CONFLICT"));
  const conflicts = [...fromMessages(messages, stages), ...fromStages(messages, stages)];
  return { tree, conflicts: conflicts.filter((conflict) => !isToldTwice(conflict, conflicts)) };
}

/** For a binary file git reports two conflicts: that it is binary, and that its content differs. */
function isToldTwice({ kind, paths: [path] }: Conflict, all: readonly Conflict[]): boolean {
  return kind === "content" && path !== undefined && all.some((other) => other.kind === "binary" && other.paths[0]?.equals(path) === true);
}

/** The pieces between NUL bytes, one after the other. */
class Parts {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get ended(): boolean {
    return this.#at >= this.#bytes.length;
  }

  next(): Buffer {
    const end = this.#bytes.indexOf(0, this.#at);
    const part = this.#bytes.subarray(this.#at, end < 0 ? this.#bytes.length : end);
    this.#at += part.length + 1;
    return part;
  }

  text(): string {
    return this.next().toString("latin1");
  }
}

/** Rows `<mode> <id> <stage>\t<path>` up to an empty one. */
function readStages(parts: Parts): Map<string, Stages> {
  const stages = new Map<string, Stages>();
  for (let row = parts.next(); row.length > 0; row = parts.next()) {
    const tab = row.indexOf("\t");
    const [mode = "", id = "", stage = ""] = row.toString("latin1", 0, tab).split(" ");
    const path = row.toString("latin1", tab + 1);
    const known = stages.get(path) ?? { base: null, ours: null, theirs: null };
    const side = SIDES[Number(stage) - 1];
    if (side !== undefined) known[side] = { mode, id };
    stages.set(path, known);
  }
  return stages;
}

function readMessages(parts: Parts): Message[] {
  const messages: Message[] = [];
  while (!parts.ended) {
    const count = Number(parts.text());
    const paths = Array.from({ length: count }, () => parts.next());
    messages.push({ paths, type: parts.text(), text: parts.next().toString("utf8").trim() });
  }
  return messages;
}

function fromMessages(messages: readonly Message[], stages: ReadonlyMap<string, Stages>): Conflict[] {
  return messages.map(({ paths, type, text }) => {
    const found = paths.map((path) => stages.get(path.toString("latin1"))).find((each) => each !== undefined);
    const sides = found ?? { base: null, ours: null, theirs: null };
    return { kind: kindOf(type, sides), paths, message: text, ...sides };
  });
}

function kindOf(type: string, { ours, theirs }: Stages): ConflictKind {
  const word = /\((.*)\)/.exec(type)?.[1] ?? "";
  if (word === "contents" && ours !== null && theirs !== null && ours.id === theirs.id) return "mode";
  return KINDS[word] ?? (word.startsWith("submodule") ? "submodule" : "rename");
}

/** A path that both sides gave another mode, and nothing else, has no message of its own. */
function fromStages(messages: readonly Message[], stages: ReadonlyMap<string, Stages>): Conflict[] {
  const withMessage = new Set(messages.flatMap(({ paths }) => paths.map((path) => path.toString("latin1"))));
  return [...stages]
    .filter(([path]) => !withMessage.has(path))
    .map(([path, sides]) => ({ kind: "mode", paths: [Buffer.from(path, "latin1")], message: "Both sides changed its mode.", ...sides }));
}
