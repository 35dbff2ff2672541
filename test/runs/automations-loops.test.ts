/** DMN-1: automations that trigger each other, or themselves, are seen and stopped; what rests loses nothing. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ACTING, AutomationLab } from "../support/automations.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const ACTS = { checks: ["test -s a.txt"], authority: "act-and-log" as const };

describe("automations", needs("root"), () => {
  let server: TestServer;
  let lab: AutomationLab;
  const save = (name: string, text: string): void => writeFileSync(join(server.project, name), text);

  beforeAll(async () => {
    server = await TestServer.start({ config: ACTING, files: { "a.txt": "0\n", "b.txt": "0\n", "in.txt": "0\n" } });
    lab = new AutomationLab(server);
  });
  afterAll(async () => server?.remove());

  test("DMN-1: of which one triggers the other, and that one the first, are stopped after one round, with one sentence", async () => {
    const plus = (from: string, to: string): string => `echo $(($(cat ${from}) + 1)) > ${to}`;
    await lab.add("ping", { when: { on: "files", paths: ["a.txt"] }, run: [plus("a.txt", "b.txt")], ...ACTS });
    await lab.add("pong", { when: { on: "files", paths: ["b.txt"] }, run: [plus("b.txt", "a.txt")], ...ACTS });
    save("a.txt", "10\n");
    const pings = await lab.ended("ping", 2);
    expect(pings.map(({ state }) => state)).toEqual(["muted", "promoted"]);
    expect(pings[0]?.reason).toBe("A loop: its own promotion triggered it by way of pong, so nothing was done.");
    expect((await lab.ended("pong", 1)).map(({ state }) => state)).toEqual(["promoted"]);
    expect([lab.read("a.txt"), lab.read("b.txt")]).toEqual(["12\n", "11\n"]);
    // An edit of a person begins a new round, which is stopped as well.
    save("a.txt", "20\n");
    expect((await lab.ended("ping", 4)).map(({ state }) => state)).toEqual(["muted", "promoted", "muted", "promoted"]);
    expect([lab.read("a.txt"), lab.read("b.txt")]).toEqual(["22\n", "21\n"]);
    expect((await lab.state("ping")).state).toBe("active");
    for (const automation of ["ping", "pong"]) await server.client.call("removeAutomation", { automation });
  });

  test("DMN-1: one whose promotion triggers it again is stopped after one round, also after a restart of the server", async () => {
    await lab.add("self", { when: { on: "files", paths: ["a.txt"] }, run: ["echo more >> a.txt"], ...ACTS });
    save("a.txt", "1\n");
    const [loop, first] = await lab.ended("self", 2);
    expect([first?.state, loop?.state]).toEqual(["promoted", "muted"]);
    expect(loop?.reason).toBe("A loop: its own promotion triggered it, so nothing was done.");
    await server.kill();
    await server.up();
    save("a.txt", "2\n");
    expect((await lab.ended("self", 4)).map(({ state }) => state)).toEqual(["muted", "promoted", "muted", "promoted"]);
    expect(lab.read("a.txt")).toBe("2\nmore\n");
    await server.client.call("removeAutomation", { automation: "self" });
  });

  test("DMN-1: what was seen before a pause waits for the resume, also through a kill, and is then done once; what comes meanwhile is not", async () => {
    await lab.add("rests", { when: { on: "files", paths: ["in.txt"] }, batch: 1_500, run: ["echo 7 >> a.txt"], ...ACTS });
    save("a.txt", "start\n");
    save("in.txt", "1");
    const [seen] = await eventually(
      () => lab.firings("rests"),
      (all) => all.length === 1,
    );
    const id = seen?.id ?? "";
    await server.client.call("pauseAutomation", { automation: "rests" });
    await eventually(
      () => lab.look(id),
      ({ reason }) => reason === "The automation is paused: this begins when it is resumed.",
    );
    save("in.txt", "2");
    await server.kill();
    await server.up();
    await eventually(
      () => lab.state("rests"),
      ({ last }) => last?.firing === id && last.state === "seen",
    );
    await server.client.call("resumeAutomation", { automation: "rests" });
    expect(await lab.end(id)).toMatchObject({ state: "promoted", count: 1 });
    expect(lab.read("a.txt")).toBe("start\n7\n");
    expect((await lab.firings("rests")).length).toBe(1);
    const { firings } = await server.client.call("reportFirings", { since: new Date(0).toISOString() });
    expect(firings.find((each) => each.id === id)?.state).toBe("promoted");
  });
});
