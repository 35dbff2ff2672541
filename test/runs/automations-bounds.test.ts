/** DMN-1, DMN-2: budgets, quiet hours and the limit on work in progress hold through the server, with a clock that jumps. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunLab } from "../support/agents/run-lab.ts";
import { AutomationLab, type ShownFiring } from "../support/automations.ts";
import { JumpingClock } from "../support/jumping-clock.ts";
import { ScriptedModel } from "../support/scripted-model.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

const CHECK = "test -s answer.txt";
const HOUR_MS = 3_600_000;
/** Half a dollar. */
const PRICED = { text: "hello", usage: { input: 500_000, output: 0, thinking: 0, cacheRead: 0 } };

describe("the bounds of automations", needs("root", "curl"), () => {
  let server: TestServer;
  let lab: AutomationLab;
  let clock: JumpingClock;
  let model: ScriptedModel;

  beforeAll(async () => {
    clock = new JumpingClock();
    clock.set(13, 0);
    model = await ScriptedModel.open({ priced: Array.from({ length: 20 }, () => PRICED) });
    server = await TestServer.start({
      config: {
        spares: false,
        models: { anthropic: { url: model.url, secret: "shared" } },
        prices: { priced: { input: 1, output: 1 } },
        automations: { authority: "act-and-log", parallel: 2 },
      },
      env: clock.env,
      files: { "answer.txt": "41\n" },
    });
    RunLab.on(server);
    viv(server, ["secret", "set", "shared", "--host", new URL(model.url).host, "--all-projects"], { input: "not-used\n" });
    lab = new AutomationLab(server);
  });
  afterAll(async () => {
    await server?.remove();
    model?.close();
    clock?.remove();
  });

  const held = (id: string, reason: string): Promise<ShownFiring> =>
    eventually(
      () => lab.look(id),
      (firing) => firing.state === "seen" && (firing.reason ?? "").includes(reason),
    );
  const newest = async (name: string, count: number): Promise<ShownFiring> => {
    const all = await eventually(
      () => lab.firings(name),
      (found) => found.length === count,
    );
    if (all[0] === undefined) throw new Error("there is no firing");
    return all[0];
  };
  const save = (name: string, text: string): void => writeFileSync(join(server.project, name), text);
  const remove = async (name: string): Promise<void> => void (await server.client.call("removeAutomation", { automation: name }));

  test("DMN-2: quiet hours hold a firing up until they are over, and it begins then by itself", async () => {
    clock.set(9, 0);
    await lab.add("quiet", {
      when: { on: "files", paths: ["in.txt"] },
      quiet: { from: "08:00", to: "18:00" },
      run: ["echo 42 > answer.txt"],
      checks: [CHECK],
      authority: "act-and-log",
    });
    save("in.txt", "one");
    const { id } = await newest("quiet", 1);
    await held(id, "It is quiet until 18:00.");
    clock.set(17, 58);
    save("in.txt", "two");
    await eventually(
      () => lab.look(id),
      ({ count }) => count === 2,
    );
    expect(await lab.look(id)).toMatchObject({ state: "seen" });
    clock.set(18, 1);
    expect(await lab.end(id)).toMatchObject({ state: "promoted", count: 2 });
    expect(lab.read("answer.txt")).toBe("42\n");
    await remove("quiet");
  });

  test("DMN-2: a budget of one firing ends its agent, and that of a night holds firings up until the next night", async () => {
    clock.set(13, 0, 1);
    const task = (lines: readonly string[]): string => lines.join("\n");
    await lab.add("dear", {
      task: task(["spend priced", "spend priced", "call echo 43 > answer.txt"]),
      budget: { run: 0.4 },
      checks: [CHECK],
      authority: "act-and-log",
    });
    const over = await lab.run("dear");
    // Half a dollar was asked for before the budget could be over; the second request is refused.
    expect(over.cost).toBe(0.5);
    await remove("dear");
    // Also what is left of the night ends an agent at work, where that is less.
    await lab.add("dear-night", {
      task: task(["spend priced", "spend priced", "call echo 43 > answer.txt"]),
      budget: { run: 5, night: 0.4 },
      checks: [CHECK],
      authority: "act-and-log",
    });
    expect((await lab.run("dear-night")).cost).toBe(0.5);
    await remove("dear-night");
    await lab.add("nightly", {
      when: { on: "files", paths: ["night.txt"] },
      task: task(["spend priced", "call date +%N > answer.txt"]),
      budget: { night: 1 },
      checks: [CHECK],
      authority: "act-and-log",
    });
    for (const round of [1, 2]) {
      save("night.txt", String(round));
      const { id } = await newest("nightly", round);
      expect(await lab.end(id)).toMatchObject({ state: "promoted", cost: 0.5 });
    }
    const report = await server.client.call("reportFirings", { since: new Date(0).toISOString() });
    expect(report.cost).toBeGreaterThanOrEqual(1);
    save("night.txt", "3");
    const third = await newest("nightly", 3);
    await held(third.id, "Its budget of $1 for the night is spent.");
    // A night is from noon to noon: the morning belongs to it.
    clock.set(11, 0, 1);
    await eventually(
      () => server.client.call("testAutomation", { automation: "nightly" }),
      ({ hindrance }) => hindrance === "Its budget of $1 for the night is spent.",
    );
    expect(await lab.look(third.id)).toMatchObject({ state: "seen" });
    clock.set(12, 1);
    expect(await lab.end(third.id)).toMatchObject({ state: "promoted" });
    await remove("nightly");
  });

  test("DMN-1: a schedule fires once for a day that the clock jumps ahead, and not again for one that it jumps back", async () => {
    clock.set(2, 0, 1);
    await lab.add("clock", { when: { on: "schedule", cron: "0 3 * * *" }, run: ["true"], authority: "alert-only" });
    clock.jump(24 * HOUR_MS);
    const [first] = await lab.ended("clock", 1);
    expect(first).toMatchObject({ state: "alerted", count: 1 });
    clock.jump(-24 * HOUR_MS);
    await eventually(
      () => server.client.call("testAutomation", { automation: "clock" }),
      ({ automation }) => Date.parse(automation.nextAt ?? "") - clock.now() < 2 * HOUR_MS,
    );
    clock.set(4, 0);
    await eventually(
      () => server.client.call("testAutomation", { automation: "clock" }),
      ({ automation }) => Date.parse(automation.nextAt ?? "") > clock.now() + 20 * HOUR_MS,
    );
    // Three o'clock of the day that came twice was taken the first time.
    expect((await lab.firings("clock")).length).toBe(1);
    clock.jump(24 * HOUR_MS);
    const both = await lab.ended("clock", 2);
    expect(new Set(both.map(({ seen }) => seen[0]?.text)).size).toBe(2);
    expect(both.map(({ count }) => count)).toEqual([1, 1]);
    await remove("clock");
  });

  test("DMN-1: no more firings work at once than the config says; the next begins when one has ended", async () => {
    const line = "while [ ! -e /tmp/go ]; do sleep 0.1; done; echo 1 > made.txt";
    for (const name of ["one", "two", "three"])
      await lab.add(name, { run: [line], checks: ["test -s made.txt"], together: true, authority: "act-and-log" });
    const started = [];
    for (const name of ["one", "two", "three"]) started.push(await server.client.call("runAutomation", { automation: name }));
    const [first, second, third] = started.map(({ id }) => id);
    const boxes = [await lab.attempt(first ?? ""), await lab.attempt(second ?? "")];
    await held(third ?? "", "2 firings are at work, and no more are allowed.");
    await server.sh(boxes[0] ?? "", "touch /tmp/go");
    await server.sh(await lab.attempt(third ?? ""), "touch /tmp/go");
    await server.sh(boxes[1] ?? "", "touch /tmp/go");
    for (const id of [first, second, third]) expect((await lab.end(id ?? "")).endedAt).not.toBeNull();
  });
});

