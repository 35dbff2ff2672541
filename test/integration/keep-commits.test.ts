/** PROM-6: commits made inside a sandbox, made again on the real repository. The inside is a clone that tells what it likes. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { BranchCommits } from "../../src/work/promotion/branch.ts";
import { VivError } from "../../src/base/schema/errors.ts";
import type { RunInside } from "../../src/work/promotion/keep-commits.ts";
import { BranchLab, createBranch } from "../support/branch-lab.ts";

let lab: BranchLab;
let inside: string;
let parent: string;

beforeEach(() => {
  lab = new BranchLab();
  lab.write({ a: "one\n", edited: "committed\n" });
  parent = lab.commit("first");
  inside = join(lab.place, "inside");
  lab.gitIn(lab.place, "clone", "-q", "--no-local", lab.project, inside);
  lab.gitIn(inside, "config", "user.name", "Agent <x>");
  lab.gitIn(inside, "config", "user.email", "agent@example.com");
});
afterEach(() => lab.close());

/** As a sandbox runs it; `change` stands for one that lies. */
function runner(change: (command: readonly string[], output: Buffer) => Buffer = (_, output) => output): RunInside {
  return async function* (command) {
    const [program = "", ...args] = command;
    const { status, stdout, stderr } = spawnSync(program, args, { cwd: inside, env: lab.environment });
    if (status !== 0) throw new Error(stderr.toString());
    const output = change(command, stdout);
    for (let at = 0; at < output.length; at += 1000) yield output.subarray(at, at + 1000);
  };
}

function commitInside(message: string, files: Readonly<Record<string, string>>): string {
  lab.write(files, inside);
  lab.gitIn(inside, "add", "-A");
  lab.gitIn(inside, "commit", "-q", "--allow-empty", "-m", message);
  return lab.gitIn(inside, "rev-parse", "HEAD");
}

async function kept(changes: ReturnType<BranchLab["change"]>[], run = runner()): Promise<BranchCommits> {
  const result = await createBranch(lab.request(parent, changes, { keepCommits: run, coAuthor: "Agent <agent@example.com>" }));
  if (result.outcome === "conflict") throw new Error("a conflict");
  return result;
}

