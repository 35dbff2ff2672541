import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { attempt, Lab } from "../support/experiments.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** `value` is wrong until it says "right". */
const FILES = {
  value: "wrong\n",
  other: "untouched\n",
  "test/check.sh": 'grep -q right value || { echo "not right"; exit 1; }\n',
  ".gitignore": "cache/\n",
};
const CHECK = "sh test/check.sh";

describe("an experiment", needs("root"), () => {
  let server: TestServer;
  let lab: Lab;

  beforeAll(async () => {
    server = await TestServer.start({ files: FILES, config: { spares: false } });
    lab = new Lab(server);
  });

  afterAll(async () => server.remove());

  test("EXP-1, EXP-2: runs three approaches at once, and the smallest that passes wins, with the reason in a sentence", async () => {
    const ended = await lab.run(["sleep 1; echo nothing", "sleep 1; echo right > value; seq 50 > notes", "sleep 1; echo right > value"], {
      checks: [CHECK, "true"],
    });
    expect(ended).toMatchObject({ state: "done", winner: 3, pick: "auto", baseline: { passed: false } });
    expect(ended.reason).toBe(
      "Attempt 3 (c) won: all 2 checks pass, also with its change alone on a fresh clone, and of 2 that could win it has the smallest diff (2 lines against 52 lines).",
    );
    expect(ended.attempts.map(({ rank }) => rank)).toEqual([3, 2, 1]);
    expect(attempt(ended, "a")).toMatchObject({ exitCode: 0, output: "nothing\n", diff: { files: 0 }, checked: { passed: false } });
    expect(attempt(ended, "b")).toMatchObject({ diff: { files: 2, added: 51, removed: 1 }, checked: { passed: true }, verified: null });
    const winner = attempt(ended, "c");
    expect(winner).toMatchObject({
      state: "done",
      verified: { passed: true },
      needs: [],
      protectedChanged: [],
      networkBytes: 0,
      cost: null,
    });
    expect(winner.wallMs).toBeGreaterThan(990);
    expect(winner.cpuMs).toBeGreaterThan(0);
    expect(winner.peakMemoryBytes).toBeGreaterThan(0);
    // At once: the last one began before the first one ended.
    const [begun, over] = [ended.attempts.map(({ startedAt }) => startedAt ?? ""), ended.attempts.map(({ endedAt }) => endedAt ?? "")];
    expect(
      begun
        .toSorted()
        .at(-1)
        ?.localeCompare(over.toSorted()[0] ?? ""),
    ).toBe(-1);
    expect(readFileSync(join(server.project, "value"), "utf8")).toBe("wrong\n");
    await lab.remove(ended.id);
    await lab.sandboxes(ended.id, 0);
  });

  test("EXP-2: says so when no attempt passes, and has no winner", async () => {
    const ended = await lab.run(["true", "echo right > value; exit 7", "echo rihgt > value"], { checks: [CHECK] });
    const told = await lab.run(["echo out; printf 'first\\n\\033[31mno such thing\\033[0m\\n\\n' >&2; exit 2", "echo only out; exit 2"], {
      checks: [CHECK],
    });
    expect(told.attempts.map(({ reason }) => reason)).toEqual([
      "Its command ended with 2: no such thing",
      "Its command ended with 2: only out",
    ]);
    expect(ended).toMatchObject({ state: "done", winner: null });
    expect(ended.reason).toBe(
      "No attempt won. Attempt 1 (a): the check `sh test/check.sh` ended with 1; Attempt 2 (b): its command ended with 7; Attempt 3 (c): the check `sh test/check.sh` ended with 1.",
    );
    expect(attempt(ended, "b")).toMatchObject({ state: "failed", reason: "Its command ended with 7.", checked: { passed: true } });
    const lifted = await lab.run(["echo right > value; exit 7"], { checks: [CHECK], ignoreExit: true });
    expect(lifted).toMatchObject({ winner: 1 });
    await lab.remove(ended.id);
    await lab.remove(lifted.id);
    await lab.remove(told.id);
  });

  test("EXP-2: a baseline that passes is said, and then only a measure picks", async () => {
    const ended = await lab.run(["echo fast > other"], { checks: ["true"] });
    expect(ended).toMatchObject({ state: "done", winner: null, baseline: { passed: true } });
    expect(ended.reason).toContain("The checks pass on the untouched project already");
    const measured = await lab.run(["echo 30 > other", "echo 20 > other", "echo 25 > other; echo no number"], {
      checks: ["true"],
      measure: { command: "echo measured; cat other | sed 's/untouched/99/'", goal: "min" },
    });
    expect(measured).toMatchObject({ winner: 2, baseline: { passed: true, measure: 99 } });
    expect(measured.attempts.map(({ checked }) => checked?.measure)).toEqual([30, 20, 25]);
    expect(measured.reason).toContain("measures best (20 against 25)");
    const worse = await lab.run(["echo 30 > other"], {
      checks: ["true"],
      measure: { command: "sed 's/untouched/99/' other", goal: "max" },
    });
    expect(worse).toMatchObject({ winner: null, reason: "No attempt measures better than the untouched project (99)." });
    for (const { id } of [ended, measured, worse]) await lab.remove(id);
  });

  test("EXP-2: stated rules order those that can win", async () => {
    const lines = ["echo right > value; seq 20 > notes", "sleep 0.4; echo right > value"];
    const byTime = await lab.run(lines, { checks: [CHECK], rank: ["checks", "time", "diff"] });
    expect(byTime).toMatchObject({ winner: 1, rules: ["checks", "time", "diff"] });
    expect(byTime.reason).toMatch(/it is the fastest \(0\.\d\d s against 0\.\d\d s\)/);
    await lab.remove(byTime.id);
  });

  test("EXP-2: a person picks among those that pass, alone on a fresh clone too", async () => {
    const open = await lab.run(["echo right > value; seq 5 > notes", "echo right > value", "true"], { checks: [CHECK], pick: "ask" });
    expect(open).toMatchObject({ state: "choosing", winner: null, endedAt: null });
    expect(open.reason).toBe("A person chooses: Attempt 2 (b), Attempt 1 (a) can win.");
    await expect(server.client.call("pickWinner", { experiment: open.id, attempt: "c" })).rejects.toMatchObject({
      code: "illegal_transition",
      message: "Attempt 3 (c) can't win: the check `sh test/check.sh` ended with 1.",
    });
    const picked = await server.client.call("pickWinner", { experiment: open.id, attempt: "a" });
    expect(picked).toMatchObject({ state: "done", winner: 1, reason: "Attempt 1 (a) was chosen by a person." });
    await lab.remove(open.id);
  });

  test("EXP-1: without checks the rules pick no winner, and a person still can", async () => {
    const ended = await lab.run(["echo one > other", "true"]);
    expect(ended).toMatchObject({ state: "done", pick: "none", winner: null, baseline: null, reason: "1 of 2 attempts can be picked." });
    const picked = await server.client.call("pickWinner", { experiment: ended.id, attempt: 1 });
    expect(picked).toMatchObject({ winner: 1 });
    await expect(lab.start(["true"], { pick: "auto" })).rejects.toMatchObject({ code: "invalid_input" });
    await lab.remove(ended.id);
  });

  test("EXP-2: checks, setup and protected files come from the project's config where they are left out", async () => {
    writeFileSync(
      join(server.project, "vivarium.json"),
      JSON.stringify({ checks: [CHECK], setup: "touch cache-ready", protect: ["value"] }),
    );
    const ended = await lab.run(["echo right > value", "true"]);
    expect(ended).toMatchObject({ checks: [CHECK], setup: "touch cache-ready", pick: "auto", winner: null });
    expect(attempt(ended, "a")).toMatchObject({ protectedChanged: ["value"], checked: { passed: false } });
    await lab.remove(ended.id);
    writeFileSync(join(server.project, "vivarium.json"), "{}");
  });

  test("EXP-1: every attempt starts from the reality of the start, also one that waits its turn", async () => {
    const started = await lab.start(["cat value", "sleep 0.5; cat value", "cat value"], { maxParallel: 1 });
    writeFileSync(join(server.project, "value"), "moved\n");
    const ended = await lab.end(started.id);
    expect(ended.attempts.map(({ output }) => output)).toEqual(["wrong\n", "wrong\n", "wrong\n"]);
    const [, second, third] = ended.attempts;
    expect(Date.parse(third?.startedAt ?? "")).toBeGreaterThanOrEqual(Date.parse(second?.endedAt ?? ""));
    writeFileSync(join(server.project, "value"), "wrong\n");
    await lab.remove(ended.id);
  });

  test("EXP-3: what is kept is all, the winner, or none", async () => {
    const lines = ["echo right > value", "true"];
    const all = await lab.run(lines, { checks: [CHECK] });
    expect((await lab.sandboxes(all.id, 3)).map(({ role }) => role).toSorted()).toEqual(["attempt-1", "attempt-2", "origin"]);
    const winner = await lab.run(lines, { checks: [CHECK], keep: "winner" });
    expect((await lab.sandboxes(winner.id, 1)).map(({ role }) => role)).toEqual(["attempt-1"]);
    expect(attempt(winner, "b")).toMatchObject({ sandbox: null, snapshot: null, state: "done" });
    const none = await lab.run(lines, { checks: [CHECK], keep: "none" });
    await lab.sandboxes(none.id, 0);
    const { experiments } = await server.client.call("listExperiments", { project: server.project });
    expect(experiments.map(({ id }) => id)).toEqual([none.id, winner.id, all.id]);
    for (const { id } of experiments) await lab.remove(id);
    await expect(lab.look(all.id)).rejects.toMatchObject({ code: "not_found" });
  });

  test("EXP-1: refuses what makes no sense, and leaves nothing of it", async () => {
    await expect(lab.start(["true"], { project: "/nowhere/at/all" })).rejects.toMatchObject({ code: "project_not_found" });
    await expect(
      server.client.call("startExperiment", {
        project: server.project,
        attempts: [
          { name: "twin", command: "true" },
          { name: "twin", command: "true" },
        ],
      }),
    ).rejects.toMatchObject({ code: "invalid_input" });
    const { experiments } = await server.client.call("listExperiments", {});
    expect(experiments).toEqual([]);
    expect(existsSync(join(server.project, "cache"))).toBe(false);
  });
});

describe("an experiment elsewhere", needs("root"), () => {
  const lines = ["echo right > value; echo true > test/check.sh", "true"];

  for (const [where, files, config] of [
    ["on plain storage", {}, { storage: "plain" }],
    ["without walls", { "vivarium.json": '{"driver": "folder"}' }, {}],
  ] as const) {
    test(`EXP-2: ${where} ends the same way`, async () => {
      const server = await TestServer.start({ files: { ...FILES, ...files }, config: { ...config, spares: false } });
      const lab = new Lab(server);
      try {
        await server.client.call("trust", { project: server.project, dryRun: false });
        const ended = await lab.run(lines, { checks: [CHECK] });
        expect(ended).toMatchObject({ state: "done", winner: 1, baseline: { passed: false } });
        expect(attempt(ended, "a")).toMatchObject({ protectedChanged: ["test/check.sh"], verified: { passed: true } });
        expect(attempt(ended, "b").checked?.passed).toBe(false);
        expect(readFileSync(join(server.project, "value"), "utf8")).toBe("wrong\n");
        await lab.remove(ended.id);
      } finally {
        await server.remove();
      }
    });
  }
});
