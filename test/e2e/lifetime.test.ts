import { DatabaseSync } from "node:sqlite";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Sandbox } from "../../src/schema/sandbox.ts";
import { viv } from "../support/viv.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const DAY_MS = 24 * 3_600_000;
const IDLE_MS = 2_000;

describe("the lifetime of a sandbox", needs("root"), () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start();
  });

  afterAll(async () => server.remove());

  const look = (sandbox: string) => server.client.call("inspectSandbox", { sandbox });

  test("BOX-8: ends after its idle time, which work stops and noise does not, with its state kept for seven days", async () => {
    const [quiet, noisy, busy, waited, never] = (await Promise.all(
      ["quiet", "noisy", "busy", "waited", "never"].map((name) => server.create({ name, idleMs: name === "never" ? 0 : IDLE_MS })),
    )) as [Sandbox, Sandbox, Sandbox, Sandbox, Sandbox];
    await server.sh(busy.id, "while :; do :; done", { background: true });
    const waiting = server.sh(waited.id, "read line", { stdin: "" }).then(() => server.sh(waited.id, "sleep 60"));
    waiting.catch(() => undefined);
    await server.sh(noisy.id, "while :; do echo noise; sleep 0.5; done", { background: true });
    await server.sh(quiet.id, "echo precious > kept");
    const ended = await Promise.all(
      [quiet, noisy].map(({ id }) =>
        eventually(
          () => look(id),
          ({ state }) => state === "completed",
          15_000,
        ),
      ),
    );
    for (const end of ended) expect(end).toMatchObject({ outcome: "timeout", reason: "Nothing happened for 2 seconds." });
    // They lived through the same looks of the reaper.
    for (const { id } of [busy, waited, never]) expect(await look(id)).toMatchObject({ state: "running" });
    expect(never.expiresAt).toBeNull();
    const { snapshots } = await server.client.call("listSnapshots", { sandbox: quiet.id });
    expect(snapshots).toHaveLength(1);
    const keptMs = Date.parse(snapshots[0]?.expiresAt ?? "") - Date.now();
    expect(keptMs).toBeGreaterThan(6.9 * DAY_MS);
    expect(keptMs).toBeLessThanOrEqual(7 * DAY_MS);
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: quiet.id });
    expect((await server.sh(sandboxes[0]?.id ?? "", "cat kept")).stdout).toBe("precious\n");
    for (const { id } of [quiet, noisy, busy, waited, never, ...sandboxes]) await server.client.call("removeSandbox", { sandbox: id });
    await waiting.catch(() => undefined);
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
    expect(readdirSync(join(server.paths.home, "pool/volumes"))).toEqual([]);
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
    expect(readdirSync(join(server.paths.home, "pool/snapshots"))).toEqual([]);
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
