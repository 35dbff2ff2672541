/** PROM-2: merges equal those of `git merge` on the same three trees, conflicts included. */
import { execFile } from "node:child_process";
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CellHost } from "../../src/base/host/cell-host.ts";
import { toolWith } from "../../src/base/host/tool.ts";
import { changeSetOf } from "../../src/machine/merge/change-set.ts";
import { type ConflictKind, type MergeResult, mergeTrees, type StoredFile } from "../../src/machine/merge/merge.ts";
import { GitStore, type TreeRequest } from "../../src/machine/merge/store.ts";
import { mergeSides, type MergeSide } from "../../src/machine/merge/three-way.ts";
import type { Gathered, GatheredChange } from "../../src/machine/volumes/gather.ts";
import { memoryFolder } from "../support/folders.ts";
import { blobId, mergeCase, treeId, type CaseFile, type CaseTree, type MergeCase } from "../support/merge-cases.ts";
import { needs } from "../support/skip.ts";
import { CELL } from "../support/storage.ts";

const CASES = 530;
const AS_CHANGES = 180;
const ENV = {
  PATH: process.env["PATH"],
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_AUTHOR_NAME: "a",
  GIT_AUTHOR_EMAIL: "a",
  GIT_COMMITTER_NAME: "a",
  GIT_COMMITTER_EMAIL: "a",
};
/**
 * What git itself makes of each case, a line of standard input, in a folder and with an index of its own. One shell starts all the
 * processes of git: a process of the tests takes longer to fork than git takes to merge.
 */
const MERGE_ALL = `
while read -r index ours theirs; do
  cd "$FOLDERS/$index"
  export GIT_WORK_TREE="$PWD" GIT_INDEX_FILE="$GIT_DIR/index-$index"
  git checkout -q -f --detach "$ours" || exit 1
  git -c gc.auto=0 merge -q --no-edit "$theirs" >/dev/null 2>&1
  status=$?
  read -r head <"$GIT_DIR/HEAD"
  echo "$status $head"
  # Some versions of git stop at a bug of their own when they write certain conflicts into a folder.
  if [ $status = 134 ]; then rm -f "$GIT_INDEX_FILE.lock"; fi
done`;

/** Contents numbered once each, as the stream that fast-import reads. */
class Blobs {
  readonly #marks = new Map<string, number>();

  mark(content: string): number {
    const mark = this.#marks.get(content) ?? this.#marks.size + 1;
    this.#marks.set(content, mark);
    return mark;
  }

  write(path: string): string {
    const blobs = [...this.#marks].map(
      ([content, mark]) => `blob\nmark :${mark}\ndata ${Buffer.byteLength(content, "latin1")}\n${content}\n`,
    );
    writeFileSync(path, blobs.join(""), "latin1");
    return path;
  }

  tree(tree: CaseTree, parent?: number): TreeRequest {
    const entries = [...tree].map(([path, { mode, content }]) => ({ path: Buffer.from(path), mode, content: this.mark(content) }));
    return parent === undefined ? { entries } : { entries, parent };
  }
}

