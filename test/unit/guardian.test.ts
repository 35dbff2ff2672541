/** How the guardian steps in: in order, with evidence, never at the wrong agent, and never without keeping the work. */
import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { GUARDIAN_DETECTORS, GUARDIAN_STEPS } from "../../src/base/schema/choices.ts";
import { LADDERS, nextRestartAt, rungsOf } from "../../src/work/guardian/ladder.ts";
import { missingForFullAutonomy } from "../../src/work/guardian/settings.ts";
import { GuardianLab } from "../support/guardian-lab.ts";

describe("the guardian of a run", () => {
  test("GRD-2: goes from message to question, pause, roll back, restart and stop, each with evidence and a record", async () => {
    const lab = new GuardianLab();
    await lab.loopUntil(8);
    // Restarts are tried three times before the end.
    expect(lab.steps).toEqual(["message", "ask", "pause", "rollback", "restart", "restart", "restart", "stop"]);
    expect(lab.done.slice(0, 7)).toEqual(["message", "ask", "pause", "snapshot", "rollback", "message", "resume"]);
    expect(lab.done.slice(7)).toEqual(["snapshot", "restart", "snapshot", "restart", "snapshot", "restart", "snapshot", "stop"]);
    for (const { event, audit } of lab.records) {
      expect(event.evidence).toMatch(/`npm test` gave the same failure \d+ times \(events \d+ to \d+\)/);
      expect(audit).toMatchObject({
        actor: { kind: "guardian", name: "run-b" },
        action: `guardian.${event.step}`,
        rule: "repeat",
        sandbox: "sbx-1",
      });
      expect(audit.snapshot === null).toBe(!["rollback", "restart", "stop"].includes(event.step));
    }
  });

  test("says one thing once, however many detectors see it", async () => {
    const lab = new GuardianLab();
    await lab.loop(12);
    expect(lab.guardian.findings.map(({ detector }) => detector).sort()).toEqual(["repeat", "same_error"]);
    expect(lab.steps).toEqual(["message"]);
  });

  test("goes no further when the agent does something else after the message", async () => {
    const lab = new GuardianLab();
    await lab.loop(6);
    for (let i = 0; i < 20; i += 1) await lab.step(`cat src/${i}.ts`, `code ${i}`, true);
    await lab.event({ type: "turn", state: "ended" });
    await lab.pass(20 * 60_000);
    expect(lab.steps).toEqual(["message"]);
  });

  test("begins again with a message after progress", async () => {
    const lab = new GuardianLab();
    await lab.see({ clone: "before" });
    await lab.loopUntil(2);
    expect(lab.steps).toEqual(["message", "ask"]);
    await lab.step("sed -i s/a/b/ src/a.ts", "", true);
    await lab.see({ clone: "after" });
    for (let i = 0; i < 6; i += 1) await lab.step("npm run lint", "2 problems: unused variable", false);
    expect(lab.steps).toEqual(["message", "ask", "message"]);
  });

  test("tells an error that comes in spite of edits once, and then asks", async () => {
    const lab = new GuardianLab();
    for (let i = 0; i < 40; i += 1) {
      await lab.see({ clone: `edit ${i}` });
      await lab.step("npm test", "TypeError: x is undefined", false);
      await lab.pass(10_000);
    }
    expect(lab.steps).toEqual(["message", "ask"]);
  });

  test("takes a person's word: what is to be left is not told again, and a paused agent goes on", async () => {
    const lab = new GuardianLab();
    await lab.loopUntil(3);
    expect(lab.done.at(-1)).toBe("pause");
    lab.guardian.answer(lab.questions[0]?.matter ?? "", "go_on");
    await lab.guardian.settled();
    expect(lab.done.at(-1)).toBe("resume");
    await lab.loop(30);
    await lab.pass(60 * 60_000);
    // The same error is another finding than the same call: it is told on its own.
    expect(lab.records.slice(3).filter(({ event }) => event.detector === "repeat")).toEqual([]);
  });

  test("stops with the work kept when a person says so", async () => {
    const lab = new GuardianLab();
    await lab.loopUntil(2);
    lab.guardian.answer("stuck", "stop");
    await lab.guardian.settled();
    expect(lab.done.slice(-2)).toEqual(["snapshot", "stop"]);
  });

  test("lets an agent go on that a person let go on after a pause", async () => {
    const lab = new GuardianLab();
    await lab.loopUntil(3);
    await lab.see({ paused: false });
    await lab.pass(4 * 60_000);
    expect(lab.steps).toEqual(["message", "ask", "pause"]);
    await lab.loop(1);
    expect(lab.steps).toEqual(["message", "ask", "pause", "ask"]);
  });

  test("does not count against an agent what time goes by while it is paused", async () => {
    const lab = new GuardianLab();
    await lab.see({ modelRequests: 0, paused: true });
    await lab.pass(5 * 3_600_000);
    expect(lab.steps).toEqual([]);
  });

  test("never ends an agent without a snapshot: it is paused, and a person is asked", async () => {
    const lab = new GuardianLab();
    lab.refused.add("snapshot");
    await lab.see({ use: { budget: 1 } });
    expect(lab.steps).toEqual(["ask", "pause"]);
    expect(lab.records[0]?.event.evidence).toContain("could not be kept in a snapshot");
    await lab.pass(2 * 3_600_000);
    expect(lab.done).not.toContain("stop");
    expect(lab.troubles).not.toEqual([]);
  });

  test("takes the next step where one can't be taken", async () => {
    const lab = new GuardianLab();
    lab.refused.add("rollback").add("message");
    await lab.loopUntil(5);
    expect(lab.done.filter((one) => one !== "snapshot")).toEqual(["ask", "pause", "restart"]);
  });

  test("a finding about one agent never reaches the next one", async () => {
    const lab = new GuardianLab();
    await lab.loopUntil(2);
    // The engine has restarted it for another reason, and the guardian hears of it a moment later.
    lab.incarnation = 1;
    await lab.pass(6 * 60_000);
    await lab.loop(1);
    const [after] = lab.targets.slice(-1);
    expect(after).toEqual({ run: "run-b", incarnation: 0 });
    expect(lab.done).toEqual(["message", "ask"]);
    lab.guardian.restarted(1, lab.now);
    await lab.loop(4);
    expect(lab.guardian.findings).toEqual([]);
    await lab.loop(1);
    expect(lab.guardian.findings[0]?.target).toEqual({ run: "run-b", incarnation: 1 });
  });

  test("a step that is still being recorded when its agent dies reaches no other agent", async () => {
    const lab = new GuardianLab();
    const disk = Promise.withResolvers<void>();
    lab.disk = disk.promise;
    lab.guardian.observe({ at: lab.now, use: { disk: 0.95 } });
    await setImmediate();
    lab.die();
    disk.resolve();
    await lab.guardian.settled();
    expect([lab.steps, lab.done, lab.targets]).toEqual([["message"], [], []]);
  });

  test("GRD-3: restarts at most three times an hour, a minute apart, and then stops", () => {
    const now = Date.UTC(2026, 10, 16, 9);
    const minute = 60_000;
    expect(nextRestartAt([], now)).toBe(now);
    expect(nextRestartAt([now - 20_000], now)).toBe(now + 40_000);
    expect(nextRestartAt([now - 50 * minute, now - 30 * minute, now - 5 * minute], now)).toBeNull();
    expect(nextRestartAt([now - 61 * minute, now - 30 * minute, now - 5 * minute], now)).toBe(now);
  });

  test("GRD-3: an agent that is restarted again and again is stopped", async () => {
    const lab = new GuardianLab({ state: { matters: {}, left: [], restarts: [] } });
    for (let i = 1; i <= 3; i += 1) lab.guardian.restarted((lab.incarnation = i), (lab.now += 61_000));
    await lab.loopUntil(5);
    expect(lab.steps).toEqual(["message", "ask", "pause", "rollback", "stop"]);
  });

  test("GRD-3: the first look at the clone after a restart is no progress of the new agent's", async () => {
    const lab = new GuardianLab();
    await lab.loopUntil(5);
    expect(lab.steps.at(-1)).toBe("restart");
    await lab.pass(20_000);
    await lab.see({ clone: "as the snapshot was", cost: 7, use: { budget: 0.7 } });
    await lab.loop(20);
    expect(lab.guardian.findings.map(({ detector }) => detector)).not.toContain("spending");
    await lab.loopUntil(6);
    expect(lab.steps.at(-1)).toBe("restart");
  });

  test("stops at once with the work kept when the budget is used up, or one step more than it may take was taken", async () => {
    for (const [what, used] of [
      ["budget", 1],
      ["steps", 1.1],
    ] as const) {
      const lab = new GuardianLab();
      await lab.see({ use: { [what]: 0.85 } });
      if (what === "steps") await lab.see({ use: { steps: 1 } });
      expect(lab.steps).toEqual(["message"]);
      await lab.see({ use: { [what]: used } });
      expect(lab.steps).toEqual(["message", "stop"]);
      expect(lab.done).toEqual(["message", "snapshot", "stop"]);
    }
  });

  test("asks a person first when a protected file was changed", async () => {
    const lab = new GuardianLab({ settings: { protects: (path) => path === "vitest.config.ts" } });
    await lab.event({ type: "file_change", paths: ["src/a.ts"], more: 0 });
    expect(lab.steps).toEqual([]);
    await lab.event({ type: "file_change", paths: ["vitest.config.ts"], more: 0 });
    await lab.event({ type: "turn", state: "ended" });
    expect(lab.steps).toEqual(["ask"]);
    await lab.pass(3_600_000);
    expect(lab.steps).toEqual(["ask"]);
    await lab.event({ type: "file_change", paths: ["vitest.config.ts"], more: 0 });
    expect(lab.steps).toEqual(["ask", "pause"]);
  });

  test("goes on where the server before was: neither the message nor the question is repeated", async () => {
    const before = new GuardianLab();
    await before.loopUntil(2);
    const kept = JSON.parse(JSON.stringify(before.records.at(-1)?.state)) as typeof before.guardian.state;
    const after = new GuardianLab({ state: kept });
    after.now = before.now;
    await after.loop(8);
    expect(after.steps).toEqual([]);
    await after.loopUntil(1);
    expect(after.steps).toEqual(["pause"]);
  });

  test("remembers events that the server before has judged, without acting on them", async () => {
    const lab = new GuardianLab();
    const at = new Date(lab.now).toISOString();
    for (let i = 0; i < 5; i += 1) {
      const call = { call: `c${i}`, tool: "Bash" };
      lab.guardian.replay({ type: "tool_call", ...call, kind: "command", input: { command: "npm test" }, sequence: 2 * i + 1, at });
      lab.guardian.replay({ type: "tool_result", ...call, ok: false, output: "1 failed: login", sequence: 2 * i + 2, at });
    }
    await lab.guardian.settled();
    expect(lab.steps).toEqual([]);
    expect(lab.guardian.findings).not.toEqual([]);
  });
});

