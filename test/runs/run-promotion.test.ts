/** A change is promoted while the agent that makes it still works: its state at that moment goes into the project, and the agent goes on. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunLab } from "../support/agents/run-lab.ts";
import { needs } from "../support/skip.ts";

describe("a run whose change is promoted while it works", needs("root"), () => {
  let lab: RunLab;
  beforeAll(async () => {
    lab = await RunLab.open();
  });
  afterAll(async () => lab?.remove());

  const real = (name: string): string => join(lab.server.project, name);

  test("PROM-1: is promoted as it is at that moment, goes on undisturbed, and is promoted once more with what came since", async () => {
    const { client } = lab.server;
    const { id } = await lab.begin(
      ["write one.txt first", "call echo x > begun", "hold go", "write one.txt second", "write two.txt more"],
      {
        pick: "none",
      },
    );
    await lab.waitForEvent(id, "tool_result", ({ tool }) => tool === "Bash");
    const { sandbox } = await lab.until(id, ({ state }) => state === "running");
    const promote = { sandbox: sandbox ?? "", only: ["one.txt", "two.txt"], allowRisky: false, ask: false, env: {} };
    expect(await client.call("promote", promote)).toMatchObject({ state: "applied" });
    expect(readFileSync(real("one.txt"), "utf8")).toBe("first\n");
    // The agent has noticed nothing: it waits where it waited.
    expect(await client.call("inspectRun", { run: id })).toMatchObject({ state: "running", restarts: 0 });
    await lab.server.sh(sandbox ?? "", "touch go");
    expect(await lab.ended(id)).toMatchObject({ outcome: "done", restarts: 0, steps: 4 });
    // What it did since is not in the project before a person says so.
    expect([readFileSync(real("one.txt"), "utf8"), existsSync(real("two.txt"))]).toEqual(["first\n", false]);
    expect(await client.call("promote", promote)).toMatchObject({ state: "applied" });
    expect([readFileSync(real("one.txt"), "utf8"), readFileSync(real("two.txt"), "utf8")]).toEqual(["second\n", "more\n"]);
  });

  test("PROM-1: of an experiment that is not decided is refused, with what can be done", async () => {
    const { client } = lab.server;
    const { id, experiment } = await lab.begin(["write three.txt first", "hold go"]);
    const { sandbox } = await lab.until(id, ({ steps }) => steps === 1);
    const asked = { experiment: experiment ?? "", allowRisky: false, ask: false, env: {} };
    await expect(client.call("promote", asked)).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringContaining("has no winner yet: it still runs") as string,
    });
    expect(existsSync(real("three.txt"))).toBe(false);
    await lab.server.sh(sandbox ?? "", "touch go");
    expect(await lab.ended(id)).toMatchObject({ outcome: "done" });
  });

  test("PROM-1: whose promotion is cut off by the death of the server leaves all of it or nothing in the project, and its agent goes on", async () => {
    const { server } = lab;
    const { id } = await lab.begin(["write four.txt whole", "hold go", "write five.txt later"], { pick: "none" });
    await lab.waitForEvent(id, "tool_result");
    const { sandbox } = await lab.until(id, ({ steps }) => steps === 1);
    const promote = { sandbox: sandbox ?? "", only: ["four.txt"], allowRisky: false, ask: false, env: {} };
    await server.arm("promote.half");
    await server.client.call("promote", promote).catch(() => undefined);
    await server.died();
    await server.up();
    await server.sh(sandbox ?? "", "touch go");
    expect(await lab.ended(id)).toMatchObject({ outcome: "done", restarts: 0 });
    const { promotions } = await server.client.call("listPromotions", { project: server.project });
    const mine = promotions.filter((one) => one.sandbox === sandbox);
    expect(existsSync(real("four.txt"))).toBe(mine.some(({ state }) => state === "applied"));
    expect(existsSync(real("five.txt"))).toBe(false);
  });
});