describe("PROM-2 a three-way merge", needs("linux"), () => {
  let folder: string;
  let host: CellHost;
  let store: GitStore;
  let cases: { made: MergeCase; ours: string; theirs: string }[];
  const merges = new Map<string, Promise<MergeResult>>();

  beforeAll(async () => {
    folder = mkdtempSync(join(memoryFolder(), "viv-merge-"));
    host = new CellHost({ program: CELL });
    store = await openStore();
    const blobs = new Blobs();
    const made = Array.from({ length: CASES }, (_, seed) => mergeCase(seed));
    const requests = made.flatMap(({ base, ours, theirs }, index) => [
      blobs.tree(base),
      blobs.tree(ours, index * 3),
      blobs.tree(theirs, index * 3),
    ]);
    const { trees } = await store.write(requests, blobs.write(join(folder, "blobs")));
    cases = made.map((each, index) => ({ made: each, ours: trees[index * 3 + 1] ?? "", theirs: trees[index * 3 + 2] ?? "" }));
  });
  afterAll(async () => {
    await store.close();
    await host.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const openStore = (): Promise<GitStore> => GitStore.open(folder, { tool: toolWith(host) });

  function merge(ours: string, theirs: string): Promise<MergeResult> {
    const merged = merges.get(ours + theirs) ?? mergeTrees(store, ours, theirs);
    merges.set(ours + theirs, merged);
    return merged;
  }

  test("equals git merge on the same trees, conflicts included", { timeout: 180_000 }, async () => {
    const seen = { clean: 0, conflict: 0 };
    const kinds = new Set<ConflictKind>();
    for (const [seed, plain] of (await mergeInFolders()).entries()) {
      const { ours = "", theirs = "" } = cases[seed] ?? {};
      const merged = await merge(ours, theirs);
      const own = { how: merged.conflicts.length === 0 ? "clean" : "conflict", tree: merged.tree };
      expect({ seed, ...own }).toMatchObject({ seed, ...plain });
      if (plain.tree !== undefined) seen[plain.how] += 1;
      for (const { kind } of merged.conflicts) kinds.add(kind);
    }
    expect(seen.clean + seen.conflict).toBeGreaterThanOrEqual(500);
    expect(Math.min(seen.clean, seen.conflict)).toBeGreaterThan(100);
    expect([...kinds]).toEqual(expect.arrayContaining(["content", "binary", "delete/edit", "directory/file", "rename", "type"]));
  });

  /** What git itself makes of the cases: the tree of its commit, or that of what it left in the folder; none where it stopped at a bug. */
  async function mergeInFolders(): Promise<{ how: "clean" | "conflict"; tree?: string }[]> {
    const [repository, folders] = [join(folder, "repository"), join(folder, "folders")];
    await run("git", ["init", "-q", "--bare", repository]);
    writeFileSync(join(repository, "objects/info/alternates"), `${join(store.folder, "git/objects")}\n`);
    for (const index of cases.keys()) mkdirSync(join(folders, String(index)), { recursive: true });
    const lines = cases.map(({ ours, theirs }, index) => `${index} ${ours} ${theirs}\n`).join("");
    const told = await run("sh", ["-c", MERGE_ALL], lines, { GIT_DIR: repository, FOLDERS: folders });
    const results = told
      .trim()
      .split("\n")
      .map((line) => line.split(" "));
    expect(results).toHaveLength(CASES);
    const commits = results.map(([, commit]) => `${commit}^{tree}\n`).join("");
    const trees = (await run("git", ["cat-file", "--batch-check=%(objectname)"], commits, { GIT_DIR: repository })).trim().split("\n");
    return results.map(([status], index) => {
      if (status === "134") return { how: "conflict" };
      if (status === "0") return { how: "clean", tree: trees[index] ?? "" };
      return { how: "conflict", tree: treeId(filesIn(join(folders, String(index)), cases[index]?.ours ?? "")) };
    });
  }

  /** Its standard output, byte for byte. */
  async function run(program: string, args: readonly string[], input = "", env: Readonly<Record<string, string>> = {}): Promise<string> {
    const ended = promisify(execFile)(program, args, { env: { ...ENV, ...env }, encoding: "latin1", maxBuffer: 64 * 1024 ** 2 });
    // A program that needs no input may have ended before it is written.
    ended.child.stdin?.on("error", () => undefined).end(input);
    return (await ended).stdout;
  }

  /** The files of a folder; no link is followed. Git says HEAD in names and markers where the store says the commit. */
  function filesIn(place: string, ours: string, under = ""): Map<string, StoredFile> {
    const files = readdirSync(join(place, under), { withFileTypes: true }).flatMap((entry): [string, StoredFile][] => {
      const path = join(under, entry.name);
      if (entry.isDirectory()) return [...filesIn(place, ours, path)];
      return [[path.replaceAll("~HEAD", `~${ours}`), storedFileAt(join(place, path), ours)]];
    });
    return new Map(files);
  }

  function storedFileAt(path: string, ours: string): StoredFile {
    const found = lstatSync(path);
    if (found.isSymbolicLink()) return { mode: "120000", id: blobId(readlinkSync(path, "latin1")) };
    const content = readFileSync(path, "latin1").replaceAll("<<<<<<< HEAD", `<<<<<<< ${ours}`);
    return { mode: (found.mode & 0o100) === 0 ? "100644" : "100755", id: blobId(content) };
  }

  test("says of each conflict what kind it is, and what the three sides have", async () => {
    const text = (...lines: string[]): CaseFile => ({ mode: "100644", content: `${["1", "2", "3", "4", ...lines].join("\n")}\n` });
    const binary = (byte: string): CaseFile => ({ mode: "100644", content: `\0${byte}` });
    const link = (content: string): CaseFile => ({ mode: "120000", content });
    const rows: [ConflictKind, string, Record<string, CaseFile>, Record<string, CaseFile>, Record<string, CaseFile>][] = [
      ["content", "a", { a: text("base") }, { a: text("ours") }, { a: text("theirs") }],
      ["content", "a", {}, { a: text("ours") }, { a: text("theirs") }],
      ["binary", "a", { a: binary("0") }, { a: binary("1") }, { a: binary("2") }],
      ["mode", "a", {}, { a: text() }, { a: { ...text(), mode: "100755" } }],
      ["delete/edit", "a", { a: text("base") }, {}, { a: text("theirs") }],
      ["delete/edit", "a", { a: text("base") }, { a: text("ours") }, {}],
      ["directory/file", "a", {}, { a: text() }, { "a/b": text("inner") }],
      ["type", "a", { a: text() }, { a: text("ours") }, { a: link("elsewhere") }],
      ["rename", "a", { a: text("base") }, { b: text("base") }, { c: text("base") }],
    ];
    for (const [kind, path, base, ours, theirs] of rows) {
      const blobs = new Blobs();
      const rest = { other: text("other") };
      const requests = [base, ours, theirs].map((tree, index) =>
        blobs.tree(new Map(Object.entries({ ...tree, ...rest })), index === 0 ? undefined : 0),
      );
      const { trees } = await store.write(requests, blobs.write(join(folder, "kind")));
      const { conflicts } = await mergeTrees(store, trees[1] ?? "", trees[2] ?? "");
      expect([kind, conflicts[0]?.kind, conflicts[0]?.paths[0]?.toString().replace(/~.*/, "")]).toEqual([kind, kind, path]);
      const sides = [conflicts[0]?.base, conflicts[0]?.ours, conflicts[0]?.theirs].filter((side) => side !== null && side !== undefined);
      expect(sides.length).toBeGreaterThan(0);
    }
  });

  test("of the changed files alone gives what the whole trees give", { timeout: 180_000 }, async () => {
    for (const [seed, { made, ours, theirs }] of cases.slice(0, AS_CHANGES).entries()) {
      const whole = await merge(ours, theirs);
      const own = await openStore();
      try {
        const sides = [await sideOf("ours", made.base, made.ours, own), await sideOf("theirs", made.base, made.theirs, own)] as const;
        const merged = await mergeSides(own, ...sides);
        const result = new Map<string, StoredFile>(
          [...made.ours].map(([path, file]) => [path, { mode: file.mode, id: blobId(file.content) }]),
        );
        for (const change of merged.changes) {
          if (change.new === null) result.delete(change.path.toString());
          else result.set(change.path.toString(), change.new);
        }
        const kinds = (list: typeof merged.conflicts): string[] =>
          list.map(({ kind, paths }) => `${kind} ${paths[0]?.toString().replace(/~.*/, "")}`).toSorted();
        expect([seed, ...kinds(merged.conflicts)]).toEqual([seed, ...kinds(whole.conflicts)]);
        // Labels differ, and with them the ids of files with markers and names beside a conflict.
        if (merged.conflicts.length > 0) continue;
        expect([seed, treeId(result)]).toEqual([seed, whole.tree]);
      } finally {
        await own.close();
      }
    }
  });

  test("of the changed files alone, a folder that keeps some of its files is not taken for a renamed one", async () => {
    const one = (word: string): CaseFile => ({ mode: "100644", content: `${word}\n`.repeat(9) });
    const base: CaseTree = new Map([
      ["lib/a", one("a")],
      ["lib/b", one("b")],
    ]);
    const ours: CaseTree = new Map([
      ["new/a", one("a")],
      ["lib/b", one("b")],
    ]);
    const theirs: CaseTree = new Map([...base, ["lib/c", one("c")]]);
    const own = await openStore();
    const { changes, conflicts } = await mergeSides(own, await sideOf("ours", base, ours, own), await sideOf("theirs", base, theirs, own));
    await own.close();
    expect([changes.map(({ path }) => path.toString()), conflicts]).toEqual([["lib/c"], []]);
  });

  /** What gathering the changes of real folders gives. */
  async function sideOf(label: string, base: CaseTree, now: CaseTree, own: GitStore): Promise<MergeSide> {
    const blobs = new Blobs();
    const changes: GatheredChange[] = [];
    for (const path of new Set([...base.keys(), ...now.keys()])) {
      const [old, young] = [base.get(path), now.get(path)];
      if (old?.mode === young?.mode && old?.content === young?.content) continue;
      const one = (file: CaseFile | undefined): GatheredChange["old"] =>
        file === undefined ? null : { mode: file.mode, mark: blobs.mark(file.content) };
      changes.push({ path: Buffer.from(path), type: "file", old: one(old), new: one(young) });
    }
    const changed = new Set(changes.map(({ path }) => path.toString()));
    const untouched = [...base.keys()].filter((path) => !changed.has(path));
    const robbed = new Set(changes.filter((change) => change.new === null).flatMap(({ path }) => above(path.toString())));
    const kept = [...robbed].filter((path) => untouched.some((each) => each.startsWith(`${path}/`))).map((path) => Buffer.from(path));
    const gathered: Gathered = { changes, kept, blobs: blobs.write(join(own.folder, label)), skipped: 0, more: false };
    return { label, changes: changeSetOf({ gathered, contents: (await own.write([], gathered.blobs)).contents }) };
  }
});

function above(path: string): string[] {
  const parts = path.split("/").slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}
