/** Generated triples of trees for merges: a base, and two sides that were worked on. The same seed gives the same case. */
import { createHash } from "node:crypto";
import type { StoredFile } from "../../src/machine/merge/merge.ts";

export interface CaseFile {
  readonly mode: "100644" | "100755" | "120000";
  readonly content: string;
}

export type CaseTree = Map<string, CaseFile>;

export interface MergeCase {
  readonly base: CaseTree;
  readonly ours: CaseTree;
  readonly theirs: CaseTree;
}

const WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"];
const FOLDERS = ["", "lib/", "lib/deep/", "src/", "docs/"];

class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed * 2_654_435_761 + 12_345;
  }

  below(limit: number): number {
    this.#state = (Math.imul(this.#state ^ (this.#state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return ((this.#state ^ (this.#state >>> 13)) >>> 0) % limit;
  }

  of<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }
}

function text(dice: Dice): string {
  const lines = Array.from({ length: 6 + dice.below(14) }, (_, index) => `${index} ${dice.of(WORDS)} ${dice.of(WORDS)}`);
  return `${lines.join("\n")}${dice.below(5) === 0 ? "" : "\n"}`;
}

function file(dice: Dice): CaseFile {
  const kind = dice.below(12);
  if (kind === 0) return { mode: "120000", content: dice.of(["lib", "src/a", "/etc/passwd", "../out"]) };
  if (kind === 1) return { mode: "100644", content: `\0\u0001${dice.below(1000)}` };
  if (kind === 2) return { mode: "100644", content: "" };
  return { mode: dice.below(6) === 0 ? "100755" : "100644", content: text(dice) };
}

/** A path may not lie in a file, nor be a folder. */
function put(tree: CaseTree, path: string, made: CaseFile): void {
  for (let end = path.indexOf("/"); end > 0; end = path.indexOf("/", end + 1)) tree.delete(path.slice(0, end));
  for (const other of tree.keys()) if (other.startsWith(`${path}/`)) tree.delete(other);
  tree.set(path, made);
}

function edit(dice: Dice, old: CaseFile): CaseFile {
  if (old.mode === "120000") return { ...old, content: dice.of(["lib", "src/b", "elsewhere"]) };
  const lines = old.content.split("\n");
  lines[dice.below(lines.length)] = `${dice.of(WORDS)} changed ${dice.below(4)}`;
  return { ...old, content: lines.join("\n") };
}

const ACTIONS: readonly ((dice: Dice, tree: CaseTree, path: string, old: CaseFile) => void)[] = [
  (dice, tree, path, old) => tree.set(path, edit(dice, old)),
  (dice, tree, path, old) => tree.set(path, edit(dice, edit(dice, old))),
  (_dice, tree, path) => tree.delete(path),
  (dice, tree, path, old) => {
    tree.delete(path);
    put(tree, `${dice.of(FOLDERS)}moved${dice.below(3)}.txt`, dice.below(2) === 0 ? old : edit(dice, old));
  },
  (dice, tree, path, old) => {
    tree.delete(path);
    put(tree, `${dice.of(["new/", "docs/"])}${path.split("/").at(-1) ?? path}`, old);
  },
  (_dice, tree, path, old) => {
    if (old.mode !== "120000") tree.set(path, { ...old, mode: old.mode === "100644" ? "100755" : "100644" });
  },
  (dice, tree) => put(tree, `${dice.of(FOLDERS)}new${dice.below(3)}.txt`, file(dice)),
  (dice, tree, path) => put(tree, `${path}/inner${dice.below(2)}`, file(dice)),
  (dice, tree, path) => put(tree, path.split("/")[0] ?? path, file(dice)),
  (dice, tree) => {
    const [from, to] = [dice.of(["lib/", "lib/deep/", "src/"]), dice.of(["new/", "src/", "docs/moved/"])];
    for (const [path, old] of new Map(tree)) {
      if (!path.startsWith(from) || to.startsWith(from)) continue;
      tree.delete(path);
      put(tree, `${to}${path.slice(from.length)}`, old);
    }
  },
];

function work(dice: Dice, base: CaseTree): CaseTree {
  const tree = new Map(base);
  for (let left = 1 + dice.below(4); left > 0; left -= 1) {
    const path = dice.of([...tree.keys()]);
    const old = tree.get(path);
    if (old !== undefined) dice.of(ACTIONS)(dice, tree, path, old);
  }
  return tree;
}

export function mergeCase(seed: number): MergeCase {
  const dice = new Dice(seed);
  const base: CaseTree = new Map();
  for (let left = 4 + dice.below(6); left > 0; left -= 1) put(base, `${dice.of(FOLDERS)}${dice.of(["a", "b", "c", "d"])}.txt`, file(dice));
  return { base, ours: work(dice, base), theirs: work(dice, base) };
}

/** The id that git gives to a content of bytes. */
export function blobId(content: string): string {
  return objectId("blob", Buffer.from(content, "latin1")).toString("hex");
}

/** The id that git gives to a tree of these files. */
export function treeId(files: ReadonlyMap<string, StoredFile>): string {
  return folderId([...files]).toString("hex");
}

function folderId(files: readonly (readonly [path: string, file: StoredFile])[]): Buffer {
  const rows: { readonly order: string; readonly bytes: Buffer }[] = [];
  const add = (mode: string, name: string, id: Buffer, order: string): unknown =>
    rows.push({ order, bytes: Buffer.concat([Buffer.from(`${mode} ${name}\0`), id]) });
  const byFolder = Map.groupBy(files, ([path]) => (path.includes("/") ? path.slice(0, path.indexOf("/")) : ""));
  for (const [name, { mode, id }] of byFolder.get("") ?? []) add(mode, name, Buffer.from(id, "hex"), name);
  byFolder.delete("");
  for (const [name, inner] of byFolder) {
    const below = inner.map(([path, stored]) => [path.slice(name.length + 1), stored] as const);
    // Git sorts a folder as if its name ended with a slash.
    add("40000", name, folderId(below), `${name}/`);
  }
  const sorted = rows.toSorted((one, other) => Buffer.compare(Buffer.from(one.order), Buffer.from(other.order)));
  return objectId("tree", Buffer.concat(sorted.map(({ bytes }) => bytes)));
}

function objectId(type: string, bytes: Buffer): Buffer {
  return createHash("sha1").update(`${type} ${bytes.length}\0`).update(bytes).digest();
}
