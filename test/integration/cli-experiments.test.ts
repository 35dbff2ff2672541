/** What the command line does with experiments: words in, progress, tables, exit codes. */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Experiment, Verdict } from "../../src/base/schema/experiment.ts";
import { LabServer, result, type Result } from "../support/cli-lab-server.ts";
import { ended, experimentOf, Lab, plan, promotionOf, verdict } from "../support/cli-lab.ts";

const lab = new Lab();
const server = new LabServer(lab);
const run = (...words: string[]): Promise<Result> => server.run(...words);

beforeAll(() => server.up());
beforeEach(() => lab.clear());
afterAll(() => server.remove());

/** Two attempts of which the first wins. */
function firstWins(experiment: Experiment): void {
  lab.move(experiment.id, { baseline: verdict(false, { passed: 11, failed: 1 }) }, { 1: { state: "running" }, 2: { state: "running" } });
  lab.move(
    experiment.id,
    { state: "done", winner: 1, reason: "patch wins: all checks pass." },
    {
      1: ended({ rank: 1, sandbox: lab.box.id, checked: verdict(true, { passed: 12, failed: 0 }), needs: ["npm ci"] }),
      2: ended({ state: "failed", exitCode: 1, reason: "Its command ended with 1.", checked: null }),
    },
  );
}

const APPROACHES = ["-a", "patch=sed -i s/1/0/ a.js", "-a", "revert=git revert HEAD", "--check", "npm test"];

