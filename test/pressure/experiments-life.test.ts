/** Experiments that wait, are cancelled, retried, or lose their server. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { attempt, Lab } from "../support/experiments.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const FILES = { value: "wrong\n" };
const CHECK = "grep -q right value";
const FIX = "echo right > value";

describe("the life of an experiment", needs("root"), () => {
  let server: TestServer;
  let lab: Lab;

  beforeAll(async () => {
    server = await TestServer.start({ files: FILES, config: { spares: false, parallel: 2 } });
    lab = new Lab(server);
  });

  afterEach(async () => {
    for (const { id } of (await server.client.call("listExperiments", {})).experiments) await lab.remove(id);
    writeFileSync(join(server.project, "value"), "wrong\n");
  });

  afterAll(async () => server.remove());

  test("TASK-1: attempts of all experiments share one limit, and the larger priority goes first", async () => {
    const first = await lab.start(["sleep 1", "sleep 1", "sleep 0.2"]);
    await lab.until(first.id, "b", "running");
    const low = await lab.start(["true"], { priority: -5 });
    const high = await lab.start(["true"], { priority: 5 });
    expect(attempt(await lab.look(low.id), "a").state).toBe("queued");
    const [one, two, three] = [await lab.end(first.id), await lab.end(low.id), await lab.end(high.id)];
    const begun = (experiment: typeof one, name: string): number => Date.parse(attempt(experiment, name).startedAt ?? "");
    expect(begun(three, "a")).toBeGreaterThanOrEqual(begun(one, "a") + 900);
    expect(begun(three, "a")).toBeLessThanOrEqual(begun(one, "c"));
    expect(begun(one, "c")).toBeLessThanOrEqual(begun(two, "a"));
    for (const { id } of [one, two, three]) await lab.remove(id);
  });

  test("EXP-1: cancelling asks commands to end, keeps what was done, and starts nothing more", async () => {
    const started = await lab.start(
      ["trap 'echo asked; echo half > value; exit 9' TERM; echo begun > notes; while :; do sleep 0.05; done", FIX, "sleep 0.1", "true"],
      { checks: [CHECK], maxParallel: 2 },
    );
    await lab.until(started.id, "b", "done");
    await lab.until(started.id, "a", "running");
    const ended = await server.client.call("cancelExperiment", { experiment: started.id });
    expect(ended).toMatchObject({ state: "cancelled", winner: null });
    expect(ended.reason).toMatch(/^It was cancelled when [123] of 4 attempts had ended\.$/);
    expect(attempt(ended, "a")).toMatchObject({ state: "cancelled", exitCode: 9, output: expect.stringContaining("asked") as string });
    expect(attempt(ended, "a").snapshot).not.toBeNull();
    expect((await server.sh(attempt(ended, "a").sandbox ?? "", "cat value notes")).stdout).toBe("half\nbegun\n");
    expect(attempt(ended, "b")).toMatchObject({ state: "done", checked: { passed: true } });
    const retried = await server.client.call("retryExperiment", { experiment: started.id });
    expect(attempt(retried, "a").state).toBe("queued");
    expect(attempt(retried, "b")).toMatchObject({ state: "done", sandbox: attempt(ended, "b").sandbox });
    await lab.until(started.id, "a", "running");
    const killed = await server.client.call("cancelExperiment", { experiment: started.id, now: true });
    expect(attempt(killed, "a")).toMatchObject({ state: "cancelled" });
    expect(attempt(killed, "a").output).not.toContain("asked");
    const picked = await server.client.call("pickWinner", { experiment: started.id, attempt: "b" });
    expect(picked).toMatchObject({ state: "done", winner: 2 });
    await lab.remove(started.id);
    await lab.sandboxes(started.id, 0);
  });

  test("EXP-1: one that is removed while it runs leaves nothing", async () => {
    const started = await lab.start(["sleep 60", "sleep 60", "sleep 60"], { checks: [CHECK] });
    await lab.until(started.id, "a", "running");
    await lab.remove(started.id);
    await lab.sandboxes(started.id, 0);
    await expect(lab.look(started.id)).rejects.toMatchObject({ code: "not_found" });
  });

  test("EXP-1: sandboxes of an attempt are not idle while it runs", async () => {
    const started = await lab.start(["sleep 0.5"], {});
    const sandboxes = await server.client.call("listSandboxes", {});
    expect(sandboxes.sandboxes.every(({ idleMs }) => idleMs === 0)).toBe(true);
    const ended = await lab.end(started.id);
    await eventually(
      async () => (await server.client.call("inspectSandbox", { sandbox: attempt(ended, "a").sandbox ?? "" })).idleMs,
      (idleMs) => idleMs > 0,
    );
    await lab.remove(started.id);
  });

  for (const point of [
    "experiment.row",
    "freeze.row",
    "freeze.snapshot",
    "freeze.frozen",
    "experiment.origin",
    "experiment.cloned",
    "experiment.ran",
    "experiment.frozen",
    "experiment.baseline",
    "experiment.attempt",
    "experiment.verified",
    "experiment.chosen",
    "experiment.ended",
  ]) {
    test(`TASK-1: a server killed at ${point} goes on with the experiment, from the same reality`, async () => {
      await server.arm(point);
      const lines = [`cat value; ${FIX}`, "cat value; true"];
      await lab.start(lines, { checks: [CHECK] }).catch(() => undefined);
      await server.died();
      // What moves in reality meanwhile is not seen, once it was frozen.
      if (point !== "experiment.row" && !point.startsWith("freeze.")) writeFileSync(join(server.project, "value"), "moved\n");
      await server.up();
      const { experiments } = await server.client.call("listExperiments", {});
      expect(experiments.length).toBe(1);
      const ended = await lab.end(experiments[0]?.id ?? "");
      expect(ended).toMatchObject({ state: "done", winner: 1, baseline: { passed: false } });
      expect(ended.attempts.map(({ output }) => output)).toEqual(["wrong\n", "wrong\n"]);
      expect(attempt(ended, "a")).toMatchObject({ state: "done", verified: { passed: true } });
      expect(ended.attempts.every(({ reruns }) => reruns <= 1)).toBe(true);
      await lab.sandboxes(ended.id, 3);
      // What is kept holds the machine no longer.
      await eventually(
        async () => (await server.client.call("listSandboxes", {})).sandboxes,
        (all) => all.every(({ labels, state, idleMs }) => (labels["role"] === "origin" ? state === "completed" : idleMs > 0)),
      );
      await lab.remove(ended.id);
      writeFileSync(join(server.project, "value"), "wrong\n");
    });
  }

  test("TASK-1: what waits in the queue goes on after a stop of the server, ended attempts stay as they are", async () => {
    const started = await lab.start(["date +%s%N", "sleep 1; cat value", "cat value"], { maxParallel: 1, priority: 3 });
    const before = await lab.until(started.id, "b", "running");
    await server.down();
    await server.up();
    const ended = await lab.end(started.id);
    expect(attempt(ended, "a")).toEqual({ ...attempt(before, "a"), rank: attempt(ended, "a").rank });
    expect(attempt(ended, "b")).toMatchObject({ state: "done", reruns: 1, output: "wrong\n" });
    expect(attempt(ended, "c")).toMatchObject({ state: "done", reruns: 0, output: "wrong\n" });
    await lab.sandboxes(ended.id, 4);
    await lab.remove(ended.id);
  });

  test("EXP-1: one that lost the reality it started from says exactly what is missing", async () => {
    const started = await lab.start([FIX, "sleep 60"], { checks: [CHECK] });
    await lab.until(started.id, "a", "done");
    const origin = (await server.client.call("listSandboxes", {})).sandboxes.find(({ labels }) => labels["role"] === "origin");
    await server.client.call("removeSandbox", { sandbox: origin?.id ?? "" });
    await server.kill();
    await server.up();
    const ended = await lab.end(started.id);
    expect(ended.state).toBe("failed");
    expect(ended.reason).toMatch(
      /^It was interrupted, and the frozen reality that it started from \(snapshot snp\w+\) is gone: Attempt 2 \(b\) can't be run\. What had ended is kept\.$/,
    );
    expect(attempt(ended, "a")).toMatchObject({ state: "done", checked: { passed: true } });
    await expect(server.client.call("retryExperiment", { experiment: started.id })).rejects.toMatchObject({ code: "not_found" });
    await lab.remove(started.id);
    expect(readFileSync(join(server.project, "value"), "utf8")).toBe("wrong\n");
  });
});

describe("an experiment on a machine without room", needs("root"), () => {
  test("TASK-1: attempts wait for room and say so, and go on when there is some", async () => {
    const server = await TestServer.start({ files: FILES, config: { spares: false, ceilings: { sandboxes: 3 } } });
    const lab = new Lab(server);
    try {
      const other = await server.create();
      const started = await lab.start(["sleep 0.5", "true"]);
      const waiting = await eventually(
        () => lab.look(started.id),
        ({ attempts }) => attempts.some(({ reason }) => reason?.includes("waits for room") === true),
      );
      expect(waiting.attempts.map(({ reason }) => reason).join("")).toContain("the ceiling of this machine is 3");
      await server.client.call("removeSandbox", { sandbox: other.id });
      const ended = await lab.end(started.id);
      expect(ended.attempts.map(({ state }) => state)).toEqual(["done", "done"]);
      await lab.remove(started.id);
    } finally {
      await server.remove();
    }
  });
});
