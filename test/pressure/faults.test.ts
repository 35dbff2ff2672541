import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isRunning } from "../../src/base/host/processes.ts";
import { newId } from "../../src/base/schema/ids.ts";
import type { Sandbox } from "../../src/base/schema/sandbox.ts";
import { backUpDaily } from "../../src/base/store/sqlite/backups.ts";
import { groupsOf, traces } from "../support/machine.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { PROGRAM } from "../support/compiled.ts";
import { vivEnvironment } from "../support/viv.ts";

describe("a server with much to do at once", needs("root"), () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start();
  });

  afterAll(async () => server.remove());

  test("F-08: thirty creates at once all give a sandbox of their own that works", async () => {
    const boxes = await Promise.all(Array.from({ length: 30 }, () => server.create()));
    const outputs = await Promise.all(boxes.map(({ id, name }) => server.sh(id, `echo ${name} > mine; cat mine; cat /proc/self/uid_map`)));
    const ranges = outputs.map(({ stdout }, index) => {
      const [mine, map] = stdout.split("\n");
      expect(mine).toBe(boxes[index]?.name);
      return map?.trim().split(/\s+/)[1];
    });
    expect(new Set(ranges).size).toBe(30);
    expect(new Set(boxes.map(({ name }) => name)).size).toBe(30);
    await Promise.all(boxes.map(({ id }) => server.client.call("removeSandbox", { sandbox: id })));
    expect((await server.client.call("listSandboxes", {})).sandboxes).toEqual([]);
  }, 60_000);

  test("F-11: a stop during a snapshot, two stops, and a snapshot during a stop come one after the other", async () => {
    const box = await server.create();
    await server.sh(box.id, "head -c 20000000 /dev/urandom > data");
    const stop = () => server.client.call("stopSandbox", { sandbox: box.id });
    const snapshot = () => server.client.call("createSnapshot", { sandbox: box.id });
    const told = (call: Promise<unknown>): Promise<string> =>
      call.then(
        () => "ok",
        (error: { code: string }) => error.code,
      );
    const results = await Promise.all([snapshot(), stop(), stop(), snapshot()].map(told));
    expect(results.slice(1, 3).toSorted()).toEqual(["illegal_transition", "ok"]);
    for (const result of [results[0], results[3]]) expect(["ok", "not_running"]).toContain(result);
    expect(await server.client.call("inspectSandbox", { sandbox: box.id })).toMatchObject({ state: "completed", outcome: "done" });
    const { snapshots } = await server.client.call("listSnapshots", { sandbox: box.id });
    expect(snapshots).toHaveLength(1 + [results[0], results[3]].filter((result) => result === "ok").length);
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box.id });
    expect((await server.sh(sandboxes[0]?.id ?? "", "wc -c < data")).stdout).toBe("20000000\n");
    for (const { id } of [box, ...sandboxes]) await server.client.call("removeSandbox", { sandbox: id });
  });

  test("F-11: a removal during a create waits for it, and nothing of either stays", async () => {
    for (let round = 0; round < 5; round += 1) {
      const creating = server.create({ name: `round-${round}` });
      const removed = eventually(
        () =>
          server.client.call("removeSandbox", { sandbox: `round-${round}` }).then(
            () => true,
            (error: { code: string }) => error.code,
          ),
        (answer) => answer === true,
      );
      await creating;
      await removed;
    }
    expect((await server.client.call("listSandboxes", {})).sandboxes).toEqual([]);
    await server.client.call("prune", { all: true });
    expect(traces(server)).toMatchObject({ volumes: [], runs: [], logs: [] });
  });

  test("F-51: SIGTERM with open streams ends soon, and the commands go on", async () => {
    const box = await server.create();
    const streams = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        server.client.exec(box.id, {
          command: ["/bin/sh", "-c", "while :; do echo line; sleep 0.2; done"],
          onDisconnect: index % 2 === 0 ? "keep" : "kill",
        }),
      ),
    );
    const watching = new AbortController();
    const heard = (async () => {
      for await (const event of server.client.events(0, { signal: watching.signal })) void event;
    })().catch(() => undefined);
    const ends = streams.map((stream) =>
      stream.end.then(
        () => "ended",
        (error: { code: string }) => error.code,
      ),
    );
    const began = performance.now();
    await server.down();
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(new Set(await Promise.all(ends))).toEqual(new Set(["server_unreachable"]));
    watching.abort();
    await heard;
    await server.up();
    const { commands } = await server.client.call("listCommands", { sandbox: box.id });
    expect(commands.map(({ id }) => id).toSorted()).toEqual(streams.map(({ command }) => command.id).toSorted());
    const [{ id } = { id: "" }] = commands;
    const lines = async () => (await server.client.call("inspectCommand", { sandbox: box.id, command: id })).stdout.length;
    const before = await lines();
    await eventually(lines, (now) => now > before);
    await server.client.call("removeSandbox", { sandbox: box.id });
  });
});