describe("viv try", () => {
  test("EXP-1: compares the attempts with the baseline, says who wins and what to do next", async () => {
    lab.onStart = firstWins;
    const { code, out, err } = await run("try", ...APPROACHES);
    expect(code).toBe(0);
    expect(out.split("\n").map((line) => line.replaceAll(/ {2,}/g, "  "))).toEqual([
      expect.stringMatching(/^ATTEMPT {2}EXIT {2}CHECKS {2}DIFF {2}TIME {2}MEMORY$/),
      expect.stringMatching(/^1 patch {2}0 {2}1\/1, 12 tests {2}1 file \+2 -1 {2}2\.5 s {2}45 MiB$/),
      expect.stringMatching(/^2 revert {2}1 {2}- {2}1 file/),
      expect.stringMatching(/^baseline {2}0\/1, 1 of 12 tests fails$/),
      "",
      "patch: needs besides its change: npm ci",
      "revert: Its command ended with 1.",
      "",
      "patch wins: all checks pass.",
      "",
    ]);
    expect(err).toContain("2 attempts on");
    expect(err).toMatch(/viv diff --patch box +# read/);
    expect(err).toMatch(/viv promote exp\w{6} +#/);
  });

  test("EXP-4: passes every option on, and a file's keys where no option says otherwise", async () => {
    lab.onStart = firstWins;
    const file = join(server.home, "attempts.json");
    writeFileSync(file, '{ "attempts": [{ "name": "one", "command": "true" }], "repeat": 2, "setup": "no", /* why not */ }');
    const options = ["--setup", "npm ci", "--max-parallel", "2", "--timeout", "90s", "--check-timeout", "1m", "--keep", "winner"];
    const rules = ["--rank", "checks,diff", "--include", "dist", "--protect", "spec/**", "--ignore-exit", "--measure", "wc -c <a"];
    const { code } = await run("try", "make", "-f", file, ...APPROACHES, ...options, ...rules, "--maximise", "--priority=-5");
    expect(code).toBe(0);
    expect(lab.called("startExperiment")[0]).toMatchObject({
      project: server.home,
      attempts: [
        { name: "one", command: "true" },
        { command: "make" },
        { name: "patch", command: "sed -i s/1/0/ a.js" },
        { name: "revert", command: "git revert HEAD" },
      ],
      checks: ["npm test"],
      setup: "npm ci",
      repeat: 2,
      maxParallel: 2,
      timeoutMs: 90_000,
      checkTimeoutMs: 60_000,
      keep: "winner",
      rank: ["checks", "diff"],
      include: ["dist"],
      protect: ["spec/**"],
      ignoreExit: true,
      priority: -5,
      measure: { command: "wc -c <a", goal: "max" },
    });
  });

  test.each([
    [["try"], "needs something to try"],
    [["try", "a", "--pick", "ask"], "--pick ask needs a terminal"],
    [["try", "a", "--pick", "me"], "--pick takes auto, ask, none"],
    [["try", "a", "--rank", "beauty"], "--rank takes checks"],
    [["try", "a", "--maximise"], "--maximise needs --measure"],
    [["try", "-a", "nothing"], "--attempt takes NAME=COMMAND"],
    [["try", "-f", "/nonexistent"], "can't be read"],
    [["promote", "box", "--push", "origin"], "--push goes with --branch"],
    [["task", "a", "--pr"], "--pr goes with --branch"],
    [["promote", "box", "--approve"], "--approve is for a promotion"],
    [["experiment", "exp1", "dance"], 'can\'t "dance"'],
    [["experiment", "exp1", "rm", "--now"], "--now goes with cancel"],
  ])("refuses %j with exit code 2 and one sentence", async (words, sentence) => {
    const { code, out, err } = await run(...words);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(sentence);
    expect(lab.calls).toEqual([]);
  });

  test("EXP-3: without a winner ends with 1, with --pick none when all ran with 0", async () => {
    lab.onStart = ({ id }) => lab.move(id, { state: "done", reason: "No attempt passes all checks." }, { 1: ended(), 2: ended() });
    expect(await run("try", "a", "b", "--check", "false")).toMatchObject({ code: 1, out: expect.stringContaining("No attempt passes") });
    expect(await run("try", "a", "b", "--pick", "none")).toMatchObject({ code: 0 });
  });

  test("EXP-4: shows the promotion of the winner with --promote, and ends with 1 where it could not be", async () => {
    lab.onStart = (experiment) => {
      const { id } = lab.keep(promotionOf({ state: "applying" }));
      firstWins(lab.move(experiment.id, { promotion: id }));
      lab.keep(promotionOf({ id, plan: plan({ files: 1 }) }));
    };
    const { code, out, err } = await run("try", ...APPROACHES, "--promote");
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining("1 file promoted into /project.") });
    expect(err).not.toContain("viv promote");
    expect(lab.called("startExperiment")).toMatchObject([{ promote: true }]);
    lab.onStart = firstWins;
    expect(await run("try", ...APPROACHES, "--promote")).toMatchObject({ code: 1 });
    lab.onStart = (experiment) => {
      const { id } = lab.keep(promotionOf({ experiment: experiment.id, state: "waiting", reason: "It is risky." }));
      firstWins(lab.move(experiment.id, { promotion: id }));
    };
    expect(await run("try", ...APPROACHES, "--promote")).toMatchObject({ code: 4, out: expect.stringContaining("waits: It is risky.") });
  });

  test("prints one JSON object and nothing else with --json", async () => {
    lab.onStart = firstWins;
    const { code, out, err } = await run("try", ...APPROACHES, "--json");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(JSON.parse(out)).toMatchObject({ state: "done", winner: 1, attempts: [{ name: "patch" }, { name: "revert" }] });
  });

  test("tells each step on a line of its own where there is no terminal", async () => {
    lab.onStart = firstWins;
    const { err } = await run("try", ...APPROACHES);
    expect(err).toMatch(/^patch: done, 2\.5 s, 1\/1, 12 tests, 1 file \+2 -1$/m);
    expect(err).toMatch(/^baseline: fails, 0\/1/m);
    expect(err).not.toContain("\u001b");
  });

  test("leaves it running with --detach, and `viv experiment --follow` comes back to it", async () => {
    const { code, out } = await run("try", ...APPROACHES, "--detach");
    expect(code).toBe(0);
    const id = out.trim();
    const following = result(server.start(["experiment", id.slice(0, 12), "--follow"]));
    const experiment = lab.experiments.get(id);
    if (experiment === undefined) throw new Error(`${id} was not started`);
    firstWins(experiment);
    expect(await following).toMatchObject({ code: 0, out: expect.stringContaining("patch wins") });
  });

  test("cancels at ctrl-C, prints what was done, and ends with 130", async () => {
    lab.onStart = ({ id }) => lab.move(id, {}, { 1: ended({ rank: 1 }), 2: { state: "running" } });
    const child = server.start(["try", ...APPROACHES]);
    child.stderr.on("data", (chunk: Buffer) => chunk.includes("revert: running") && child.kill("SIGINT"));
    const { code, out, err } = await result(child);
    expect(code).toBe(130);
    expect(err).toContain("stopping; what was done is kept");
    expect(out).toMatch(/^1 patch +0/m);
    expect(lab.called("cancelExperiment")).toEqual([{ experiment: expect.any(String), now: false }]);
  });

  test("kills at the second ctrl-C", async () => {
    lab.onStart = ({ id }) => lab.move(id, {}, { 1: { state: "running" } });
    lab.onCancel = ({ id }, now) => now && lab.move(id, { state: "cancelled" });
    const child = server.start(["try", ...APPROACHES]);
    child.stderr.on("data", (chunk: Buffer) => (chunk.includes("running") || chunk.includes("stopping")) && child.kill("SIGINT"));
    expect(await result(child)).toMatchObject({ code: 130, err: expect.stringContaining("killing") });
    expect(lab.called("cancelExperiment").map(({ now }) => now)).toEqual([false, true]);
  });

  test("goes on when the server is restarted meanwhile", async () => {
    const child = server.start(["try", ...APPROACHES]);
    const answer = result(child);
    await once(child.stderr, "data");
    const [experiment] = lab.experiments.values();
    if (experiment === undefined) throw new Error("nothing was started");
    await server.down();
    await once(child.stderr, "data");
    await server.up();
    firstWins(experiment);
    expect(await answer).toMatchObject({ code: 0, out: expect.stringContaining("patch wins"), err: expect.stringContaining("is away") });
  });

  test("draws a line per attempt in place on a terminal, and asks who wins with --pick ask, by the numbers of the table and in its order", async () => {
    lab.onStart = ({ id }) => {
      lab.move(id, {}, { 1: { state: "running", startedAt: new Date().toISOString() } });
      lab.move(id, { state: "choosing" }, { 1: ended({ rank: 2 }), 2: ended({ rank: 1 }) });
    };
    const answers = [
      ["Which one wins?", "nobody\r"],
      ["There is no attempt", "2\r"],
    ] as const;
    const { code, out } = await server.onTerminal(["try", ...APPROACHES, "--pick", "ask"], answers);
    expect(code).toBe(0);
    expect(lab.called("pickWinner")).toEqual([{ experiment: expect.any(String), attempt: 2 }]);
    expect(out).toContain("\u001b[3A");
    expect(out).toContain("You chose it.");
    expect(out).toContain("Which one wins? 2 revert, 1 patch; nothing for none:");
    expect(out.replaceAll("\r", "")).toMatch(/^2 revert +0 .*\n1 patch +0 /m);
  });
});

