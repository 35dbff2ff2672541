/** What the command line does with promotions: plans, stages, branches, undo. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { StageResult } from "../../src/base/schema/promotion.ts";
import { VivError } from "../../src/base/schema/errors.ts";
import { LabServer, result, type Result } from "../support/cli-lab-server.ts";
import { experimentOf, Lab, plan, promotionOf, verdict } from "../support/cli-lab.ts";
import { screenLines } from "../support/screen-lines.ts";

const lab = new Lab();
const server = new LabServer(lab);
const run = (...words: string[]): Promise<Result> => server.run(...words);

beforeAll(() => server.up());
beforeEach(() => lab.clear());
afterAll(() => server.remove());

function stage(name: string, state: StageResult["state"], checks: StageResult["checks"] = []): StageResult {
  return { name, state, reason: null, checks, endedAt: null };
}

describe("viv promote", () => {
  const changes = [
    { path: "src/new.js", status: "added", oldMode: null, newMode: "100644", hash: "1" },
    { path: "run.sh", status: "changed", oldMode: "100644", newMode: "100755", hash: "2" },
    { path: "old.js", status: "deleted", oldMode: "100644", newMode: null, hash: null },
  ] as const;

  test("PROM-3: a dry run shows files, modes, risks, what is left out, and the hash", async () => {
    lab.plan = plan({
      changes: [...changes],
      files: 3,
      notes: ["1 commit made inside is not carried."],
      risks: [{ path: "package.json", kind: "runs-by-itself", why: "npm runs its scripts." }],
      leftOut: [{ path: "node_modules", why: "git ignores it" }],
    });
    const { code, out } = await run("promote", "--dry-run", "box", "--only", "src", "--include", "dist");
    expect(code).toBe(0);
    expect(out.trimEnd().split("\n")).toEqual([
      "A  100644            src/new.js",
      "M  100644 -> 100755  run.sh",
      "D  100644            old.js",
      "risky  package.json: npm runs its scripts. (runs-by-itself)",
      "left out  node_modules: git ignores it",
      "note: 1 commit made inside is not carried.",
      "3 files, plan cafe",
    ]);
    expect(lab.called("planPromotion")).toEqual([{ sandbox: "box", only: ["src"], include: ["dist"] }]);
  });

  test("PM-10: names with newlines, control and direction characters or look-alike letters are shown as escapes", async () => {
    const paths = ["a\nD  100644  all", "b\u001b[2K", "c\u202etxt.js", "p\u0430ckage.json", "\u043f\u0440\u0438\u0432\u0435\u0442.txt"];
    lab.plan = plan({
      changes: paths.map((path) => ({ path, status: "added", oldMode: null, newMode: "100644", hash: "1" })),
      files: paths.length,
      conflicts: [{ path: "x\ny", kind: "content", message: "Both\u001b[1A changed it." }],
    });
    const { code, out } = await run("promote", "-n", "box");
    expect(code).toBe(3);
    expect(out.split("\n").slice(0, 6)).toEqual([
      String.raw`A  100644  a\nD  100644  all`,
      String.raw`A  100644  b\x1b[2K`,
      String.raw`A  100644  c\u{202e}txt.js`,
      String.raw`A  100644  p\u{430}ckage.json`,
      "A  100644  \u043f\u0440\u0438\u0432\u0435\u0442.txt",
      String.raw`conflict  x\ny: Both\x1b[1A changed it. (content)`,
    ]);
  });

  test("PROM-4: shows stages as they pass, and how to undo", async () => {
    const promotion = promotionOf({ plan: plan({ changes: [...changes], files: 3 }), stages: [stage("verified", "passed")] });
    lab.onPromote = async () => {
      lab.keep({ ...promotion, state: "applying" });
      await new Promise((resolve) => setTimeout(resolve, 300));
      return lab.keep({ ...promotion, state: "applied", stages: [stage("verified", "passed"), stage("dev", "passed")] });
    };
    const { code, out, err } = await run("promote", "box", "-m", "why", "--to", "dev", "--hash", "cafe", "--allow-risky", "-c", "true");
    expect(code).toBe(0);
    expect(out).toContain("3 files promoted into /project.");
    expect(err).toMatch(/^verified passed\ndev passed\nUndo with `viv undo prm\w{6}`\.$/m);
    expect(lab.called("promote")[0]).toMatchObject({
      sandbox: "box",
      message: "why",
      to: "dev",
      hash: "cafe",
      allowRisky: true,
      checks: ["true"],
      env: expect.objectContaining({ VIV_HOME: server.home }),
    });
  });

  test("PROM-6: makes a branch with all that was asked for", async () => {
    const branch = { name: "fix/T-12-count", commit: "0123456789abcdef", pushedTo: "origin", pullRequest: "https://forge/1" };
    lab.onPromote = async () => lab.keep(promotionOf({ branch, plan: plan({ files: 1 }) }));
    const names = ["--kind", "fix", "--ticket", "T-12", "--branch-name", "b", "--co-author", "A <a@b>"];
    const { code, out } = await run("promote", "box", "--branch", ...names, "--push", "origin", "--pr", "--keep-commits");
    expect({ code, out }).toMatchObject({
      code: 0,
      out: expect.stringContaining("Branch fix/T-12-count at 0123456789ab, pushed to origin."),
    });
    expect(out).toContain("Pull request: https://forge/1");
    expect(lab.called("promote")[0]?.["branch"]).toEqual({
      kind: "fix",
      ticket: "T-12",
      name: "b",
      push: "origin",
      pullRequest: true,
      keepCommits: true,
      coAuthor: "A <a@b>",
    });
  });

  test("takes the winner of an experiment, unless a sandbox has that name", async () => {
    const { id } = lab.add(experimentOf({ attempts: [{ command: "true" }] }));
    await run("promote", id.slice(0, 10));
    Object.assign(lab.box, { name: "expensive" });
    await run("promote", "expensive");
    Object.assign(lab.box, { name: "box" });
    expect(lab.called("promote")).toMatchObject([{ experiment: id }, { sandbox: "expensive" }]);
  });

  test("ends with 4 when it waits, 3 on conflicts, 1 when a check failed; a waiting one goes on with --approve", async () => {
    const waiting = promotionOf({ state: "waiting", reason: "package.json is risky." });
    lab.onPromote = async () => lab.keep(waiting);
    expect(await run("promote", "box")).toMatchObject({
      code: 4,
      err: expect.stringContaining(`viv approve ${waiting.id.slice(0, 9)}, or viv deny ${waiting.id.slice(0, 9)}`),
    });
    const conflicts = [{ path: "a", kind: "content", message: "Both changed it." }];
    lab.onPromote = async () => lab.keep(promotionOf({ state: "failed", reason: "Conflicts.", plan: plan({ conflicts }) }));
    expect(await run("promote", "box")).toMatchObject({ code: 3, out: expect.stringContaining("conflict  a: Both changed it.") });
    const failed = verdict(false).checks.map((check) => ({ ...check, output: `\u001b[32m${check.output}` }));
    const dev = stage("dev", "rolled-back", failed);
    lab.onPromote = async () => lab.keep(promotionOf({ state: "failed", reason: "A check failed.", stages: [dev] }));
    expect(await run("promote", "box")).toMatchObject({ code: 1, out: expect.stringContaining("\n  not ok 1 - counts from zero") });
    expect((await server.onTerminal(["promote", "box"])).out).toContain("\u001b[32mnot ok 1");
    lab.onPromote = async () => lab.keep({ ...waiting, state: "applied" });
    expect(await run("promote", waiting.id.slice(0, 9), "--approve")).toMatchObject({
      code: 4,
      err: expect.stringContaining("Only a person on a terminal"),
    });
    const approving = server.start(["promote", waiting.id.slice(0, 9), "--approve"], { VIV_APPROVER_TOKEN: "person" });
    expect(await result(approving)).toMatchObject({ code: 0 });
    expect(lab.called("continuePromotion")).toMatchObject([{ promotion: waiting.id, approve: true, approver: "person" }]);
    expect(await run("promote", waiting.id)).toMatchObject({ code: 2, err: expect.stringContaining("--approve or --to STAGE") });
  });
});

describe("viv promote on a terminal", () => {
  test("leaves no line behind of what it was doing when it failed", async () => {
    lab.onPromote = async () => {
      await new Promise((resolve) => setTimeout(resolve, 250));
      throw new VivError("busy", "Another promotion is under way.");
    };
    const { code, out } = await server.onTerminal(["promote", "box"]);
    expect(code).not.toBe(0);
    // Positive control: it was drawn.
    expect(out).toContain("planning");
    expect(screenLines(out).join("\n")).toMatch(/^viv: Another promotion is under way\./);
  });
});

describe("viv promotions and viv undo", () => {
  test("PROM-5: undo says what came back, of the last promotion or of a certain one", async () => {
    const done = lab.keep(promotionOf());
    const changes = [
      { path: "a.js", status: "changed", oldMode: "100644", newMode: "100644", hash: "1" },
      { path: "new.js", status: "deleted", oldMode: "100644", newMode: null, hash: null },
    ] as const;
    lab.onPromote = async () => lab.keep(promotionOf({ kind: "undo", undoes: done.id, plan: plan({ changes: [...changes], files: 2 }) }));
    const { code, out } = await run("undo");
    expect({ code, out }).toEqual({
      code: 0,
      out: `a.js is as it was\nnew.js is gone again\n${done.id.slice(0, 9)} is undone: 2 files in /project.\n`,
    });
    await run("undo", done.id.slice(0, 12));
    expect(lab.called("undoPromotion")).toEqual([{ project: server.home }, { promotion: done.id }]);
  });

  test("promotions shows where each change stands, and says when there is none", async () => {
    expect(await run("promotions")).toMatchObject({ code: 0, out: "", err: expect.stringContaining("There are no promotions") });
    lab.keep(promotionOf({ stages: [stage("dev", "passed")], plan: plan({ files: 3 }) }));
    lab.keep(promotionOf({ project: "/other", state: "failed", reason: "A check failed.", pending: true }));
    const { out } = await run("promotions");
    expect(out).toMatch(/^ID +WHEN +PROJECT +SANDBOX +FILES +STAGE +STATE$/m);
    expect(out).toMatch(/^prm\w{6} +now +\/project +box +3 +dev +applied$/m);
    expect(out).toMatch(/interrupted: A check failed\.$/m);
  });

  test("status warns of a promotion that is not finished, and of no other", async () => {
    lab.keep(promotionOf());
    expect(await run("status")).toMatchObject({ code: 0, err: "" });
    const { id } = lab.keep(promotionOf({ state: "applying", pending: true }));
    expect(await run("status")).toMatchObject({ code: 0, err: expect.stringContaining(`Promotion ${id} is not finished`) });
    expect(JSON.parse((await run("status", "--json")).out)).toMatchObject({ running: true, pendingPromotions: [id] });
  });
});