describe("commits made inside", () => {
  test("PROM-6: they are replayed one by one, with author, date and message, and the last tree is exactly the change", async () => {
    commitInside("Second line\n\nBecause.", { a: "one\ntwo\n" });
    commitInside("A binary, too", { b: "\0\u0001binary", "c/d": "d\n" });
    const before = lab.fingerprint();
    const result = await kept([
      lab.change("a", "one\n", "one\ntwo\n"),
      lab.change("b", null, "\0\u0001binary"),
      lab.change("c/d", null, "d\n"),
    ]);
    expect(result.kept.map(({ subject }) => subject)).toEqual(["Second line", "A binary, too"]);
    expect(result.notes).toEqual([]);
    expect(lab.git("log", "--format=%s|%an|%ae|%cn", `${parent}..fix/it`).split("\n")).toEqual([
      "A binary, too|Agent x|agent@example.com|Ada User",
      "Second line|Agent x|agent@example.com|Ada User",
    ]);
    expect(lab.git("log", "-1", "--format=%B", "fix/it^")).toBe("Second line\n\nBecause.\n\nCo-authored-by: Agent <agent@example.com>");
    expect(lab.git("log", "-1", "--format=%at", "fix/it")).toBe(lab.gitIn(inside, "log", "-1", "--format=%at"));
    expect(lab.git("rev-parse", "fix/it^{tree}")).toBe(lab.gitIn(inside, "rev-parse", "HEAD^{tree}"));
    expect(lab.fingerprint()).toEqual(before);
  });

  test("PROM-6: what was not committed inside comes in a last commit, and that is said", async () => {
    commitInside("Half", { a: "half\n" });
    const result = await kept([lab.change("a", "one\n", "whole\n"), lab.change("b", null, "b\n")]);
    expect(result.notes).toEqual(["What the commits made inside do not hold is in a last commit of its own."]);
    expect(lab.git("log", "--format=%s", `${parent}..fix/it`)).toBe("Fix it\nHalf");
    expect(lab.show("fix/it:a").toString()).toBe("whole\n");
    expect(lab.show("fix/it~1:a").toString()).toBe("half\n");
  });

  test("PROM-6: without commits inside there is one commit, and that is said", async () => {
    const result = await kept([lab.change("a", "one\n", "two\n")]);
    expect(result).toMatchObject({ kept: [], notes: ["No commit was made inside."] });
    expect(lab.git("rev-parse", "fix/it^")).toBe(parent);
  });

  test("PROM-6: nothing that the change does not hold comes along in the history, nor do edits of the user", async () => {
    commitInside("With a secret", { a: "two\n", secret: "s3cret\n", edited: "the user's edit\n" });
    execFileSync("rm", [join(inside, "secret")]);
    commitInside("Without it", { edited: "the user's edit\nmore\n" });
    lab.write({ edited: "the user's edit\n" });
    const result = await createBranch(
      lab.request(parent, [lab.change("a", "one\n", "two\n"), lab.change("new", null, "new\n")], { keepCommits: runner() }),
    );
    expect(result).toMatchObject({ outcome: "ready" });
    const objects = lab.git("rev-list", "--objects", "fix/it", `^${parent}`);
    expect(objects).not.toContain("secret");
    expect(objects).not.toContain("edited");
    expect(result.outcome === "ready" && result.notes[0]).toMatch(/^1 of 2 commits/);
    const secret = lab.gitIn(inside, "rev-parse", "HEAD~1:secret");
    expect(spawnSync("git", ["-C", lab.project, "cat-file", "-e", secret]).status).not.toBe(0);
  });

  test("PROM-6: a file that the user had edited comes last, with the sandbox's part alone", async () => {
    const whole = (first: string, last: string): string => [first, "b\nc\nd\ne\nf\ng\nh", last, ""].join("\n");
    lab.write({ edited: whole("a", "z") });
    parent = lab.commit("longer");
    lab.gitIn(inside, "pull", "-q");
    lab.write({ edited: whole("the user's", "z") });
    commitInside("All of it", { a: "two\n", edited: whole("the user's", "the sandbox's") });
    const result = await kept([
      lab.change("a", "one\n", "two\n"),
      lab.change("edited", whole("the user's", "z"), whole("the user's", "the sandbox's")),
    ]);
    expect(result.kept).toHaveLength(1);
    expect(result.notes).toHaveLength(2);
    expect(lab.show("fix/it~1:edited").toString()).toBe(whole("a", "z"));
    expect(lab.show("fix/it:edited").toString()).toBe(whole("a", "the sandbox's"));
  });

  test("PROM-6: a merge made inside becomes one commit", async () => {
    lab.gitIn(inside, "checkout", "-q", "-b", "side");
    commitInside("On the side", { side: "side\n" });
    lab.gitIn(inside, "checkout", "-q", "main");
    commitInside("On the main line", { a: "two\n" });
    lab.gitIn(inside, "merge", "-q", "--no-edit", "side");
    const result = await kept([lab.change("a", "one\n", "two\n"), lab.change("side", null, "side\n")]);
    expect(result.kept.map(({ subject }) => subject)).toEqual(["On the main line", "Merge branch 'side'"]);
    expect(lab.git("rev-list", "--merges", "fix/it")).toBe("");
  });
});

