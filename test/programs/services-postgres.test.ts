/** Copies of a PostgreSQL that runs and is written to meanwhile (CLONE-7). */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Postgres } from "../support/postgres.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** Below those that the kernel gives to any program, and not that of a run which was killed. */
const PORT = 20_000 + (process.pid % 10_000);
/** Every order has its payment: a copy of two moments would show one without the other. */
const ORDER = "begin; insert into orders values (default); insert into payments values (default); commit";
const UNPAID = "select (select count(*) from orders) - (select count(*) from payments)";
const ORDERS = "select count(*) from orders";

describe("a running PostgreSQL", needs("root", "postgres"), () => {
  let server: TestServer;
  let real: Postgres;
  let writer: ChildProcess;

  beforeAll(async () => {
    real = Postgres.start(PORT);
    real.ask("create table orders (id serial); create table payments (id serial); create table notes (text text)");
    real.ask("insert into notes values ('from reality')");
    server = await TestServer.start();
    // Orders keep coming in all the time.
    const loop = `while echo "${ORDER};"; do sleep 0.002; done | ${real.programs}/psql ${real.address} -d postgres -q`;
    writer = spawn("sh", ["-c", loop], { stdio: "ignore", cwd: "/", detached: true });
    await eventually(
      () => Number(real.ask(ORDERS)),
      (count) => count > 50,
    );
  });

  afterAll(async () => {
    process.kill(-(writer.pid ?? 0), "SIGKILL");
    if (writer.exitCode === null && writer.signalCode === null) await once(writer, "exit");
    await server.remove();
    real.remove();
  });

  async function serve(db: unknown): Promise<void> {
    writeFileSync(join(server.project, "vivarium.json"), JSON.stringify({ services: { db } }));
    await server.client.call("trust", { project: server.project });
  }

  async function ask(sandbox: string, sql: string): Promise<string> {
    const { end, stdout, stderr } = await server.sh(sandbox, real.line(sql));
    if (end?.exitCode !== 0) throw new Error(stderr);
    return stdout.trim();
  }

  async function failures(sandbox?: string): Promise<unknown[]> {
    const { events } = await server.client.call("listEvents", { limit: 1000, ...(sandbox === undefined ? {} : { sandbox }) });
    return events.filter(({ type }) => type === "service.failed").map(({ data }) => data);
  }

  /** What both methods promise. */
  async function checkClones(): Promise<void> {
    const { pid } = real;
    const before = Number(real.ask(ORDERS));
    const [left, right] = await Promise.all([server.create(), server.create()]);
    if (left === undefined || right === undefined) throw new Error("no sandboxes");
    expect(await failures()).toEqual([]);
    for (const { id } of [left, right]) {
      expect(await ask(id, UNPAID)).toBe("0");
      expect(Number(await ask(id, ORDERS))).toBeGreaterThanOrEqual(before);
      expect(await ask(id, "select text from notes")).toBe("from reality");
    }
    await ask(left.id, "insert into notes values ('from the left'); drop table payments");
    real.ask("insert into notes values ('after the clone')");
    const frozen = await ask(right.id, ORDERS);
    expect(await ask(left.id, "select text from notes")).toBe("from reality\nfrom the left");
    expect(await ask(right.id, "select text from notes")).toBe("from reality");
    expect(real.ask("select text from notes")).toBe("from reality\nafter the clone");
    expect(Number(real.ask(ORDERS))).toBeGreaterThan(Number(frozen));
    expect(await ask(right.id, ORDERS)).toBe(frozen);
    expect(real.ask(UNPAID)).toBe("0");
    expect(real.pid).toBe(pid);
    real.ask("delete from notes where text = 'after the clone'");
    for (const { id } of [left, right]) await server.client.call("removeSandbox", { sandbox: id });
  }

  describe("copied by a base backup", () => {
    beforeEach(() =>
      serve({
        command: `exec ${real.programs}/postgres -D ${real.data} ${real.options}`,
        user: real.user,
        cwd: "/",
        data: [real.data],
        ports: [PORT],
        ready: real.line("select 1"),
        take: `${real.programs}/pg_basebackup ${real.address} -D "$VIV_DATA" -X fetch -c fast -N`,
        takeUser: real.user,
        every: 0,
      }),
    );

    test("CLONE-7: is in every clone as it was at one moment, and no row crosses over in either direction", checkClones);

    test("CLONE-7: goes on from the rows of a snapshot in a fork and after a rollback", async () => {
      const { id } = await server.create();
      await ask(id, "insert into notes values ('kept')");
      await server.client.call("createSnapshot", { sandbox: id, name: "before" });
      await ask(id, "delete from notes");
      const { sandboxes } = await server.client.call("forkSandbox", { sandbox: id, snapshot: "before" });
      const fork = sandboxes[0]?.id ?? "";
      await server.client.call("rollback", { sandbox: id, snapshot: "before" });
      for (const sandbox of [id, fork]) expect(await ask(sandbox, "select text from notes")).toBe("from reality\nkept");
      expect(await failures()).toEqual([]);
      for (const sandbox of [id, fork]) await server.client.call("removeSandbox", { sandbox });
    });
  });

  describe("copied by a dump", () => {
    const initdb = "initdb -N -A trust -U shop -E UTF8 --locale C -D";

    const dumped = (take: string): object => ({
      command: `cd ${real.data} && { [ -e PG_VERSION ] || ${real.programs}/${initdb} .; } && exec ${real.programs}/postgres -D . ${real.options}`,
      user: real.user,
      cwd: "/",
      data: [join(real.place, "dump"), real.data],
      ports: [PORT],
      ready: real.line("select 1"),
      take,
      every: 0,
      load: `${real.programs}/psql ${real.address} -d postgres -v ON_ERROR_STOP=1 -q -f "$VIV_DATA/dump.sql"`,
    });

    beforeEach(() => serve(dumped(`${real.programs}/pg_dump ${real.address} postgres > "$VIV_DATA/dump.sql"`)));

    test("CLONE-7: is in every clone as it was at one moment, and no row crosses over in either direction", checkClones);

    test("CLONE-7: in two steps would be torn, and these tests would see it", async () => {
      const dump = `${real.programs}/pg_dump ${real.address} -d postgres -t`;
      await serve(dumped(`{ ${dump} orders; sleep 0.2; ${dump} payments; ${dump} notes; } > "$VIV_DATA/dump.sql"`));
      const { id } = await server.create();
      expect(Number(await ask(id, UNPAID))).toBeLessThan(0);
      await server.client.call("removeSandbox", { sandbox: id });
    });

    test("CLONE-7: is loaded once: a fork and a rollback have its rows already", async () => {
      const { id } = await server.create();
      await ask(id, "insert into notes values ('kept')");
      await server.client.call("createSnapshot", { sandbox: id, name: "before" });
      await ask(id, "delete from notes");
      const { sandboxes } = await server.client.call("forkSandbox", { sandbox: id, snapshot: "before" });
      const fork = sandboxes[0]?.id ?? "";
      await server.client.call("rollback", { sandbox: id, snapshot: "before" });
      for (const sandbox of [id, fork]) {
        expect(await ask(sandbox, "select text from notes")).toBe("from reality\nkept");
        expect(await ask(sandbox, UNPAID)).toBe("0");
        expect(await failures(sandbox)).toEqual([]);
      }
      expect(existsSync(join(real.place, "dump"))).toBe(false);
      for (const sandbox of [id, fork]) await server.client.call("removeSandbox", { sandbox });
    });
  });

  test("CLONE-7: copied file by file is told to be perhaps torn", async () => {
    await serve({ command: "true", data: [real.data], ports: [PORT], readyTimeout: 0 });
    const { id } = await server.create();
    const { capture } = await server.client.call("inspectSandbox", { sandbox: id });
    expect(capture.notes).toContainEqual(expect.stringContaining(`The service db is running (port ${PORT})`));
    await server.client.call("removeSandbox", { sandbox: id });
  });
});
