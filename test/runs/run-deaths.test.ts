/** GRD-3: agents that die in the midst of their work, and what becomes of the run. */
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunEvent } from "../../src/base/schema/run.ts";
import { RunLab } from "../support/agents/run-lab.ts";
import { needs } from "../support/skip.ts";

type Step = Extract<RunEvent, { type: "guardian" }>;

/** A shell line that ends the agent that runs it, as a crash or the kernel would. */
const DIE = "call kill -9 $PPID";

describe("an agent that dies", needs("root"), () => {
  let lab: RunLab;
  beforeAll(async () => {
    const command = (line: string): object => ({ protocol: "command", command: line });
    lab = await RunLab.open({
      // A minute is 60 milliseconds.
      guardian: { patience: 0.001 },
      ceilings: { memory: "200MiB" },
      agents: {
        // Dies twice, a second time after the cool-down.
        mortal: command("test -e two && exit 0; test -e one && { touch two; kill -9 $$; }; touch one; kill -9 $$"),
        killed: command("echo begun >> begun.txt; kill -9 $$"),
        greedy: command("echo begun >> begun.txt; head -c 2000000000 /dev/zero | tail -c 1500000000 > /dev/null"),
        failing: command("echo begun >> begun.txt; exit 3"),
      },
    });
  });
  afterAll(async () => lab?.remove());

  const steps = async (id: string): Promise<Step[]> => (await lab.events(id)).filter((event): event is Step => event.type === "guardian");
  const audited = async (id: string): Promise<unknown[]> => {
    const { records } = await lab.server.client.call("listAudit", { limit: 1000 });
    return records.filter(({ target, action }) => target === id && action.startsWith("guardian."));
  };

  test("GRD-3: is followed by another one in its conversation, on the files that it left, with a snapshot and a record", async () => {
    const { id } = await lab.begin(["call echo work > work.txt", DIE, "text never said"], { checks: ["grep -q work work.txt"] });
    expect(await lab.ended(id)).toMatchObject({ state: "completed", outcome: "done", restarts: 1, reason: null });
    expect(await steps(id)).toMatchObject([{ step: "restart", detector: "death", evidence: expect.stringContaining("137") as string }]);
    expect(await audited(id)).toMatchObject([
      { action: "guardian.restart", rule: "death", snapshot: expect.stringMatching(/^snp/) as string },
    ]);
    const { messages } = await lab.server.client.call("listRunMessages", { run: id });
    expect(messages).toMatchObject([
      { from: "task", state: "delivered" },
      { from: "guardian", text: expect.stringContaining("go on with the task") as string, state: "delivered" },
    ]);
    const events = await lab.events(id);
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
  });

  test("GRD-3: again is followed by one with the condensed conversation, then by one on the last good snapshot; then the run ends", async () => {
    const { id } = await lab.begin(["call echo good > good.txt", "call git checkout -- .", "call touch dies later.txt", DIE]);
    const ended = await lab.ended(id);
    // The second and the third can't bear the state that the first one left. The fourth does not find it.
    expect(ended).toMatchObject({ state: "failed", outcome: "failed", restarts: 3 });
    expect(ended.steps).toBeGreaterThan(4);
    expect(ended.reason).toMatch(/137.*started again 3 times within the hour/);
    expect((await steps(id)).map(({ step }) => step)).toEqual(["restart", "restart", "restart", "stop"]);
    expect(await audited(id)).toHaveLength(4);
    const events = await lab.events(id);
    const told = events.flatMap((event) => (event.type === "message" && event.from !== "agent" ? [event.text] : []));
    expect(told).toMatchObject([
      expect.stringMatching(/^call echo good/),
      expect.stringMatching(/^Your program ended/),
      // What was said before stands before the task that it is given.
      expect.stringMatching(/^call echo good/),
      expect.stringMatching(/^call echo good/),
    ]);
    // The clone is watched again after it was brought back.
    expect(events.findLast(({ type }) => type === "file_change")).toMatchObject({ paths: ["dies", "later.txt"] });
    const { attempts } = await lab.server.client.call("inspectExperiment", { experiment: ended.experiment ?? "" });
    expect(attempts).toMatchObject([{ state: "failed", diff: { files: 3 }, snapshot: expect.any(String) as string }]);
  });

  test.each(["killed", "greedy"])("GRD-3: as a plain command, %s, is started again; its work is kept", async (agent) => {
    const { id } = await lab.begin(["go"], { agent: { agent } });
    const ended = await lab.ended(id);
    expect(ended).toMatchObject({ state: "failed", outcome: "failed", restarts: 3 });
    const { attempts } = await lab.server.client.call("inspectExperiment", { experiment: ended.experiment ?? "" });
    expect(attempts).toMatchObject([{ state: "failed", diff: { files: 1 }, snapshot: expect.any(String) as string }]);
  });

  test("GRD-3: for a cause that stays is not started again: a verdict of a command, an error that it tells itself, a program that does not start", async () => {
    const failed = '{"type":"result","subtype":"success","is_error":true,"result":"Invalid API key","total_cost_usd":0}';
    const runs = await Promise.all([
      lab.begin(["go"], { agent: { agent: "failing" } }),
      lab.begin([`raw ${failed}`, "exit 1"]),
      lab.begin(["call touch done", DIE], { agent: { guardian: "off" } }),
      lab.begin(["call touch done", DIE], { agent: { guardian: "warn" } }),
    ]);
    for (const { id } of runs) {
      expect(await lab.ended(id)).toMatchObject({ state: "failed", outcome: "failed", restarts: 0 });
      expect(await steps(id)).toEqual([]);
    }
    expect((await lab.ended(runs[1].id)).reason).toBe("Invalid API key");
  });

  test.each(["run.died", "run.ready", "run.again"])("GRD-3: goes on with the next one if the server dies at %s", async (point) => {
    const { server } = lab;
    await server.arm(point);
    const { id } = await lab.begin(["go"], { agent: { agent: "mortal" } });
    await server.died();
    await server.up();
    expect(await lab.ended(id)).toMatchObject({ state: "completed", outcome: "done", restarts: 2 });
    expect((await steps(id)).map(({ step }) => step)).toEqual(["restart", "restart"]);
    expect(await audited(id)).toHaveLength(2);
  });

  test("GRD-3: a second time is started again after a minute, which a person can end; also if the server dies meanwhile", async () => {
    const { server } = lab;
    await server.down();
    const config = JSON.parse(readFileSync(server.paths.config, "utf8")) as object;
    writeFileSync(server.paths.config, JSON.stringify({ ...config, guardian: {} }));
    await server.up();
    await server.arm("run.cooling");
    const { id } = await lab.begin(["go"], { agent: { agent: "mortal" } });
    await server.died();
    await server.up();
    const waiting = await lab.waitForEvent(id, "waiting");
    const restarted = await lab.waitForEvent(id, "guardian");
    expect(Date.parse(waiting.until ?? "") - Date.parse(restarted.at)).toBeGreaterThanOrEqual(60_000);
    expect(await server.client.call("inspectRun", { run: id })).toMatchObject({ restarts: 1, activityUntil: waiting.until });
    await server.client.call("stopRun", { run: id });
    expect(await lab.ended(id)).toMatchObject({ outcome: "cancelled", restarts: 1 });
  });
});
