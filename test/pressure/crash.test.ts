import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as immediate, setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isRunning } from "../../src/base/host/processes.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { groupsOf, processesInside, traces } from "../support/machine.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const MOST_KILLS = 60;

/** What must hold after every restart: each trace on the machine belongs to a sandbox the server knows, and each of those works. */
async function expectConsistent(server: TestServer): Promise<void> {
  const { sandboxes } = await server.client.call("listSandboxes", {});
  const live = sandboxes.filter(({ state }) => state === "running").map(({ id }) => id);
  const known = new Set(sandboxes.map(({ id }) => id));
  const found = traces(server);
  expect(sandboxes.every(({ state }) => ["running", "paused", "completed", "failed"].includes(state))).toBe(true);
  expect(found.runs).toEqual(live.toSorted());
  expect(found.volumes.every((name) => known.has(name))).toBe(true);
  expect(found.logs.every((name) => known.has(name))).toBe(true);
  for (const id of live) expect((await server.sh(id, "echo alive")).stdout).toBe("alive\n");
  const processes = processesInside(server);
  expect(processes.length).toBe(live.length);
}

describe("a server killed at a named point", needs("root"), () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start({ config: { spares: false } });
  });

  afterAll(async () => server.remove());

  for (const point of ["create.row", "create.volume", "create.launch", "create.running"]) {
    test(`F-01: at ${point} leaves a sandbox that works or none, and a retry with the same key gives one`, async () => {
      const key = `key-${point}`;
      await server.dieAt(point, () => server.create({ idempotencyKey: key }));
      await expectConsistent(server);
      const box = await server.create({ idempotencyKey: key });
      const { sandboxes } = await server.client.call("listSandboxes", {});
      expect(sandboxes.map(({ id }) => id)).toEqual([box.id]);
      await expectConsistent(server);
      await server.client.call("removeSandbox", { sandbox: box.id });
      await expectConsistent(server);
    });
  }

  test("F-02: between making a sandbox's processes and noting them leaves none of them", async () => {
    await server.arm("create.launch");
    await expect(server.create()).rejects.toMatchObject({ code: "server_unreachable" });
    await server.died();
    expect(processesInside(server).length, "it had a process 1 when the server died").toBe(1);
    await server.up();
    await expectConsistent(server);
    await server.client.call("prune", { all: true });
    await expectConsistent(server);
  });

  test("F-02: at whatever moment of a launch leaves no process that the next server does not know", async () => {
    // Later each time, by more on a machine that is slow, until the create has been answered before the server dies.
    let answered = false;
    for (let kills = 0; kills < MOST_KILLS && !answered; kills += 1) {
      const create = { isOver: false };
      const creating = server
        .create()
        .then(
          () => true,
          () => false,
        )
        .finally(() => (create.isOver = true));
      // Looked at as often as can be: the moment is short.
      while (traces(server).runs.length === 0 && !create.isOver) await immediate();
      await delay(2 * kills + kills ** 2 / 10);
      await server.kill();
      answered = await creating;
      await server.up();
      await expectConsistent(server);
      await server.client.call("prune", { all: true });
      await expectConsistent(server);
    }
    expect(answered, "the kills went through the whole create").toBe(true);
  }, 120_000);

  for (const point of ["remove.begun", "remove.stopped", "remove.volume"]) {
    test(`F-03: at ${point} finishes the removal`, async () => {
      const box = await server.create();
      await server.client.call("createSnapshot", { sandbox: box.id });
      await server.dieAt(point, () => server.client.call("removeSandbox", { sandbox: box.id }));
      expect((await server.client.call("listSandboxes", {})).sandboxes).toEqual([]);
      expect(groupsOf(new Set([box.id]))).toEqual([]);
      await expectConsistent(server);
    });
  }

  test("F-34: at snapshot.volume leaves no half snapshot", async () => {
    const box = await server.create();
    await server.dieAt("snapshot.volume", () => server.client.call("createSnapshot", { sandbox: box.id, name: "lost" }));
    expect((await server.client.call("listSnapshots", { sandbox: box.id })).snapshots).toEqual([]);
    await eventually(
      () => readdirSync(join(server.paths.home, "pool/snapshots")),
      (names) => names.length === 0,
    );
    await server.client.call("createSnapshot", { sandbox: box.id, name: "lost" });
    await expectConsistent(server);
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  const standStill = {
    "snapshot.frozen": (sandbox: string) => server.client.call("createSnapshot", { sandbox }),
    "pause.frozen": (sandbox: string) => server.client.call("pauseSandbox", { sandbox }),
  };
  for (const [point, work] of Object.entries(standStill)) {
    test(`F-34: at ${point}, while the processes of a sandbox stand still, leaves them running`, async () => {
      const box = await server.create();
      const counting = await server.sh(box.id, "while :; do echo tick; sleep 0.05; done", { background: true });
      await server.dieAt(point, () => work(box.id));
      expect(await server.client.call("inspectSandbox", { sandbox: box.id })).toMatchObject({ state: "running" });
      await expectConsistent(server);
      const ticks = async () => (await server.client.call("inspectCommand", { sandbox: box.id, command: counting.id })).stdout.length;
      const before = await ticks();
      await eventually(ticks, (now) => now > before);
      await server.client.call("removeSandbox", { sandbox: box.id });
    });
  }

  for (const point of ["rollback.begun", "rollback.stopped", "rollback.volume"]) {
    test(`F-34: at ${point} ends in the snapshot's state`, async () => {
      const box = await server.create();
      await server.sh(box.id, "echo one > state");
      await server.client.call("createSnapshot", { sandbox: box.id, name: "one" });
      await server.sh(box.id, "echo two > state");
      await server.dieAt(point, () => server.client.call("rollback", { sandbox: box.id, snapshot: "one" }));
      expect((await server.sh(box.id, "cat state")).stdout).toBe("one\n");
      await expectConsistent(server);
      await server.client.call("removeSandbox", { sandbox: box.id });
    });
  }

  test("F-34: at start.begun ends in a sandbox that runs, with its files", async () => {
    const box = await server.create();
    await server.sh(box.id, "echo work > kept");
    await server.client.call("stopSandbox", { sandbox: box.id });
    await server.dieAt("start.begun", () => server.client.call("startSandbox", { sandbox: box.id }));
    expect(await server.client.call("inspectSandbox", { sandbox: box.id })).toMatchObject({ state: "running", outcome: null });
    expect((await server.sh(box.id, "cat kept")).stdout).toBe("work\n");
    await expectConsistent(server);
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  for (const point of ["stop.completing", "stop.stopped", "stop.snapshot"]) {
    test(`F-11: at ${point} ends stopped, with the work kept`, async () => {
      const box = await server.create();
      await server.sh(box.id, "echo work > kept");
      await server.dieAt(point, () => server.client.call("stopSandbox", { sandbox: box.id }));
      expect(await server.client.call("inspectSandbox", { sandbox: box.id })).toMatchObject({ state: "completed", outcome: "done" });
      const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box.id });
      expect((await server.sh(sandboxes[0]?.id ?? "", "cat kept")).stdout).toBe("work\n");
      for (const each of [box, ...sandboxes]) await server.client.call("removeSandbox", { sandbox: each.id });
      await expectConsistent(server);
    });
  }
});

