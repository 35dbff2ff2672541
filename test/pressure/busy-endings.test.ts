/** F-23 and F-25 of the fault list: sandboxes whose processes or places on the machine do not let go. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { isRunning } from "../../src/base/host/processes.ts";
import { compile } from "../support/attacks.ts";
import { groupsOf, processesInside, traces } from "../support/machine.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** The grace of a stop, what it may take longer, and a loaded machine. */
const STOP_BOUND_MS = 12_000;

describe("the end of a sandbox", needs("root", "compiler"), () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start({ config: { spares: false } });
    compile(server.project, "stubborn");
  });
  afterAll(async () => server.remove());

  async function firstProcess(sandbox: string): Promise<number> {
    const { processId } = await server.client.call("inspectSandbox", { sandbox });
    // Signals to process 0 or 1 would hit others than the sandbox.
    if (processId === null || processId === undefined || processId <= 1) throw new Error("the sandbox has no process");
    return processId;
  }

  /** Calls, and tells how long it took. */
  async function timed(call: Promise<unknown>): Promise<number> {
    const began = performance.now();
    await call;
    return performance.now() - began;
  }

  async function expectKept(sandbox: string): Promise<void> {
    expect(groupsOf(new Set([sandbox]))).toEqual([]);
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox });
    const fork = sandboxes[0]?.id ?? "";
    expect((await server.sh(fork, "cat kept")).stdout).toBe("work\n");
    for (const id of [fork, sandbox]) await server.client.call("removeSandbox", { sandbox: id });
    expect(processesInside(server)).toEqual([]);
  }

  test("F-25: comes in bounded time over processes that are stopped, traced, waiting without an ear, or never buried", async () => {
    const box = await server.create();
    await server.sh(box.id, "echo work > kept");
    for (const kind of ["stopped", "traced", "vfork", "zombies", "deaf"])
      await server.client.call("runCommand", { sandbox: box.id, command: [join(server.project, "stubborn"), kind], background: true });
    const states = await eventually(
      () => server.sh(box.id, "for p in /proc/[0-9]*; do sed 's/.*) \\(.\\).*/\\1/' $p/stat 2>/dev/null; done | sort | uniq -c"),
      ({ stdout }) => [" T", " t", " D", "200 Z"].every((state) => stdout.includes(state)),
    );
    expect(states.stdout).toContain("Z");
    expect(await timed(server.client.call("stopSandbox", { sandbox: box.id }))).toBeLessThan(STOP_BOUND_MS);
    await expectKept(box.id);
  });

  test("F-25: comes in bounded time when process 1 itself stands still, and when it was paused", async () => {
    const [still, paused, removed] = [await server.create(), await server.create(), await server.create()];
    for (const box of [still, paused]) await server.sh(box.id, "echo work > kept");
    const first = await firstProcess(still.id);
    process.kill(first, "SIGSTOP");
    expect(await timed(server.client.call("stopSandbox", { sandbox: still.id }))).toBeLessThan(STOP_BOUND_MS);
    expect(isRunning(first)).toBe(false);
    await server.client.call("pauseSandbox", { sandbox: paused.id });
    expect(await timed(server.client.call("stopSandbox", { sandbox: paused.id }))).toBeLessThan(STOP_BOUND_MS);
    process.kill(await firstProcess(removed.id), "SIGSTOP");
    expect(await timed(server.client.call("removeSandbox", { sandbox: removed.id }))).toBeLessThan(STOP_BOUND_MS);
    for (const box of [still, paused]) await expectKept(box.id);
  });

  test("F-25: comes in bounded time when a server finds a process 1 that stands still without a note of it", async () => {
    await server.arm("create.launch");
    await expect(server.create()).rejects.toMatchObject({ code: "server_unreachable" });
    await server.died();
    const [first = 0] = processesInside(server);
    expect(first).toBeGreaterThan(1);
    process.kill(first, "SIGSTOP");
    expect(await timed(server.up())).toBeLessThan(20_000);
    await server.client.call("prune", {});
    expect(isRunning(first)).toBe(false);
    expect(traces(server)).toMatchObject({ volumes: [], runs: [], logs: [] });
  }, 60_000);

  const outsiders: ChildProcess[] = [];
  afterEach(() => outsiders.splice(0).forEach((child) => child.kill("SIGKILL")));

  /** A process of reality, as a curious administrator's. */
  async function outsider(...words: readonly string[]): Promise<ChildProcess> {
    const child = spawn(words[0] ?? "", words.slice(1), { stdio: "ignore" });
    outsiders.push(child);
    await once(child, "spawn");
    return child;
  }

  async function end(child: ChildProcess): Promise<void> {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  test("F-23: is not told to be over while a group is held, and comes as soon as it is let go", async () => {
    const box = await server.create();
    const { stdout: range } = await server.sh(box.id, "awk '{print $2}' /proc/self/uid_map");
    const holder = await outsider("sleep", "600");
    const groups = groupsOf(new Set([box.id]));
    for (const group of groups) writeFileSync(join(group, "cgroup.procs"), String(holder.pid));
    await expect(server.client.call("removeSandbox", { sandbox: box.id })).rejects.toMatchObject({ code: "busy" });
    expect(holder.exitCode).toBeNull();
    const { events } = await server.client.call("listEvents", { limit: 1000 });
    expect(events.filter(({ type, sandbox }) => type === "sandbox.removed" && sandbox === box.id)).toEqual([]);
    const other = await server.create();
    expect((await server.sh(other.id, "awk '{print $2}' /proc/self/uid_map")).stdout, "its ids are not given away").not.toBe(range);
    await end(holder);
    await eventually(
      () => groupsOf(new Set([box.id])),
      (left) => left.length === 0,
      20_000,
    );
    await eventually(
      () => server.client.call("listEvents", { limit: 1000 }),
      (all) => all.events.some(({ type, sandbox }) => type === "sandbox.removed" && sandbox === box.id),
    );
    expect(traces(server).volumes).toEqual([other.id]);
    await server.client.call("removeSandbox", { sandbox: other.id });
  }, 60_000);

  test.each(["a working folder", "its mounts"])("F-23: leaves nothing behind although a process outside holds %s", async (what) => {
    const box = await server.create();
    await server.sh(box.id, "echo work > held");
    const first = await firstProcess(box.id);
    const holder =
      what === "its mounts"
        ? await outsider("nsenter", "-t", String(first), "-m", "sleep", "600")
        : await outsider("sh", "-c", `cd /proc/${first}/root${server.project} && exec 3<held && exec sleep 600`);
    await eventually(
      () => readFileSync(`/proc/${holder.pid}/comm`, "utf8"),
      (name) => name === "sleep\n",
    );
    await server.client.call("removeSandbox", { sandbox: box.id });
    expect(isRunning(holder.pid ?? 0)).toBe(true);
    expect(traces(server)).toMatchObject({ volumes: [], runs: [], logs: [] });
    await end(holder);
    await eventually(
      () =>
        ["pool/volumes", "volumes/volumes"]
          .map((name) => join(server.paths.home, name))
          .flatMap((folder) => (existsSync(folder) ? readdirSync(folder) : [])),
      (names) => names.length === 0,
    );
  });
});
