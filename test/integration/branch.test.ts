/** PROM-6: a change becomes a branch of the real repository, and nothing else of it moves. */
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Contents } from "../../src/machine/merge/contents.ts";
import { prepareBranch, removeBranch } from "../../src/work/promotion/branch.ts";
import { BranchLab, createBranch } from "../support/branch-lab.ts";
import { needs } from "../support/skip.ts";

let lab: BranchLab;
const others: BranchLab[] = [];

beforeEach(() => {
  lab = new BranchLab();
});
afterEach(() => {
  for (const each of [lab, ...others.splice(0)]) each.close();
});

const lines = (...changed: readonly [number, string][]): string =>
  Array.from({ length: 30 }, (_, index) => changed.find(([at]) => at === index)?.[1] ?? `line ${index}`).join("\n") + "\n";

async function made(request: Parameters<typeof createBranch>[0]): Promise<string> {
  const result = await createBranch(request);
  if (result.outcome === "conflict") throw new Error(`conflict: ${result.conflicts.map(({ message }) => message).join("; ")}`);
  return result.commit;
}

describe("a branch", () => {
  test("PROM-6: it holds the change on the given commit, and checkout, index, HEAD, stash and edits stay byte for byte", async () => {
    lab.write({ "a.txt": lines(), "gone.txt": "gone\n", "staged.txt": "1\n", "stashed.txt": "1\n" });
    const parent = lab.commit("first");
    lab.write({ "stashed.txt": "2\n" });
    lab.git("stash", "-q");
    lab.write({ "later.txt": "later\n" });
    lab.commit("second");
    // The user edited the first line of the file whose last line the sandbox changed, staged one file and left one untracked.
    lab.write({ "a.txt": lines([0, "the user's line"]), "staged.txt": "2\n", "untracked.txt": "mine\n" });
    lab.git("add", "staged.txt");
    const before = lab.fingerprint();
    const stash = lab.git("rev-parse", "refs/stash");

    const commit = await made(
      lab.request(
        parent,
        [
          lab.change("a.txt", lines([0, "the user's line"]), lines([0, "the user's line"], [29, "the sandbox's line"])),
          lab.change("gone.txt", "gone\n", null),
          lab.change("new/b.txt", null, { mode: "100755", bytes: "b\n" }),
        ],
        {
          message: "Fix the last line\n\nIt was wrong.",
          checks: [{ name: "npm test", passed: true }],
          coAuthor: "Agent <agent@example.com>",
        },
      ),
    );

    expect(lab.fingerprint()).toEqual(before);
    expect(lab.git("rev-parse", "fix/it")).toBe(commit);
    expect(lab.git("rev-parse", "fix/it^")).toBe(parent);
    expect(lab.git("rev-parse", "refs/stash")).toBe(stash);
    expect(lab.list(commit)).toEqual(["100644 a.txt", "100755 new/b.txt", "100644 staged.txt", "100644 stashed.txt"]);
    expect(lab.show(`${commit}:a.txt`).toString()).toBe(lines([29, "the sandbox's line"]));
    expect(lab.git("log", "-1", "--format=%an <%ae>|%cn <%ce>", commit)).toBe("Ada User <ada@example.com>|Ada User <ada@example.com>");
    expect(lab.git("log", "-1", "--format=%B", commit)).toBe(
      [
        "Fix the last line\n\nIt was wrong.\n\nChanged:\n- a.txt (+1 -1)\n- gone.txt (deleted, +0 -1)\n- new/b.txt (added, +1 -0)",
        "\n\nChecks:\n- npm test: passed\n\nCo-authored-by: Agent <agent@example.com>",
      ].join(""),
    );
    expect(lab.git("log", "-1", "--format=%(trailers:key=Co-authored-by,valueonly)", commit)).toBe("Agent <agent@example.com>");
    expect(lab.git("fsck", "--strict", "--no-dangling")).toBe("");
    expect(readdirSync(lab.temporary)).toEqual([]);
  });

  test("PROM-6: bytes are exact, whatever git's settings for line ends are, and paths are bytes", async () => {
    lab.write({ "crlf.txt": "a\r\nb\r\n", turns: "file\n", "folder/x": "x\n" });
    symlinkSync("turns", join(lab.project, "link"));
    lab.git("config", "core.autocrlf", "false");
    const parent = lab.commit("first");
    lab.git("config", "core.autocrlf", "true");
    const binary = Buffer.from(Array.from({ length: 70_000 }, (_, index) => (index * 7) % 256));
    const odd = Buffer.from('odd \n\t"name\u00ff', "latin1");
    const commit = await made(
      lab.request(parent, [
        lab.change("crlf.txt", "a\r\nb\r\n", "a\r\nb\r\nc\n"),
        lab.change("turns", "file\n", null),
        lab.change("turns/into", null, "a folder\r\n"),
        lab.change("folder", null, "a file\n"),
        lab.change("folder/x", "x\n", null),
        lab.change("link", { mode: "120000", bytes: "turns" }, { mode: "120000", bytes: "/etc/passwd" }),
        lab.change("binary", null, binary),
        lab.change(odd, null, "odd\n"),
      ]),
    );
    expect(lab.show(`${commit}:crlf.txt`).toString()).toBe("a\r\nb\r\nc\n");
    expect(lab.show(`${commit}:turns/into`).toString()).toBe("a folder\r\n");
    expect(lab.show(`${commit}:folder`).toString()).toBe("a file\n");
    expect(lab.show(`${commit}:link`).toString()).toBe("/etc/passwd");
    expect(lab.show(`${commit}:binary`).equals(binary)).toBe(true);
    expect(lab.list(commit)).toContain(String.raw`100644 "odd \n\t\"name\377"`);
    expect(lab.git("log", "-1", "--format=%B", commit)).toContain("- binary (added, binary)");
  });

  test("PROM-6: a file that lies with CRLF in the checkout and LF in the commit keeps the commit's line ends", async () => {
    const crlf = (text: string): string => text.replaceAll("\n", "\r\n");
    lab.git("config", "core.autocrlf", "true");
    lab.write({ clean: crlf(lines()), edited: crlf(lines()), exact: "no line end" });
    const parent = lab.commit("first");
    expect(lab.show(`${parent}:clean`).toString()).toBe(lines());
    const now = lines([29, "the sandbox's"]);
    const commit = await made(
      lab.request(parent, [
        lab.change("clean", crlf(lines()), crlf(now)),
        lab.change("edited", crlf(lines([0, "the user's"])), crlf(lines([0, "the user's"], [29, "the sandbox's"]))),
        lab.change("exact", "no line end", "one\r\n"),
        lab.change("new", null, "new\r\n"),
      ]),
    );
    expect(lab.show(`${commit}:clean`).toString()).toBe(now);
    expect(lab.show(`${commit}:edited`).toString()).toBe(now);
    expect(lab.show(`${commit}:exact`).toString()).toBe("one\r\n");
    expect(lab.show(`${commit}:new`).toString()).toBe("new\r\n");
  });

  test("PROM-6: hundreds of files arrive as one pack", async () => {
    lab.write({ a: "a\n" });
    const parent = lab.commit("first");
    const changes = Array.from({ length: 300 }, (_, index) => lab.change(`many/${index}`, null, `${index}\n`));
    const commit = await made(lab.request(parent, changes));
    expect(lab.list(commit)).toHaveLength(301);
    expect(lab.git("log", "-1", "--format=%B", commit)).toContain("- and 250 more");
    expect(readdirSync(join(lab.project, ".git/objects/pack")).filter((name) => name.endsWith(".pack"))).toHaveLength(1);
  });

  test("PROM-6: detached HEAD, worktrees, folders of a repository, shallow, partial and shared clones and SHA-256 are all fine", async () => {
    lab.write({ "sub/a": "a\n", b: "b\n" });
    const first = lab.commit("first");
    lab.write({ b: "c\n" });
    const parent = lab.commit("second");
    lab.git("checkout", "-q", "--detach");
    const detached = lab.fingerprint();
    await made(lab.request(parent, [lab.change("b", "c\n", "d\n")], { branch: "detached" }));
    expect(lab.fingerprint()).toEqual(detached);

    const worktree = join(lab.place, "worktree");
    lab.git("worktree", "add", "-q", worktree, first);
    await made(lab.request(first, [lab.change("b", "b\n", "e\n")], { project: worktree, branch: "from-worktree" }));
    expect(lab.show("from-worktree:b").toString()).toBe("e\n");

    await made(lab.request(parent, [lab.change("a", "a\n", "f\n")], { project: join(lab.project, "sub"), branch: "from-folder" }));
    expect(lab.show("from-folder:sub/a").toString()).toBe("f\n");
    expect(lab.list("from-folder")).toEqual(["100644 b", "100644 sub/a"]);

    lab.git("config", "uploadpack.allowFilter", "true");
    for (const kind of ["--depth=1", "--filter=blob:none", "--shared"]) {
      const clone = join(lab.place, `clone${kind}`);
      lab.gitIn(lab.place, "clone", "-q", kind, kind === "--shared" ? lab.project : `file://${lab.project}`, clone);
      await made(lab.request(parent, [lab.change("b", "c\n", "g\n")], { project: clone, branch: "from-clone" }));
      expect(lab.gitIn(clone, "show", "from-clone:b")).toBe("g");
    }

    const wide = new BranchLab(["--object-format=sha256"]);
    others.push(wide);
    wide.write({ b: lines(), kept: "kept\n" });
    const wideParent = wide.commit("first");
    const edited = lines([0, "edited"]);
    await made(wide.request(wideParent, [wide.change("b", edited, lines([0, "edited"], [29, "x"])), wide.change("new", null, "new\n")]));
    expect(wide.show("fix/it:b").toString()).toBe(lines([29, "x"]));
    expect(wide.git("rev-parse", "fix/it")).toHaveLength(64);
  });

  test("PROM-6: where the sandbox's part does not go without the user's edits, that is a conflict and nothing is made", async () => {
    lab.write({ a: "one\n", deleted: "x\n" });
    const parent = lab.commit("first");
    lab.write({ a: "two\n", untracked: "mine\n" });
    const before = lab.fingerprint();
    const result = await createBranch(
      lab.request(parent, [
        lab.change("a", "two\n", "three\n"),
        lab.change("untracked", "mine\n", "yours\n"),
        lab.change("b", null, "b\n"),
      ]),
    );
    expect(result).toMatchObject({ outcome: "conflict" });
    const found = result.outcome === "conflict" ? result.conflicts.map(({ kind, paths }) => `${kind} ${String(paths[0])}`) : [];
    expect(found.toSorted()).toEqual(["content a", "delete/edit untracked"]);
    expect(lab.fingerprint()).toEqual(before);
    expect(lab.git("branch", "--list", "fix/*")).toBe("");
    expect(readdirSync(lab.temporary)).toEqual([]);
  });

  test("PROM-6: the answer to a conflict holds the merged state with its markers", async () => {
    lab.write({ "sub/a": "one\n", "sub/keep": "keep\n" });
    const parent = lab.commit("first");
    const project = join(lab.project, "sub");
    const result = await prepareBranch(
      lab.request(parent, [lab.change("a", "two\n", "three\n"), lab.change("b", null, "b\n")], { project }),
    );
    if (result.outcome !== "conflict") throw new Error("no conflict");
    const held = new Contents(result.contents);
    const merged = result.changes.map(({ path, new: now }) => [path.toString(), held.read(now?.id ?? "").toString()]);
    expect(merged).toEqual([
      ["a", "<<<<<<< committed\none\n=======\nthree\n>>>>>>> sandbox\n"],
      ["b", "b\n"],
    ]);
    held.close();
    await result.close();
    expect(existsSync(result.contents)).toBe(false);
  });

  test("PROM-6: a branch is taken away only where it was made and is not checked out", async () => {
    lab.write({ a: "one\n" });
    const parent = lab.commit("first");
    const commit = await made(lab.request(parent, [lab.change("a", "one\n", "two\n")]));
    expect(await removeBranch(lab.project, "fix/it", parent)).toBe(false);
    lab.git("worktree", "add", "-q", join(lab.place, "worktree"), "fix/it");
    expect(await removeBranch(lab.project, "fix/it", commit)).toBe(false);
    lab.git("worktree", "remove", join(lab.place, "worktree"));
    expect(await removeBranch(lab.project, "fix/it", commit)).toBe(true);
    expect(lab.git("branch", "--list", "fix/*")).toBe("");
  });

  test("PROM-6: a change that the commit has already is nothing to commit", async () => {
    lab.write({ a: "one\n" });
    const parent = lab.commit("first");
    await expect(createBranch(lab.request(parent, [lab.change("a", "edited\n", "one\n")]))).rejects.toThrow(/nothing to commit/);
  });

  test("PROM-6: a branch that exists is never overwritten, also if it appears at the last moment", async () => {
    lab.write({ a: "one\n" });
    const parent = lab.commit("first");
    const changes = [lab.change("a", "one\n", "two\n")];
    lab.git("branch", "taken");
    lab.git("branch", "taken-2");
    const taken = createBranch(lab.request(parent, changes, { branch: "taken" }));
    await expect(taken).rejects.toMatchObject({ code: "exists", remedy: expect.stringContaining("taken-3") as string });
    await expect(createBranch(lab.request(parent, changes, { branch: "taken/below" }))).rejects.toMatchObject({ code: "exists" });
    const prepared = await prepareBranch(lab.request(parent, changes, { branch: "raced" }));
    if (prepared.outcome !== "ready") throw new Error("a conflict");
    lab.git("branch", "raced");
    await expect(prepared.publish()).rejects.toMatchObject({ code: "exists" });
    await prepared.close();
    expect(["taken", "raced"].map((name) => lab.git("rev-parse", name))).toEqual([parent, parent]);
    lab.git("symbolic-ref", "HEAD", "refs/heads/unborn");
    await expect(createBranch(lab.request(parent, changes, { branch: "unborn" }))).rejects.toMatchObject({ code: "exists" });
  });

  test("PROM-6: without a name and address of the user nothing is made, and the error says what to do", async () => {
    lab.write({ a: "one\n" });
    const parent = lab.commit("first");
    writeFileSync(join(lab.home, ".gitconfig"), "");
    await expect(createBranch(lab.request(parent, [lab.change("a", "one\n", "two\n")]))).rejects.toMatchObject({
      code: "config_invalid",
      remedy: expect.stringContaining("user.email") as string,
    });
    await expect(createBranch(lab.request("0".repeat(40), []))).rejects.toMatchObject({ code: "not_found" });
    await expect(createBranch(lab.request("HEAD", []))).rejects.toMatchObject({ code: "not_found" });
    const none = { project: lab.home };
    await expect(createBranch(lab.request(parent, [], none))).rejects.toMatchObject({ code: "unsupported" });
  });
});