describe("switches", () => {
  test("GRD-2: a run without a guardian is left alone, whatever it does", async () => {
    const lab = new GuardianLab({ settings: { mode: "off" } });
    await lab.loopUntil(1);
    await lab.see({ use: { budget: 2 } });
    expect([lab.done, lab.records, lab.guardian.findings]).toEqual([[], [], []]);
  });

  test("GRD-2: a guardian that only warns sends messages and asks, and touches nothing", async () => {
    const lab = new GuardianLab({ settings: { mode: "warn" } });
    await lab.loopUntil(3);
    await lab.see({ use: { budget: 1 } });
    expect(lab.done).toEqual(["message", "ask"]);
  });

  test.each(GUARDIAN_DETECTORS)("%s can be switched off alone", async (detector) => {
    const lab = new GuardianLab({ settings: { off: [detector] } });
    await lab.loop(8);
    const expected = ["repeat", "same_error"].filter((name) => name !== detector);
    expect(lab.guardian.findings.map((finding) => finding.detector).sort()).toEqual(expected);
  });

  test("a finding that is not sure leads to a message or a question, and no further", () => {
    expect(rungsOf("stuck", "full", 0.4)).toEqual([]);
    expect(rungsOf("stuck", "full", 0.6).map(({ step }) => step)).toEqual(["message", "ask"]);
    expect(rungsOf("stuck", "full", 0.9).map(({ step }) => step)).toEqual([...GUARDIAN_STEPS]);
  });

  test("GRD-2: every concern takes its steps in the one order", () => {
    for (const rungs of Object.values(LADDERS)) {
      const places = rungs.map(({ step }) => GUARDIAN_STEPS.indexOf(step));
      expect(places).toEqual([...places].sort((one, other) => one - other));
    }
  });

  test("POL-10: full autonomy needs the guardian, a timeout and a budget", () => {
    const whole = { level: 3, guardian: "full", timeoutMs: 3_600_000, budget: 5 } as const;
    expect(missingForFullAutonomy(whole)).toBeNull();
    expect(missingForFullAutonomy({ ...whole, guardian: "off", budget: null })).toBe(
      "Autonomy level 3 runs only with the guardian, a timeout and a budget; this one lacks the guardian and a budget.",
    );
    expect(missingForFullAutonomy({ ...whole, level: 2, guardian: "off", timeoutMs: null, budget: null })).toBeNull();
  });
});