describe("the budget of all automations", needs("root", "curl"), () => {
  let lab: RunLab;
  let model: ScriptedModel;

  beforeAll(async () => {
    model = await ScriptedModel.open({ priced: Array.from({ length: 20 }, () => PRICED) });
    lab = await RunLab.open({
      spares: false,
      models: { anthropic: { url: model.url, secret: "shared" } },
      prices: { priced: { input: 1, output: 1 } },
      automations: { authority: "act-and-log", parallel: 2, budget: 0.8 },
    });
    viv(lab.server, ["secret", "set", "shared", "--host", new URL(model.url).host, "--all-projects"], { input: "not-used\n" });
  });
  afterAll(async () => {
    await lab?.server.remove();
    model?.close();
  });

  test("DMN-2: is no more than the config says where firings work beside each other: the second has what the first leaves", async () => {
    const automations = new AutomationLab(lab.server);
    const spec = { checks: ["true"], together: true, authority: "act-and-log" as const };
    await automations.add("first", { ...spec, task: "hold go\nspend priced", budget: { run: 0.5 } });
    await automations.add("second", { ...spec, task: "spend priced\nspend priced\nspend priced" });
    const first = await lab.server.client.call("runAutomation", { automation: "first" });
    const box = await automations.attempt(first.id);
    // Of 80 cents 30 are left: the request that goes over them is the last.
    expect((await automations.run("second")).cost).toBe(0.5);
    await lab.server.sh(box, "touch go");
    expect((await automations.end(first.id)).cost).toBe(0.5);
    const third = await lab.server.client.call("runAutomation", { automation: "second" });
    await eventually(
      () => automations.look(third.id),
      ({ reason }) => reason === "The budget of $0.8 for all automations and the night is spent.",
    );
  });
});