describe("a sandbox that lies about its commits", () => {
  /** What the error is; nothing was made. */
  const refused = async (run: RunInside): Promise<string> => {
    const before = lab.fingerprint();
    const changes = [lab.change("a", "one\n", "two\n")];
    const error = await createBranch(lab.request(parent, changes, { keepCommits: run })).catch((caught: unknown) => caught);
    expect(lab.git("branch", "--list", "fix/*")).toBe("");
    expect(lab.fingerprint()).toEqual(before);
    return error instanceof VivError ? error.code : "";
  };
  const bundle = (change: (output: Buffer) => Buffer): RunInside =>
    runner((command, output) => (command.includes("bundle") ? change(output) : output));

  test("PROM-6: commits that do not begin where the sandbox began are refused", async () => {
    lab.gitIn(inside, "checkout", "-q", "--orphan", "other");
    commitInside("Orphan", { a: "two\n" });
    expect(await refused(runner())).toBe("unsupported");
  });

  test("HG-09 PROM-6: what is no bundle, is cut off or damaged is refused", async () => {
    commitInside("Real", { a: "two\n" });
    expect(await refused(bundle(() => Buffer.from("garbage")))).toBe("unsupported");
    expect(await refused(bundle(() => Buffer.alloc(200_000, "x")))).toBe("unsupported");
    expect(await refused(bundle((output) => output.subarray(0, -30)))).toBe("unsupported");
    expect(
      await refused(
        bundle((output) => {
          const broken = Buffer.from(output);
          broken[output.length - 40] = (broken[output.length - 40] ?? 0) ^ 0xff;
          return broken;
        }),
      ),
    ).toBe("unsupported");
    expect(
      await refused(
        bundle((output) => Buffer.from(output.toString("latin1").replace(" HEAD\n", " refs/heads/--upload-pack=x\n"), "latin1")),
      ),
    ).toBe("unsupported");
  });

  test("HG-09 PROM-6: trees with a .git inside do not pass, and git itself would have taken them", async () => {
    const blob = lab.gitIn(inside, "rev-parse", "HEAD:a");
    const entry = (name: string): Buffer => Buffer.concat([Buffer.from(`100644 ${name}\0`), Buffer.from(blob, "hex")]);
    const tree = execFileSync("git", ["-C", inside, "hash-object", "-t", "tree", "-w", "--literally", "--stdin"], {
      input: entry(".GIT"),
      encoding: "utf8",
    }).trim();
    const commit = lab.gitIn(inside, "commit-tree", "-p", "HEAD", "-m", "Evil", tree);
    lab.gitIn(inside, "update-ref", "HEAD", commit);
    expect(await refused(runner())).toBe("unsupported");
    const pack = join(lab.place, "evil.bundle");
    lab.gitIn(inside, "bundle", "create", "-q", pack, "HEAD", `^${parent}`);
    lab.git("bundle", "unbundle", pack);
    expect(lab.git("cat-file", "-t", commit)).toBe("commit");
  });

  test("PROM-6: more commits than a replay takes are refused", async () => {
    const stream = Array.from({ length: 202 }, (_, index) => {
      const from = index === 0 ? `from ${parent}\n` : "";
      return `commit refs/heads/many\ncommitter a <a> ${index} +0000\ndata 1\nx\n${from}M 100644 inline a\ndata 4\n${String(index).padStart(4, "0")}\n`;
    });
    execFileSync("git", ["-C", inside, "fast-import", "--quiet"], { input: stream.join("") });
    lab.gitIn(inside, "symbolic-ref", "HEAD", "refs/heads/many");
    expect(await refused(runner())).toBe("too_large");
  });

  test("HG-09 PROM-6: a small pack of endless contents is refused", async () => {
    const size = 101 * 1024 ** 2;
    const zeros = join(lab.place, "zeros");
    writeFileSync(zeros, "");
    truncateSync(zeros, size);
    const blob = lab.gitIn(inside, "hash-object", "-w", "--no-filters", zeros);
    lab.gitIn(inside, "update-index", "--cacheinfo", `100644,${blob},a`);
    lab.gitIn(inside, "commit", "-q", "-m", "Bomb");
    commitInside("Small again", { a: "two\n" });
    expect(await refused(runner())).toBe("too_large");
  });

  test("HG-01 PROM-6: settings and hooks of the repository inside run nothing outside", async () => {
    const marker = join(lab.place, "marker");
    writeFileSync(join(inside, ".gitattributes"), "* filter=evil diff=evil merge=evil\n");
    commitInside("Evil attributes", { a: "two\n" });
    for (const key of ["filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "merge.evil.driver", "core.fsmonitor"])
      lab.gitIn(inside, "config", key, `touch ${marker}; cat`);
    const run = runner((_, output) => output);
    // What runs inside is the sandbox's own affair: only what happens after it counts.
    const watched: RunInside = async function* (command) {
      yield* run(command);
      execFileSync("rm", ["-f", marker]);
    };
    await createBranch(lab.request(parent, [lab.change("a", "one\n", "two\n")], { keepCommits: watched }));
    expect(existsSync(marker)).toBe(false);
  });

  test("PROM-6: messages and names hold nothing that a terminal or git would act on", async () => {
    const evil = "Sub\u001b[2Jject\u202e\r\n\nBody\u0000";
    const text = `tree ${lab.gitIn(inside, "rev-parse", "HEAD^{tree}")}\nparent ${parent}\nauthor \u001b]0;x\u0007 <a@b> 1 +0000\ncommitter x <x@y> 1 +0000\n\n${evil}`;
    lab.write({ a: "two\n" }, inside);
    lab.gitIn(inside, "add", "-A");
    const tree = lab.gitIn(inside, "write-tree");
    const raw = text.replace(/^tree \w+/, `tree ${tree}`).replace("\u0000", "");
    const commit = execFileSync("git", ["-C", inside, "hash-object", "-t", "commit", "-w", "--literally", "--stdin"], {
      input: raw,
      encoding: "utf8",
    }).trim();
    lab.gitIn(inside, "update-ref", "HEAD", commit);
    await kept([lab.change("a", "one\n", "two\n")]);
    const written = lab.git("log", "-1", "--format=%an|%B", "fix/it");
    expect(written).toBe("]0;x|Sub[2Jject\n\nBody\n\nCo-authored-by: Agent <agent@example.com>");
  });
});
