/** PROM-2: merges equal those of `git merge` on the same three trees, conflicts included. */
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { changeSetOf } from "../../src/machine/merge/change-set.ts";
import { mergeTrees, type ConflictKind } from "../../src/machine/merge/merge.ts";
import { GitStore, type TreeRequest } from "../../src/machine/merge/store.ts";
import { mergeSides, type MergeSide } from "../../src/machine/merge/three-way.ts";
import type { Gathered, GatheredChange } from "../../src/machine/volumes/gather.ts";
import { mergeCase, type CaseFile, type CaseTree, type MergeCase } from "../support/merge-cases.ts";

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

describe("PROM-2 a three-way merge", () => {
  let folder: string;
  let store: GitStore;
  let cases: { made: MergeCase; ours: string; theirs: string }[];

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "viv-merge-"));
    store = await GitStore.open(folder);
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
    rmSync(folder, { recursive: true, force: true });
  });

  const git = (cwd: string, ...args: string[]): string => execFileSync("git", args, { cwd, env: ENV, encoding: "latin1" });
  const listing = (tree: string): string =>
    sorted(git(join(store.folder, "git"), "ls-tree", "-r", "-z", tree).replaceAll(" blob ", " "), "\0");

  test("equals git merge on the same trees, conflicts included", { timeout: 180_000 }, async () => {
    const work = join(folder, "work");
    mkdirSync(work);
    git(work, "init", "-q", ".");
    writeFileSync(join(work, ".git/objects/info/alternates"), `${join(store.folder, "git/objects")}\n`);
    const seen = { clean: 0, conflict: 0, died: 0 };
    const kinds = new Set<ConflictKind>();
    const clean: { seed: number; commit: string; tree: string }[] = [];
    for (const [seed, { ours, theirs }] of cases.entries()) {
      const plain = mergeInFolder(work, ours, theirs);
      const merged = await mergeTrees(store, ours, theirs);
      const how = merged.conflicts.length === 0 ? "clean" : "conflict";
      if (plain.how === "clean") clean.push({ seed, commit: plain.commit, tree: merged.tree });
      const own = plain.how === "conflict" ? listing(merged.tree) : "";
      expect([seed, plain.how === "died" ? "conflict" : plain.how, plain.how === "conflict" ? plain.left : ""]).toEqual([seed, how, own]);
      seen[plain.how] += 1;
      for (const { kind } of merged.conflicts) kinds.add(kind);
    }
    const trees = treesOf(
      work,
      clean.map(({ commit }) => commit),
    );
    expect(clean.map(({ seed }, index) => [seed, trees[index]])).toEqual(clean.map(({ seed, tree }) => [seed, tree]));
    expect(seen.clean + seen.conflict).toBeGreaterThanOrEqual(500);
    expect(Math.min(seen.clean, seen.conflict)).toBeGreaterThan(100);
    expect([...kinds]).toEqual(expect.arrayContaining(["content", "binary", "delete/edit", "directory/file", "rename", "type"]));
  });

  /** What git itself makes of it: a commit, or what it left in the folder, with the commit's id where it says HEAD. */
  function mergeInFolder(
    work: string,
    ours: string,
    theirs: string,
  ): { how: "clean"; commit: string } | { how: "conflict"; left: string } | { how: "died" } {
    for (const name of readdirSync(work)) if (name !== ".git") rmSync(join(work, name), { recursive: true });
    git(work, "checkout", "-q", "-f", "--detach", ours);
    const { status, signal } = spawnSync("git", ["merge", "-q", "--no-edit", theirs], { cwd: work, env: ENV });
    if (signal === "SIGABRT") {
      // Some versions of git stop at a bug of their own when they write certain conflicts into a folder.
      rmSync(join(work, ".git/index.lock"), { force: true });
      return { how: "died" };
    }
    // A program fewer than asking git.
    if (status === 0) return { how: "clean", commit: readFileSync(join(work, ".git/HEAD"), "utf8").trim() };
    return { how: "conflict", left: leftIn(work, ours) };
  }

  function treesOf(work: string, commits: readonly string[]): string[] {
    const input = commits.map((commit) => `${commit}^{tree}\n`).join("");
    const told = execFileSync("git", ["cat-file", "--batch-check=%(objectname)"], { cwd: work, env: ENV, input, encoding: "utf8" });
    return told.trim().split("\n");
  }

  /** The files of a folder as git would list them; no link is followed. */
  function leftIn(work: string, ours: string): string {
    const rows = (under: string): string[] =>
      readdirSync(join(work, under), { withFileTypes: true }).flatMap((entry) => {
        const path = join(under, entry.name);
        if (path === ".git") return [];
        return entry.isDirectory() ? rows(path) : `${caseFileRow(join(work, path), ours)}\t${path.replaceAll("~HEAD", `~${ours}`)}`;
      });
    return sorted(rows("").join("\0"), "\0");
  }

  /** Files with markers say HEAD where the store says the commit: their ids are told for the latter. */
  function caseFileRow(path: string, ours: string): string {
    const found = lstatSync(path);
    if (found.isSymbolicLink()) return `120000 ${idOf({ mode: "120000", content: readlinkSync(path, "latin1") })}`;
    const content = readFileSync(path, "latin1").replaceAll("<<<<<<< HEAD", `<<<<<<< ${ours}`);
    const mode = (found.mode & 0o100) === 0 ? "100644" : "100755";
    return `${mode} ${idOf({ mode, content })}`;
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
      const whole = await mergeTrees(store, ours, theirs);
      const own = await GitStore.open(folder);
      try {
        const sides = [await sideOf("ours", made.base, made.ours, own), await sideOf("theirs", made.base, made.theirs, own)] as const;
        const merged = await mergeSides(own, ...sides);
        const result = new Map([...made.ours].map(([path, file]) => [path, `${file.mode} ${idOf(file)}`]));
        for (const change of merged.changes) {
          if (change.new === null) result.delete(change.path.toString());
          else result.set(change.path.toString(), `${change.new.mode} ${change.new.id}`);
        }
        const kinds = (list: typeof merged.conflicts): string[] =>
          list.map(({ kind, paths }) => `${kind} ${paths[0]?.toString().replace(/~.*/, "")}`).toSorted();
        expect([seed, ...kinds(merged.conflicts)]).toEqual([seed, ...kinds(whole.conflicts)]);
        // Labels differ, and with them the ids of files with markers and names beside a conflict.
        if (merged.conflicts.length > 0) continue;
        const all = [...result].map(([path, file]) => `${file}\t${path}`).join("\0");
        expect([seed, sorted(all, "\0")]).toEqual([seed, listing(whole.tree)]);
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
    const own = await GitStore.open(folder);
    const { changes, conflicts } = await mergeSides(own, await sideOf("ours", base, ours, own), await sideOf("theirs", base, theirs, own));
    await own.close();
    expect([changes.map(({ path }) => path.toString()), conflicts]).toEqual([["lib/c"], []]);
  });

  function idOf({ content }: CaseFile): string {
    const bytes = Buffer.from(content, "latin1");
    return createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
  }

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

function sorted(rows: string, between: string): string {
  return rows.split(between).filter(Boolean).toSorted().join("\n");
}