describe("leaving the task", () => {
  const task = "Repair the invoice totals and their rounding";

  async function wander(lab: GuardianLab): Promise<void> {
    for (let i = 0; i < 32; i += 1) await lab.step(`vim theme${i}.css`, `blue ${i}`, true);
  }

  test("is not told by words alone", async () => {
    const lab = new GuardianLab({ settings: { task } });
    await wander(lab);
    expect(lab.guardian.findings.map(({ detector, confidence }) => [detector, confidence])).toEqual([["drift", 0.4]]);
    expect(lab.steps).toEqual([]);
  });

  test("is told where a model was asked and is sure", async () => {
    const asked: string[] = [];
    const judge = async (given: string, lately: string) => {
      asked.push(`${given} / ${lately.split("\n").length}`);
      return { offTask: true, confidence: 0.9, reason: "It styles a page." };
    };
    const lab = new GuardianLab({ settings: { task }, judge: { judge } });
    await wander(lab);
    await lab.step("vim more.css", "red", true);
    expect(asked).toEqual([`${task} / 30`]);
    expect(lab.steps).toEqual(["message"]);
    expect(lab.records[0]?.event.evidence).toContain("It styles a page.");
  });

  test("is not told where the model says that it is the task", async () => {
    const judge = async () => ({ offTask: false, confidence: 0.9, reason: "fine" });
    const lab = new GuardianLab({ settings: { task: "Repair src/invoice/total.ts" }, judge: { judge } });
    for (let i = 0; i < 15; i += 1) await lab.event({ type: "file_change", paths: [`web/a${i}.css`], more: 0 });
    expect(lab.steps).toEqual([]);
  });

  test.each([
    ["can't say", async () => null],
    ["fails", () => Promise.reject(new Error("no answer"))],
  ])("is told by the cheap signs where the model %s", async (_, judge) => {
    const lab = new GuardianLab({ settings: { task: "Repair src/invoice/total.ts" }, judge: { judge } });
    for (let i = 0; i < 16; i += 1) await lab.event({ type: "file_change", paths: [`web/a${i}.css`], more: 0 });
    expect(lab.steps).toEqual(["message"]);
  });
});