describe("viv experiments and viv experiment", () => {
  const attempts = [{ name: "patch", command: "sed" }];

  test("list them, and find one by the beginning of its id", async () => {
    const one = lab.add({ ...experimentOf({ attempts }), id: `exp${"a".repeat(26)}` });
    lab.add({ ...experimentOf({ attempts }), id: `exp${"a".repeat(25)}b` });
    expect((await run("experiments")).out).toMatch(/^expaaaaaa +(now|\d+ s ago) +running +1 +- +-$/m);
    expect((await run("experiments", "--quiet")).out.split("\n")).toContain(one.id);
    expect(await run("experiment", "expaaa")).toMatchObject({ code: 2, err: expect.stringContaining("the beginning of 2 ids") });
    expect(await run("experiment", "expzzz")).toMatchObject({ code: 2, err: expect.stringContaining('no experiment "expzzz"') });
    expect(await run("experiment", `${"a".repeat(25)}b`)).toMatchObject({ code: 0, out: expect.stringContaining("patch: sed") });
  });

  test("show the end of each output, with its colours on a terminal alone, and with nothing in it that moves the cursor", async () => {
    const { id } = lab.add(experimentOf({ attempts, checks: ["npm test"] }));
    const output = "up\u001b[1Adown\n\u001b[31mred\u001b[39m and \u001b]0;title\u0007plain\n";
    lab.move(id, { state: "done", reason: "No winner." }, { 1: ended({ output, checked: verdict(false) }) });
    const { out } = await run("experiment", id);
    expect(out).toContain("      updown\n      red and plain\n");
    expect(out).not.toContain("\u001b");
    expect(out).toContain("not ok 1 - counts from zero");
    expect((await run("experiment", id, "show", "patch")).out).not.toContain("ATTEMPT");
    const drawn = await server.onTerminal(["experiment", id]);
    expect(drawn.out).toContain("\u001b[31mred\u001b[39m and plain");
    expect(drawn.out).not.toContain("\u001b[1A");
    expect(drawn.out).not.toContain("title");
  });

  test("say why a check or the setup of an attempt failed, by the last line that it wrote", async () => {
    const { id } = lab.add(experimentOf({ attempts: [...attempts, { name: "other", command: "true" }], checks: ["npm test"] }));
    const failing = verdict(false);
    const setup = {
      ...failing,
      checks: [],
      setup: { ...failing.checks[0], command: "npm ci", output: "npm error \u001b[31mno lock\u001b[39m\n\n" },
    };
    lab.move(id, { state: "done" }, { 1: ended({ checked: failing }), 2: ended({ checked: setup as Verdict }) });
    const { out } = await run("experiment", id);
    expect(out).toContain("patch: the check `npm test` ended with 1: not ok 1 - counts from zero\n");
    expect(out).toContain("other: the setup `npm ci` ended with 1: npm error no lock\n");
  });

  test("cancel, run again, pick and remove", async () => {
    const { id } = lab.add(experimentOf({ attempts }));
    expect(await run("experiment", id, "cancel", "--now")).toMatchObject({ code: 0, out: expect.stringContaining("is cancelled") });
    lab.onStart = () => lab.move(id, { state: "done" }, { 1: ended() });
    expect(await run("experiment", id, "retry", "--all")).toMatchObject({ code: 0, out: expect.stringContaining("patch") });
    expect(lab.called("retryExperiment")).toEqual([{ experiment: id, all: true }]);
    expect(await run("experiment", id, "pick", "patch")).toMatchObject({ code: 0, out: expect.stringContaining("You chose it.") });
    expect(await run("experiment", id, "rm")).toMatchObject({ code: 0, out: `${id}\n` });
    expect(lab.experiments.size).toBe(0);
  });
});
