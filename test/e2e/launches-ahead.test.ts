/**
 * Launches without files: forks in which attempts are judged are begun while the attempts run, and one more launch waits for whatever is
 * made next.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { namesIn } from "../../src/base/host/names-in.ts";
import { attempt, Lab } from "../support/experiments.ts";
import { traces } from "../support/machine.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const FIX = "echo right > value";
const CHECKS = { checks: ["grep -q right value"] };

describe("a fork that is launched ahead", needs("root"), () => {
  let server: TestServer;
  let lab: Lab;
  beforeEach(async () => {
    server = await TestServer.start({ files: { value: "wrong\n" } });
    lab = new Lab(server);
  });
  afterEach(async () => server?.remove());

  /** Ids of launches that have no row; spares have their ways out already. */
  async function ahead(): Promise<string[]> {
    const folder = join(server.paths.home, "run");
    const { sandboxes } = await server.client.call("listSandboxes", {});
    const known = new Set(sandboxes.map(({ id }) => id));
    return namesIn(folder).filter((name) => !known.has(name) && !existsSync(join(folder, name, "egress.sock")));
  }

  /** One of them may be the one for whatever is made next. */
  const aheadAreAtLeast = (count: number): Promise<string[]> => eventually(ahead, (found) => found.length >= count, 20_000);
  const noneIsAhead = (): Promise<string[]> => eventually(ahead, (found) => found.length === 0, 20_000);
  const happened = async (sandbox: string): Promise<string[]> =>
    (await server.client.call("listEvents", { sandbox, limit: 100 })).events.map(({ type }) => type);

  /** Other tests mount, too, and of older mounts no sandbox is made: one of a few rounds goes by without that. */
  async function oneOf(rounds: number, works: (round: number) => Promise<boolean>): Promise<boolean> {
    for (let round = 0; round < rounds; round += 1) if (await works(round)) return true;
    return false;
  }

  test("is the one in which its attempt is judged, and goes with it", async () => {
    const judged = "sandbox.creating sandbox.running command.started command.ended sandbox.removed";
    const isJudged = await oneOf(5, async () => {
      const { id } = await lab.start([`sleep 1; ${FIX}`, "sleep 1"], CHECKS);
      const waiting = await aheadAreAtLeast(2);
      const ended = await lab.end(id);
      expect(ended).toMatchObject({ state: "done", winner: 1 });
      expect(attempt(ended, "b")).toMatchObject({ checked: { passed: false } });
      await eventually(
        () => Promise.all(waiting.map(happened)),
        (all) => all.every((events) => events.length === 0 || events.at(-1) === "sandbox.removed"),
      );
      return (await Promise.all(waiting.map(happened))).some((events) => events.join(" ") === judged);
    });
    expect(isJudged).toBe(true);
    await noneIsAhead();
  });

  test("is another one where the mounts of the machine have changed meanwhile", async () => {
    const place = join(server.place, "mounted");
    mkdirSync(place);
    const { id } = await lab.start([`sleep 1; ${FIX}`], CHECKS);
    const waiting = await aheadAreAtLeast(1);
    execFileSync("mount", ["-t", "tmpfs", "none", place]);
    try {
      expect(await lab.end(id)).toMatchObject({ state: "done", winner: 1 });
    } finally {
      execFileSync("umount", [place]);
    }
    for (const sandbox of waiting) {
      expect(await happened(sandbox)).toEqual([]);
      expect(traces(server).volumes).not.toContain(sandbox);
    }
    await noneIsAhead();
  });

  test("goes when the attempt is cancelled", async () => {
    const judged = await lab.start(["sleep 60"], CHECKS);
    await aheadAreAtLeast(1);
    const cancelled = await server.client.call("cancelExperiment", { experiment: judged.id, now: true });
    expect(cancelled).toMatchObject({ state: "cancelled" });
    await noneIsAhead();
  });

  test("serves a sandbox with a name of its own, under that name", async () => {
    const create = (name: string): ReturnType<typeof server.client.call<"createSandbox">> =>
      server.client.call("createSandbox", { project: server.project, name, run: { command: ["hostname"] } });
    await create("first");
    const isServed = await oneOf(5, async (round) => {
      const waiting = await aheadAreAtLeast(1);
      const { id, result } = await create(`next-${round}`);
      expect(result?.stdout).toBe(`next-${round}\n`);
      await expect(create(`next-${round}`)).rejects.toMatchObject({ code: "name_taken" });
      return waiting.includes(id);
    });
    expect(isServed).toBe(true);
  });

  test("is not taken for a sandbox with other limits", async () => {
    await server.client.call("createSandbox", { project: server.project, name: "first" });
    const [waiting = ""] = await aheadAreAtLeast(1);
    const other = await server.client.call("createSandbox", { project: server.project, name: "other", limits: { processes: 77 } });
    expect(other.id).not.toBe(waiting);
    expect((await server.client.call("inspectSandbox", { sandbox: "other" })).limits.processes).toBe(77);
    await server.client.call("prune", { all: true });
  });

  const childrenOf = (pid: number): number[] =>
    readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);
  const helper = (): number =>
    childrenOf(server.pid).find((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("cell\0host")) ?? 0;

  test.each(["the helper", "its process 1"])("is not used when %s has ended while it waited", async (what) => {
    const create = async (name: string): Promise<string | undefined> =>
      (await server.client.call("createSandbox", { project: server.project, name, run: { command: ["cat", "value"] } })).result?.stdout;
    await create("first");
    await aheadAreAtLeast(1);
    // Process 1 of a sandbox that runs is a child of the helper; that of one that waits is a child of its launcher, which is outside.
    const isOutside = (pid: number): boolean => /^NSpid:\t\d+$/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
    const found = (): number =>
      what === "the helper" ? helper() : (childrenOf(helper()).filter(isOutside).flatMap(childrenOf).at(-1) ?? 0);
    const victim = await eventually(found, (pid) => pid > 1);
    process.kill(victim, "SIGKILL");
    expect(await create("second")).toBe("wrong\n");
    expect(await create("third")).toBe("wrong\n");
  });

  test("is gone after a kill -9 of the server, and the attempt is judged all the same", async () => {
    const { id } = await lab.start([`sleep 1; ${FIX}`], CHECKS);
    const [waiting = ""] = await aheadAreAtLeast(1);
    await server.kill();
    await server.up();
    expect(await lab.end(id)).toMatchObject({ state: "done", winner: 1 });
    await eventually(
      () => traces(server),
      ({ runs, volumes }) => !runs.includes(waiting) && !volumes.includes(waiting),
    );
  });
});