describe("leftovers and damage", needs("root"), () => {
  let server: TestServer;
  let box: Sandbox;

  beforeAll(async () => {
    server = await TestServer.start({ config: { spares: false } });
    box = await server.create();
  });

  afterAll(async () => server.remove());

  const pid = async () => (await server.client.call("inspectSandbox", { sandbox: box.id })).processId;

  test("F-22: what has our prefix and no sandbox is removed at the start, what others put there stays", async () => {
    const { home } = server.paths;
    const [lost, snapshot, base] = [newId("sandbox"), newId("snapshot"), newId("base")];
    const groups = groupsOf(new Set([box.id]));
    expect(groups.length).toBeGreaterThan(0);
    const ours = [
      ...groups.map((group) => join(dirname(group), lost)),
      join(home, "run", lost),
      join(home, "logs", lost),
      join(home, "pool/volumes", lost),
      join(home, "pool/snapshots", `${snapshot}@${lost}`),
      join(home, "pool/bases", base),
      join(home, "pool/volumes/.making-1"),
    ];
    const foreign = [
      ...groups.map((group) => join(dirname(group), "foreign")),
      ...groups.map((group) => join(dirname(dirname(group)), "viv-test-foreign")),
      join(home, "run/notes"),
      join(home, "pool/volumes/notes"),
      join(home, "pool/snapshots/notes"),
    ];
    await server.kill();
    for (const folder of [...ours, ...foreign]) mkdirSync(folder, { recursive: true });
    try {
      await server.up();
      await eventually(
        () => ours.filter((folder) => existsSync(folder)),
        (left) => left.length === 0,
      );
      expect(foreign.filter((folder) => !existsSync(folder))).toEqual([]);
      const { events } = await server.client.call("listEvents", { limit: 1000 });
      expect(JSON.stringify(events.findLast(({ type }) => type === "reconciled")?.data)).toContain(lost);
      expect((await server.sh(box.id, "echo alive")).stdout).toBe("alive\n");
    } finally {
      for (const folder of foreign) rmdirSync(folder);
    }
  });

  test("F-43: a damaged database is refused in clear words, sandboxes go on, and the restored one finds them again", async () => {
    const file = join(server.paths.home, "vivarium.db");
    const command = await server.sh(box.id, "while :; do sleep 0.2; done", { background: true });
    const process1 = await pid();
    await server.down();
    const whole = readFileSync(file);
    const refusals: string[] = [];
    for (const damage of [
      Buffer.alloc(whole.length, "x"),
      Buffer.alloc(0),
      Buffer.concat([whole.subarray(0, 4096), Buffer.alloc(whole.length - 4096, 7)]),
    ]) {
      writeFileSync(file, damage);
      const refused = await server.second();
      refusals.push(`${refused.code} ${refused.log.trim().split("\n").at(-1)}`);
      for (const extra of ["-wal", "-shm"]) rmSync(file + extra, { force: true });
    }
    writeFileSync(file, whole);
    await server.up();
    expect(refusals).toHaveLength(3);
    for (const refusal of refusals) expect(refusal).toMatch(new RegExp(`^125 .*The database ${file} .*store_corrupt.*There is no backup`));
    expect((await server.client.call("listCommands", { sandbox: box.id })).commands).toMatchObject([{ id: command.id, running: true }]);
    expect(await pid()).toBe(process1);
  });
});

describe("a database that is damaged after its backup", needs("root"), () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await TestServer.start({ config: { spares: false } });
  });
  afterAll(async () => server.remove());

  test("F-43: comes back by viv doctor --repair: sandboxes of then work, later ones are left alone until viv prune", async () => {
    const viv = (...words: string[]) => spawnSync(PROGRAM, words, { env: vivEnvironment(server), timeout: 30_000, encoding: "utf8" });
    const file = join(server.paths.home, "vivarium.db");
    const known = await server.create();
    await backUpDaily(file);
    const later = await server.create();
    const { processId } = await server.client.call("inspectSandbox", { sandbox: later.id });
    await server.down();
    writeFileSync(file, Buffer.alloc(100_000, "x"));
    for (const extra of ["-wal", "-shm"]) rmSync(file + extra, { force: true });
    expect(viv("ls").stderr).toContain(`viv doctor --repair`);
    const repaired = viv("doctor", "--repair");
    expect(repaired.stdout).toMatch(/database: It was damaged.*have no record[^]*viv prune/);
    expect((await server.sh(known.id, "cat hello.txt")).stdout).toBe("hello\n");
    // Its reconciler has run twice by now, once at each start.
    viv("down");
    await server.up();
    expect(isRunning(processId ?? 0)).toBe(true);
    expect(traces(server).volumes).toContain(later.id);
    await server.client.call("prune", {});
    await eventually(
      () => isRunning(processId ?? 0),
      (running) => !running,
    );
    expect(traces(server)).toMatchObject({ volumes: [known.id], runs: [known.id] });
    expect((await server.client.call("doctor", {})).findings.filter(({ check }) => check === "database")).toEqual([]);
  });
});