describe("a hostile or special repository", () => {
  const marker = (): string => join(lab.place, "marker");

  test("HG-01 PROM-6: no hook and no program of the settings runs; with plain git they do", async () => {
    lab.write({ a: "one\n" });
    const parent = lab.commit("first");
    const script = `#!/bin/sh\necho "$0" >> ${marker()}\n`;
    for (const hook of ["reference-transaction", "post-commit", "pre-commit", "post-index-change", "commit-msg"]) {
      writeFileSync(join(lab.project, ".git/hooks", hook), script);
      chmodSync(join(lab.project, ".git/hooks", hook), 0o755);
    }
    writeFileSync(join(lab.place, "program"), script);
    chmodSync(join(lab.place, "program"), 0o755);
    for (const key of ["core.fsmonitor", "core.editor", "core.pager", "gpg.program", "core.alternateRefsCommand"])
      lab.git("config", key, join(lab.place, "program"));
    lab.git("config", "commit.gpgSign", "true");
    await made(lab.request(parent, [lab.change("a", "one\n", "two\n")]));
    expect(existsSync(marker())).toBe(false);
    expect(lab.git("-c", "core.hooksPath=/dev/null", "cat-file", "-p", "fix/it")).not.toContain("gpgsig");
    lab.git("branch", "plain");
    expect(existsSync(marker())).toBe(true);
  });

  test("HG-03 PROM-6: a path with a filter is refused by name, wherever the attribute stands, and the filter does not run", async () => {
    lab.write({
      ".gitattributes": "*.bin filter=lfs\n",
      "deep/.gitattributes": "x working-tree-encoding=UTF-16\n",
      a: "a\n",
      "b.txt": "b\n",
    });
    const parent = lab.commit("first");
    const clean = `sh -c 'touch ${marker()}; cat'`;
    execFileSync("git", ["config", "--global", "filter.lfs.clean", clean], { env: lab.environment });
    execFileSync("git", ["config", "--global", "core.attributesFile", join(lab.home, "attributes")], { env: lab.environment });
    writeFileSync(join(lab.home, "attributes"), "*.mine filter=lfs\n");
    writeFileSync(join(lab.project, ".git/info/attributes"), "*.info filter=lfs\n");
    const refused = async (...changes: Parameters<BranchLab["change"]>[]): Promise<void> => {
      await expect(
        createBranch(
          lab.request(
            parent,
            changes.map((each) => lab.change(...each)),
          ),
        ),
      ).rejects.toMatchObject({ code: "unsupported", message: expect.stringContaining(`"${String(changes[0]?.[0])}"`) as string });
    };
    await refused(["big.bin", null, "x"]);
    await refused(["deep/x", null, "x"]);
    await refused(["a.mine", null, "x"]);
    await refused(["a.info", null, "x"]);
    await refused(["b.txt", "b\n", "c\n"], [".gitattributes", "*.bin filter=lfs\n", "*.bin filter=lfs\n*.txt filter=lfs\n"]);
    // The user took the attribute away in the checkout alone: the commit still has it.
    lab.write({ ".gitattributes": "" });
    await refused(["big.bin", null, "x"]);
    // So does it where the change takes it away.
    await refused(["big.bin", null, "x"], [".gitattributes", "", "# nothing\n"]);
    await made(lab.request(parent, [lab.change("a", "a\n", "b\n")]));
    expect(existsSync(marker())).toBe(false);
    lab.write({ "big.info": "x" });
    lab.git("add", "big.info");
    expect(existsSync(marker())).toBe(true);
  });

  test("PROM-6: what lies in a submodule is refused by name", async () => {
    const inner = new BranchLab();
    others.push(inner);
    inner.write({ x: "x\n" });
    inner.commit("inner");
    lab.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", inner.project, "module");
    const parent = lab.commit("first");
    for (const change of [lab.change("module/x", "x\n", "y\n"), lab.change("module", null, "y\n")])
      await expect(createBranch(lab.request(parent, [change]))).rejects.toThrow(/in a submodule/);
  });

  test("HG-10 PROM-6: paths that some file system takes for .git, or that lead out, are refused", async () => {
    lab.write({ a0: "a\n" });
    const parent = lab.commit("first");
    const evil = [".git/config", "a/.GIT/hooks/x", "git~1/x", ".git\u200c/config", ".git./x", "a/.git", ".git::$INDEX_ALLOCATION/x"];
    for (const path of [...evil, "a//b", "../x", "./x", "/x", ""])
      await expect(createBranch(lab.request(parent, [lab.change(path, null, "x")])), path).rejects.toMatchObject({ code: "unsupported" });
  });

  test("PROM-6: a project of another user gets its objects as its owner", needs("root"), async () => {
    lab.write({ a: "one\n" });
    lab.git("config", "user.name", "Owner");
    lab.git("config", "user.email", "owner@example.com");
    const parent = lab.commit("first");
    mkdirSync(join(lab.project, ".git/refs/heads/fix"));
    execFileSync("chown", ["-R", "65534:65534", lab.project]);
    chmodSync(lab.place, 0o755);
    chownSync(lab.temporary, 0, 0);
    chmodSync(lab.temporary, 0o700);
    const commit = await made(lab.request(parent, [lab.change("a", "one\n", "two\n")]));
    const object = join(lab.project, ".git/objects", commit.slice(0, 2), commit.slice(2));
    expect([object, join(lab.project, ".git/refs/heads/fix/it")].map((path) => lstatSync(path).uid)).toEqual([65534, 65534]);
    const foreign = execFileSync("find", [lab.project, "-not", "-user", "65534"], { encoding: "utf8" });
    expect(foreign).toBe("");
  });
});
