/** GRD-2: every step of the guardian against a run that is stuck, with a person's answers, to the end. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AuditRecord } from "../../src/base/schema/audit.ts";
import type { RunEvent } from "../../src/base/schema/run.ts";
import { RunLab } from "../support/agents/run-lab.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

type Step = Extract<RunEvent, { type: "guardian" }>;

/** Keeps a good state in a snapshot, then does the same failing thing without end. */
const STUCK = ["write loops cat no-such-file", "call git checkout -- ."];
/** Of what is wrong with it only that it repeats itself. */
const ONLY_LOOPS = { guardianOff: ["flood", "no_progress", "silence", "same_error"] };

describe("the guardian of a run that is stuck", needs("root"), () => {
  let lab: RunLab;
  beforeAll(async () => {
    // A minute is 60 milliseconds.
    lab = await RunLab.open({ guardian: { patience: 0.001 } });
  });
  afterAll(async () => lab?.remove());

  const steps = async (id: string): Promise<Step[]> => {
    const { events } = await lab.server.client.call("listRunEvents", { run: id, limit: 1000 });
    return events.filter((event): event is Step => event.type === "guardian");
  };
  const names = async (id: string): Promise<string[]> => (await steps(id)).map(({ step }) => step);
  const audited = async (id: string): Promise<AuditRecord[]> => {
    const { records } = await lab.server.client.call("listAudit", { limit: 1000 });
    return records.filter(({ target, action }) => target === id && action.startsWith("guardian."));
  };
  const question = async (sandbox: string | null): Promise<string> => {
    const { approvals } = await eventually(
      () => lab.server.client.call("listApprovals", {}),
      (list) => list.approvals.some((one) => one.sandbox === sandbox && one.kind === "run"),
    );
    return approvals.find((one) => one.sandbox === sandbox && one.kind === "run")?.id ?? "";
  };
  const answer = async (approval: string, said: "once" | "deny"): Promise<void> =>
    void (await lab.server.client.call("answerApproval", { approval, answer: said, approver: lab.server.approver() }));

  test("GRD-2: sends a message, asks, pauses, rolls back, restarts and stops, in this order, each with evidence and a record", async () => {
    const { id } = await lab.begin(STUCK, { agent: ONLY_LOOPS });
    const paused = await lab.until(id, ({ state }) => state === "paused");
    expect(await lab.server.client.call("inspectSandbox", { sandbox: paused.sandbox ?? "" })).toMatchObject({ state: "paused" });
    const ended = await lab.ended(id);
    expect(ended).toMatchObject({ state: "failed", outcome: "failed", reason: expect.stringContaining("stuck") as string });
    const taken = await steps(id);
    expect([...new Set(taken.map(({ step }) => step))]).toEqual(["message", "ask", "pause", "rollback", "restart", "stop"]);
    for (const { detector, evidence } of taken)
      expect([detector, evidence]).toEqual(["repeat", expect.stringMatching(/no-such-file.*event/s)]);
    const records = await audited(id);
    expect(records.map(({ action }) => action.replace("guardian.", "")).toSorted()).toEqual(taken.map(({ step }) => step).toSorted());
    // Nothing is ended without a snapshot.
    for (const { action, snapshot } of records) expect([action, snapshot !== null]).toEqual([action, /rollback|restart|stop/.test(action)]);
    expect(taken.filter(({ step }) => step === "restart").length).toBeLessThanOrEqual(3);
    expect(ended.restarts).toBe(taken.filter(({ step }) => step === "restart" || step === "rollback").length);
    const { messages } = await lab.server.client.call("listRunMessages", { run: id });
    expect(messages.filter(({ from }) => from === "guardian").every(({ state }) => state === "delivered")).toBe(true);
    const { attempts } = await lab.server.client.call("inspectExperiment", { experiment: ended.experiment ?? "" });
    expect(attempts).toMatchObject([{ state: "failed", diff: { files: 1 }, snapshot: expect.any(String) as string }]);
  });

  test("GRD-1: is found out where its edits are made and taken back, in whatever words, by the state of its clone", async () => {
    // Each state stands long enough to be looked at.
    const flip = (text: string): string[] => [`write answer.txt ${text}`, "call sleep 1"];
    const { id } = await lab.begin(Array.from({ length: 12 }, (_, at) => flip(at % 2 === 0 ? "yes" : "no")).flat(), {
      agent: { guardian: "warn", guardianOff: ["flood", "no_progress", "silence", "same_error", "repeat"] },
    });
    const first = await eventually(
      async () => (await steps(id))[0],
      (step) => step !== undefined,
      40_000,
    );
    expect(first).toMatchObject({
      step: "message",
      detector: "alternation",
      evidence: expect.stringContaining("back and forth") as string,
    });
    await lab.server.client.call("stopRun", { run: id });
    await lab.ended(id);
  });

  test("GRD-2: is left alone for good once a person says that it shall go on", async () => {
    const { id, sandbox } = await lab.begin(STUCK, { agent: ONLY_LOOPS }).then((run) => lab.until(run.id, (now) => now.sandbox !== null));
    await answer(await question(sandbox), "once");
    const { steps: before } = await lab.until(id, ({ state }) => state === "running");
    await lab.until(id, (now) => now.steps > before + 40);
    expect((await names(id)).filter((step) => step !== "pause")).toEqual(["message", "ask"]);
    await lab.server.sh(sandbox ?? "", "rm loops");
    expect(await lab.ended(id)).toMatchObject({ outcome: "done", restarts: 0 });
  });

  test("GRD-2: ends at once where a person says so, also if the answer came while no server was there", async () => {
    const { id, sandbox } = await lab
      .begin(STUCK, { agent: { ...ONLY_LOOPS, guardian: "warn" } })
      .then((run) => lab.until(run.id, (now) => now.sandbox !== null));
    const asked = await question(sandbox);
    const { server } = lab;
    // The server dies once the answer is written.
    await server.arm("approval.answered");
    await answer(asked, "deny").catch(() => undefined);
    await server.died();
    await server.up();
    expect(await lab.ended(id)).toMatchObject({ outcome: "failed", restarts: 0 });
    expect(await names(id)).toEqual(["message", "ask", "stop"]);
    expect(await audited(id)).toContainEqual(
      expect.objectContaining({ action: "guardian.stop", snapshot: expect.stringMatching(/^snp/) as string }),
    );
  });

  test("GRD-2: gets another chance when a person lets a paused one go on; warned only, it is never paused", async () => {
    const [full, warned] = await Promise.all([
      lab.begin(STUCK, { agent: ONLY_LOOPS }),
      lab.begin(STUCK, { agent: { ...ONLY_LOOPS, guardian: "warn" } }),
    ]);
    const { sandbox } = await lab.until(full.id, ({ state }) => state === "paused");
    await lab.server.client.call("resumeSandbox", { sandbox: sandbox ?? "" });
    // Asked anew before it is paused again.
    await lab.until(full.id, ({ state }) => state === "running");
    await eventually(
      () => names(full.id),
      (list) => list.length >= 5,
    );
    expect((await names(full.id)).slice(0, 5)).toEqual(["message", "ask", "pause", "ask", "pause"]);
    expect(await names(warned.id)).toEqual(["message", "ask"]);
    for (const { id } of [full, warned]) await lab.server.client.call("stopRun", { run: id });
    for (const { id } of [full, warned]) expect(await lab.ended(id)).toMatchObject({ outcome: "cancelled" });
  });

  test("GRD-2: goes on with its steps if the server dies between the record of one and its effect", async () => {
    const { server } = lab;
    // The record of the pause.
    await server.arm("run.guarded", 3);
    const { id } = await lab.begin(STUCK, { agent: ONLY_LOOPS });
    await server.died();
    await server.up();
    await lab.waitForEvent(id, "guardian", ({ step }) => step === "rollback");
    expect((await names(id)).slice(0, 3)).toEqual(["message", "ask", "pause"]);
    await server.client.call("stopRun", { run: id });
    expect(await lab.ended(id)).toMatchObject({ outcome: "cancelled" });
    const events = await lab.events(id);
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
  });
});