describe("a sandbox launched ahead", needs("root"), () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start();
  });

  afterAll(async () => server.remove());

  /** Waits until the spare is there and returns its id. */
  async function spare(): Promise<string> {
    const { sandboxes } = await server.client.call("listSandboxes", {});
    const known = new Set(sandboxes.map(({ id }) => id));
    const runs = await eventually(
      () => traces(server).runs.filter((id) => !known.has(id) && processesInside(server).length > known.size),
      (ids) => ids.length === 1,
    );
    return runs[0] ?? "";
  }

  test("is what the next create gives, and no less fresh", async () => {
    const first = await server.create();
    const ahead = await spare();
    const second = await server.create({ labels: { which: "second" } });
    expect(second.id).toBe(ahead);
    expect((await server.sh(second.id, "cat hello.txt; hostname")).stdout).toBe(`hello\n${second.name}\n`);
    for (const box of [first, second]) await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("is not given when much moved on in reality, and goes", async () => {
    const first = await server.create();
    const ahead = await spare();
    writeFileSync(join(server.project, "hello.txt"), "moved\n");
    writeFileSync(join(server.project, "large"), "x".repeat(LIMITS.broughtBytes));
    const second = await server.create();
    expect(second.id).not.toBe(ahead);
    expect((await server.sh(second.id, "cat hello.txt")).stdout).toBe("moved\n");
    await eventually(
      () => traces(server).volumes,
      (ids) => !ids.includes(ahead),
    );
    for (const box of [first, second]) await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("is cleared after a kill -9 of the server", async () => {
    const box = await server.create();
    const ahead = await spare();
    await server.kill();
    await server.up();
    await eventually(
      () => traces(server),
      ({ runs, volumes }) => !runs.includes(ahead) && !volumes.includes(ahead),
    );
    expect(processesInside(server).length).toBe(1);
    expect(groupsOf(new Set([ahead]))).toEqual([]);
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("goes by itself, soon after its project's last sandbox", async () => {
    const box = await server.create();
    const ahead = await spare();
    await server.client.call("removeSandbox", { sandbox: box.id });
    expect(processesInside(server)).toHaveLength(1);
    await eventually(
      () => traces(server),
      ({ runs, volumes }) => !runs.includes(ahead) && !volumes.includes(ahead),
      20_000,
    );
    expect(processesInside(server)).toEqual([]);
    expect(groupsOf(new Set([ahead]))).toEqual([]);
  });

  test("that died while it waited is not given", async () => {
    const box = await server.create();
    const ahead = await spare();
    const { processId } = await server.client.call("inspectSandbox", { sandbox: box.id });
    const first = processesInside(server).find((pid) => pid !== processId) ?? 0;
    process.kill(first, "SIGKILL");
    // It takes everything inside with it, and counts as running until that is done.
    await eventually(
      () => isRunning(first),
      (running) => !running,
    );
    const next = await server.create();
    expect(next.id).not.toBe(ahead);
    expect((await server.sh(next.id, "echo alive")).stdout).toBe("alive\n");
    for (const each of [box, next]) await server.client.call("removeSandbox", { sandbox: each.id });
  });
});

describe("sandboxes whose server was killed", needs("root"), () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start({ config: { spares: false } });
  });

  afterAll(async () => server.remove());

  test("BOX-9 and F-04: go on, with running commands, their output and their exit codes", async () => {
    const box = await server.create();
    const long = await server.sh(box.id, "for i in 1 2 3 4 5 6; do echo line $i; sleep 0.2; done; exit 7", { background: true });
    const quick = await server.sh(box.id, "sleep 0.3; echo quick; exit 5", { background: true });
    await server.kill();
    await new Promise((resolve) => setTimeout(resolve, 600)); // the quick one ends while no server is there
    await server.up();
    const ended = await server.client.call("inspectCommand", { sandbox: box.id, command: quick.id });
    expect([ended.running, ended.end?.exitCode, ended.stdout]).toEqual([false, 5, "quick\n"]);
    const done = await eventually(
      () => server.client.call("inspectCommand", { sandbox: box.id, command: long.id }),
      ({ running }) => !running,
    );
    expect([done.end?.exitCode, done.stdout]).toEqual([7, "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\n"]);
    expect((await server.sh(box.id, "echo again")).stdout).toBe("again\n");
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("F-13: are failed with outcome lost when their processes are gone, and their files can be forked", async () => {
    const box = await server.create();
    await server.sh(box.id, "echo precious > kept");
    const { processId } = await server.client.call("inspectSandbox", { sandbox: box.id });
    await server.kill();
    process.kill(processId ?? 0, "SIGKILL");
    await server.up();
    expect(await server.client.call("inspectSandbox", { sandbox: box.id })).toMatchObject({ state: "failed", outcome: "lost" });
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box.id });
    expect((await server.sh(sandboxes[0]?.id ?? "", "cat kept")).stdout).toBe("precious\n");
    for (const each of [box, ...sandboxes]) await server.client.call("removeSandbox", { sandbox: each.id });
  });

  test("F-07: a process 1 killed from outside fails its sandbox within two seconds", async () => {
    const box = await server.create();
    const command = await server.sh(box.id, "sleep 100", { background: true });
    const { processId } = await server.client.call("inspectSandbox", { sandbox: box.id });
    process.kill(processId ?? 0, "SIGKILL");
    const failed = await eventually(
      () => server.client.call("inspectSandbox", { sandbox: box.id }),
      ({ state }) => state === "failed",
      2_000,
    );
    expect(failed.reason).toContain("ended unexpectedly");
    expect((await server.client.call("inspectCommand", { sandbox: box.id, command: command.id })).end?.cause).toBe("lost");
    expect(groupsOf(new Set([box.id]))).toEqual([]);
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("a second server on the same state folder refuses to start", async () => {
    expect(await server.second()).toMatchObject({ code: 3, log: expect.stringContaining("Another server works with the state folder") });
  });

  test("CLONE-9: destroying leaves no process, group, volume, socket or log behind", async () => {
    const boxes = await Promise.all(Array.from({ length: 5 }, () => server.create()));
    await Promise.all(boxes.map((box) => server.sh(box.id, "sleep 1000 & setsid sleep 1000 & echo x > f", { background: true })));
    const before = traces(server).mounts;
    await Promise.all(boxes.map((box) => server.client.call("removeSandbox", { sandbox: box.id })));
    const ids = new Set(boxes.map(({ id }) => id));
    expect(groupsOf(ids)).toEqual([]);
    expect(processesInside(server)).toEqual([]);
    expect(traces(server)).toEqual({ volumes: [], runs: [], logs: [], mounts: before });
  });
});
