import { DatabaseSync } from "node:sqlite";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Sandbox } from "../../src/base/schema/sandbox.ts";
import { startViv, viv } from "../support/viv.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const DAY_MS = 24 * 3_600_000;
const IDLE_MS = 2_000;

describe("the lifetime of a sandbox", needs("root"), () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start();
  });

  afterAll(async () => {
    for (const child of children) child.kill("SIGKILL");
    await server.remove();
  });

  const children: ChildProcess[] = [];

  /** `viv port`, from the moment at which it listens, and how it ends. */
  async function port(sandbox: string): Promise<{ code: Promise<number>; says: Promise<string> }> {
    const child = startViv(server, ["port", sandbox, "3000", "0"], { env: { VIV_NO_START: "1" } });
    children.push(child);
    const code = once(child, "exit").then(([exit]) => exit as number);
    const says = text(child.stderr);
    await once(child.stdout, "data");
    return { code, says };
  }

  const look = (sandbox: string) => server.client.call("inspectSandbox", { sandbox });

  /** A project whose config starts a service that does nothing. */
  async function serviceProject(): Promise<string> {
    const project = join(server.place, "served");
    mkdirSync(project);
    writeFileSync(join(project, "vivarium.json"), JSON.stringify({ services: { still: { command: "exec sleep 600" } } }));
    await server.client.call("trust", { project });
    return project;
  }

  const NAMES = ["quiet", "noisy", "served", "busy", "waited", "background", "listened", "never"] as const;
  const isOver = ({ state }: Sandbox): boolean => state === "completed";

  test("BOX-8: ends after its idle time, which work and use stop and noise does not, and is started again as it was", async () => {
    const project = await serviceProject();
    const make = async (name: (typeof NAMES)[number]): Promise<[typeof name, Sandbox]> => {
      const box = await server.create({ name, idleMs: name === "never" ? 0 : IDLE_MS, ...(name === "served" ? { project } : {}) });
      return [name, box];
    };
    const boxes = Object.fromEntries(await Promise.all(NAMES.map(make))) as Record<(typeof NAMES)[number], Sandbox>;
    await server.sh(boxes.busy.id, "(while :; do :; done) >/dev/null 2>&1 &");
    const waiting = server.sh(boxes.waited.id, "read line", { stdin: "" }).then(() => server.sh(boxes.waited.id, "sleep 60"));
    waiting.catch(() => undefined);
    const asked = await server.sh(boxes.background.id, "sleep 60", { background: true });
    const listening = await port("listened");
    await server.sh(boxes.noisy.id, "(while :; do echo noise; sleep 0.5; done) >/dev/null 2>&1 &");
    await server.sh(boxes.quiet.id, "echo precious > kept");
    await eventually(
      () => look("listened"),
      ({ uses }) => uses.length > 0,
    );
    const ended = await Promise.all(["quiet", "noisy", "served"].map((name) => eventually(() => look(name), isOver, 15_000)));
    for (const end of ended) expect(end).toMatchObject({ outcome: "timeout", reason: "Nothing happened for 2 seconds.", uses: [] });
    // They lived through the same looks of the idle watch.
    for (const name of ["busy", "waited", "background", "listened", "never"])
      expect(await look(name)).toMatchObject({ name, state: "running" });
    expect(boxes.never.expiresAt).toBeNull();
    expect((await look("background")).uses).toEqual([`command ${asked.id}`]);
    expect((await look("listened")).uses).toEqual(["port 3000"]);
    expect(viv(server, ["ls"]).out).toMatch(/^listened +running .* in use$/m);
    expect(viv(server, ["inspect", "background"]).out).toContain(`stops      2 s after its last use; in use now: command ${asked.id}\n`);

    const { snapshots } = await server.client.call("listSnapshots", { sandbox: "quiet" });
    expect(snapshots).toHaveLength(1);
    const keptMs = Date.parse(snapshots[0]?.expiresAt ?? "") - Date.now();
    expect(keptMs).toBeGreaterThan(6.9 * DAY_MS);
    expect(keptMs).toBeLessThanOrEqual(7 * DAY_MS);
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: "quiet" });
    expect((await server.sh(sandboxes[0]?.id ?? "", "cat kept")).stdout).toBe("precious\n");

    expect(viv(server, ["exec", "quiet", "--", "true"]).err).toContain("viv start quiet");
    expect(viv(server, ["start", "quiet"])).toMatchObject({ code: 0, out: "quiet runs again.\n" });
    expect(await look("quiet")).toMatchObject({ id: boxes.quiet.id, state: "running", outcome: null, reason: null, endedAt: null });
    expect((await server.sh("quiet", "cat kept")).stdout).toBe("precious\n");
    expect(viv(server, ["start", "served"])).toMatchObject({ code: 0 });
    const { commands } = await server.client.call("listCommands", { sandbox: "served", all: false });
    expect(commands).toMatchObject([{ service: "still", running: true }]);

    await server.client.call("stopSandbox", { sandbox: "listened" });
    expect(await listening.code).toBe(3);
    expect(await listening.says).toMatch(/^viv: Sandbox listened was stopped.*\n.*viv start listened/);
    for (const { id } of [...Object.values(boxes), ...sandboxes]) await server.client.call("removeSandbox", { sandbox: id });
    await waiting.catch(() => undefined);
  });

  test("BOX-8: a background command that was asked for and an open port count as use also for the next server", async () => {
    const [asked, listened, served] = (await Promise.all([
      server.create({ idleMs: IDLE_MS }),
      server.create({ name: "listened", idleMs: IDLE_MS }),
      server.create({ idleMs: IDLE_MS, project: join(server.place, "served") }),
    ])) as [Sandbox, Sandbox, Sandbox];
    await server.sh(asked.id, "sleep 60", { background: true });
    const listening = await port("listened");
    await server.down();
    await server.up();
    await eventually(() => look(served.id), isOver, 15_000);
    for (const { id } of [asked, listened]) expect(await look(id)).toMatchObject({ state: "running" });
    expect((await look(listened.id)).uses).toEqual(["port 3000"]);
    await server.client.call("removeSandbox", { sandbox: "listened" });
    expect(await listening.says).toContain("viv: Sandbox listened was removed; the port is closed.");
    for (const { id } of [asked, served]) await server.client.call("removeSandbox", { sandbox: id });
  });

  test("BOX-1: what was lost with its processes is started again from its files, and a kept snapshot that is over takes nothing else along", async () => {
    const box = await server.create({ name: "lost" });
    await server.sh(box.id, "echo work > left");
    const { processId } = await look(box.id);
    process.kill(processId ?? 0, "SIGKILL");
    await eventually(
      () => look(box.id),
      ({ state }) => state === "failed",
    );
    const again = await server.client.call("startSandbox", { sandbox: box.id });
    expect(again).toMatchObject({ id: box.id, name: "lost", state: "running" });
    expect((await server.sh(box.id, "cat left; echo more >> left")).stdout).toBe("work\n");
    expect(await server.client.call("startSandbox", { sandbox: box.id })).toMatchObject({ state: "running" });
    await server.client.call("pauseSandbox", { sandbox: box.id });
    await expect(server.client.call("startSandbox", { sandbox: box.id })).rejects.toMatchObject({
      code: "illegal_transition",
      remedy: expect.stringContaining("viv resume lost"),
    });
    await server.client.call("resumeSandbox", { sandbox: box.id });
    const [first] = (await server.client.call("listSnapshots", { sandbox: box.id })).snapshots;
    await server.client.call("stopSandbox", { sandbox: box.id });
    await server.down();
    const database = new DatabaseSync(join(server.paths.home, "vivarium.db"));
    database
      .prepare(`update snapshots set body = json_set(body, '$.expiresAt', '2020-01-01T00:00:00.000Z') where id = ?`)
      .run(first?.id ?? "");
    database.close();
    await server.up();
    const { snapshots } = await server.client.call("listSnapshots", { sandbox: box.id });
    expect(snapshots.map(({ id, current }) => [id === first?.id, current])).toEqual([[false, true]]);
    await server.client.call("startSandbox", { sandbox: box.id });
    expect((await server.sh(box.id, "cat left")).stdout).toBe("work\nmore\n");
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("BOX-8: can be extended, also for ever, and the promise outlives a restart of the server", async () => {
    const box = await server.create({ name: "longer", idleMs: 600_000 });
    const leftMs = (sandbox: Sandbox): number => Date.parse(sandbox.expiresAt ?? "") - Date.now();
    const extended = await server.client.call("extendSandbox", { sandbox: box.id, by: "4h" });
    expect(leftMs(extended)).toBeGreaterThan(3.9 * 3_600_000);
    await server.down();
    await server.up();
    expect(leftMs(await look(box.id))).toBeGreaterThan(3.9 * 3_600_000);
    expect(leftMs(await server.client.call("extendSandbox", { sandbox: box.id, idle: "30m" }))).toBeGreaterThan(3.9 * 3_600_000);
    expect(await server.client.call("extendSandbox", { sandbox: box.id, idle: 0 })).toMatchObject({ idleMs: 0, expiresAt: null });
    expect(viv(server, ["extend", "longer", "--by", "1h", "--idle", "0"]).out).toBe("longer never stops by itself.\n");
    expect((await look(box.id)).expiresAt).toBeNull();
    const short = viv(server, ["extend", "longer", "--by", "2h", "--idle", "10m"]);
    expect(short.out).toMatch(/^longer stops in (2 h|1 h 59 min).*, after 10 min without use\.\n$/);
    await server.client.call("stopSandbox", { sandbox: box.id });
    await expect(server.client.call("extendSandbox", { sandbox: box.id, by: "1h" })).rejects.toMatchObject({ code: "not_running" });
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("prune removes what has finished and leaves what runs", async () => {
    const [done, runs] = (await Promise.all([server.create(), server.create()])) as [Sandbox, Sandbox];
    await server.client.call("stopSandbox", { sandbox: done.id });
    expect(await server.client.call("prune", {})).toMatchObject({ sandboxes: 1, snapshots: 1 });
    const { sandboxes } = await server.client.call("listSandboxes", {});
    expect(sandboxes.map(({ id }) => id)).toEqual([runs.id]);
    expect((await server.sh(runs.id, "echo alive")).stdout).toBe("alive\n");
    expect(viv(server, ["prune", "--all", "--json"])).toMatchObject({ code: 0, out: expect.stringContaining('"sandboxes":1') });
    // What was removed is deleted behind the answer.
    await eventually(
      () => readdirSync(join(server.paths.home, "pool/volumes")),
      (left) => left.length === 0,
    );
  });

  test("BOX-8: a kept snapshot whose time is over is removed with its sandbox", async () => {
    const box = await server.create();
    await server.client.call("stopSandbox", { sandbox: box.id });
    await server.down();
    const database = new DatabaseSync(join(server.paths.home, "vivarium.db"));
    database.exec(`update snapshots set body = json_set(body, '$.expiresAt', '2020-01-01T00:00:00.000Z')`);
    database.close();
    await server.up();
    expect((await server.client.call("listSandboxes", {})).sandboxes).toEqual([]);
    await eventually(
      () => readdirSync(join(server.paths.home, "pool/snapshots")),
      (left) => left.length === 0,
    );
  });

  test("SNAP-3: keeps the time it was promised over a rollback", async () => {
    const box = await server.create({ idleMs: 60_000 });
    const snapshot = await server.client.call("createSnapshot", { sandbox: box.id });
    const { expiresAt } = await server.client.call("extendSandbox", { sandbox: box.id, by: "2h" });
    await server.client.call("rollback", { sandbox: box.id, snapshot: snapshot.id });
    const now = await server.client.call("inspectSandbox", { sandbox: box.id });
    expect(Math.abs(Date.parse(now.expiresAt ?? "") - Date.parse(expiresAt ?? ""))).toBeLessThan(5_000);
    await server.client.call("removeSandbox", { sandbox: box.id });
  });
});

describe("the ceilings of a machine", needs("root"), () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start({ config: { ceilings: { sandboxes: 3, memory: "512m", cpus: 1 } } });
  });

  afterAll(async () => server.remove());

  test("LIM-4: exactly as many sandboxes are made as may be, however many are asked for at once", async () => {
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => server.create()));
    const made = results.flatMap((result) => (result.status === "fulfilled" ? [result.value.id] : []));
    expect(made).toHaveLength(3);
    for (const result of results.filter(({ status }) => status === "rejected")) {
      expect(result).toMatchObject({
        reason: { code: "no_capacity", message: "There are 3 sandboxes, and the ceiling of this machine is 3." },
      });
    }
    await expect(server.client.call("forkSandbox", { sandbox: made[0] ?? "" })).rejects.toMatchObject({ code: "no_capacity" });
    expect(viv(server, ["create"], { cwd: server.project })).toMatchObject({
      code: 5,
      out: "",
      err: expect.stringMatching(/^viv: There are 3 sandboxes.*\n.*viv rm.*/),
    });
    await server.client.call("removeSandbox", { sandbox: made.pop() ?? "" });
    made.push((await server.create()).id);
    for (const sandbox of made) await server.client.call("removeSandbox", { sandbox });
  });

  test("LIM-4: no sandbox gets more than the user's ceiling, and asking for more is refused", async () => {
    const box = await server.create();
    expect(box.limits).toMatchObject({ memoryBytes: 512 * 1024 ** 2, cpus: 1 });
    await expect(server.create({ limits: { cpus: 2 } })).rejects.toMatchObject({
      code: "invalid_input",
      message: "cpus 2 is over this machine's ceiling of 1.",
    });
    await server.client.call("removeSandbox", { sandbox: box.id });
  });
});
