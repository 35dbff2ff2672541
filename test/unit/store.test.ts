import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  openSync,
  writeSync,
  closeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { MIGRATIONS, type Migration } from "../../src/base/store/migrations.ts";
import { backupsOf } from "../../src/base/store/sqlite/backups.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import { COMPILED } from "../support/compiled.ts";
import { aSandboxRow } from "../support/rows.ts";

const SNAPSHOT = {
  id: "snp1",
  name: null,
  parent: null,
  current: true,
  createdAt: "2026-01-01T00:00:00.000Z",
  expiresAt: null,
  frozenMs: 1,
};

let folder: string;
let path: string;
const opened: Store[] = [];

async function open(busyMs: number = LIMITS.storeBusyMs): Promise<Store> {
  const store = await openSqliteStore(path, MIGRATIONS, busyMs);
  opened.push(store);
  return store;
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "viv-store-"));
  path = join(folder, "vivarium.db");
});

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("the database", () => {
  it("keeps its files to itself", async () => {
    const store = await open();
    await store.change(async (change) => change.event("server.started", null));
    for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  });
});

describe("a database that something else holds (F-42)", () => {
  it("makes a change wait, without blocking the event loop, and go on when it is free", async () => {
    const store = await open();
    const other = new DatabaseSync(path);
    other.exec("begin immediate");
    const waiting = store.change(async (change) => change.event("server.started", null));
    await new Promise((resolve) => setTimeout(resolve, 200));
    other.exec("commit");
    other.close();
    await waiting;
    expect(await store.events.range()).toEqual({ oldest: 1, newest: 1 });
  });

  it("gives up after a bounded time with store_busy, also where many wait, and works again later", async () => {
    const store = await open(1_000);
    const other = new DatabaseSync(path);
    other.exec("begin immediate");
    const started = performance.now();
    const told = () => store.change(async (change) => change.event("server.started", null)).catch((error: { code: string }) => error.code);
    expect(new Set(await Promise.all(Array.from({ length: 5 }, told)))).toEqual(new Set(["store_busy"]));
    expect(performance.now() - started).toBeLessThan(3_000);
    other.exec("commit");
    other.close();
    await store.change(async (change) => change.event("server.started", null));
  });
});

describe("a damaged database (F-43)", () => {
  async function fill(): Promise<void> {
    const store = await openSqliteStore(path);
    await store.change(async (change) => {
      for (let number = 0; number < 2_000; number += 1) await change.event("server.started", null, { number, text: "x".repeat(100) });
    });
    await store.close();
  }

  it("is opened when it is whole", async () => {
    await fill();
    expect(await (await open()).events.range()).toEqual({ oldest: 1, newest: 2_000 });
  });

  it("is refused when it is truncated", async () => {
    await fill();
    truncateSync(path, 40_960);
    await expect(openSqliteStore(path)).rejects.toMatchObject({ code: "store_corrupt" });
  });

  it("is refused when it is empty", async () => {
    await fill();
    truncateSync(path, 0);
    await expect(openSqliteStore(path)).rejects.toMatchObject({ code: "store_corrupt" });
  });

  it("is refused when pages in the middle are overwritten", async () => {
    await fill();
    const descriptor = openSync(path, "r+");
    for (let page = 5; page < 20; page += 1) writeSync(descriptor, Buffer.alloc(4096, 0xa5), 0, 4096, page * 4096);
    closeSync(descriptor);
    await expect(openSqliteStore(path)).rejects.toMatchObject({ code: "store_corrupt" });
  });

  it("is refused when it is no database, or another program's", async () => {
    writeFileSync(path, "hello".repeat(1000));
    await expect(openSqliteStore(path)).rejects.toMatchObject({ code: "store_corrupt" });
    rmSync(path);
    const other = new DatabaseSync(path);
    other.exec("create table t (a)");
    other.close();
    await expect(openSqliteStore(path)).rejects.toMatchObject({ code: "store_corrupt" });
  });

  it("is refused when the file is gone and its log is there, or its log is gone", async () => {
    await fill();
    const { writer } = await killedWriter(0, 5);
    expect(writer).toBe("SIGKILL");
    expect(existsSync(`${path}-wal`)).toBe(true);
    rmSync(`${path}-wal`);
    await expect(openSqliteStore(path)).rejects.toMatchObject({ code: "store_corrupt" });
    rmSync(path);
    rmSync(`${path}-shm`);
    writeFileSync(`${path}-wal`, "x");
    await expect(openSqliteStore(path)).rejects.toMatchObject({ code: "store_corrupt" });
  });

  it("is refused when a newer program wrote it, and left as it was", async () => {
    await fill();
    const newer = new DatabaseSync(path);
    newer.exec(`pragma user_version = ${MIGRATIONS.length + 1}`);
    newer.close();
    await expect(openSqliteStore(path)).rejects.toMatchObject({ code: "store_newer" });
    const same = new DatabaseSync(path, { readOnly: true });
    expect(same.prepare("select count(*) as n from events").get()).toMatchObject({ n: 2_000 });
    same.close();
  });
});

describe("a migration (F-44)", () => {
  const addColumn: Migration = async (db) => {
    await db.schema.alterTable("projects").addColumn("note", "text").execute();
  };

  it("that is killed half-way leaves the database as it was, and succeeds when it runs again", async () => {
    const old = await openSqliteStore(path);
    await old.change(async (change) => change.projects.put({ id: "prj1", path: "/srv/project", trusted: null }));
    await old.close();
    const child = spawn(process.execPath, [join(import.meta.dirname, "../support/store-migrator.ts"), path], { stdio: "inherit" });
    await once(child, "close");
    expect(child.signalCode).toBe("SIGKILL");
    expect(backupsOf(path)).toMatchObject([{ version: MIGRATIONS.length }]);
    const store = await openSqliteStore(path, [...MIGRATIONS, addColumn]);
    expect(await store.projects.list()).toEqual([{ id: "prj1", path: "/srv/project", trusted: null }]);
    await store.close();
  });

  it("that fails half-way leaves the database as it was, and succeeds when it runs again", async () => {
    const old = await openSqliteStore(path);
    await old.change(async (change) => change.projects.put({ id: "prj1", path: "/srv/project", trusted: null }));
    await old.close();
    const killed: Migration = async (db) => {
      await addColumn(db);
      throw new Error("killed");
    };
    await expect(openSqliteStore(path, [...MIGRATIONS, killed])).rejects.toThrow("killed");
    await (await openSqliteStore(path)).close();
    const store = await openSqliteStore(path, [...MIGRATIONS, addColumn]);
    expect(await store.projects.list()).toEqual([{ id: "prj1", path: "/srv/project", trusted: null }]);
    await store.close();
    await expect(openSqliteStore(path)).rejects.toMatchObject({ code: "store_newer" });
  });

  it("lets rows of a version before be found by what was not looked up then", async () => {
    await (await openSqliteStore(path, MIGRATIONS.slice(0, 5))).close();
    const row = aSandboxRow({ base: "bas1", refreshedTo: "bas2", project: "/srv/project" });
    const old = new DatabaseSync(path);
    old.prepare("insert into sandboxes values (?, ?, ?, null, ?, ?)").run(row.id, row.name, row.state, row.createdAt, JSON.stringify(row));
    const body = JSON.stringify({ ...SNAPSHOT, sandbox: row.id, refreshedTo: "bas3" });
    old.prepare("insert into snapshots values (?, ?, ?, ?)").run(SNAPSHOT.id, row.id, SNAPSHOT.createdAt, body);
    const approval = JSON.stringify({ id: "apr1", state: "waiting", sandbox: row.id });
    old.prepare("insert into approvals values ('apr1', 'waiting', 'hash', null, ?, ?)").run(row.createdAt, approval);
    old.close();
    const store = await open();
    const found = [{ base: "bas1" }, { refreshedTo: "bas2" }, { project: "/srv/project" }, { base: "bas2" }].map((where) =>
      store.sandboxes.has(where),
    );
    expect(await Promise.all(found)).toEqual([true, true, true, false]);
    expect(await store.snapshots.has({ refreshedTo: "bas3" })).toBe(true);
    expect(await store.approvals.count({ sandbox: row.id, state: "waiting" })).toBe(1);
    expect(await store.sandboxes.get(row.id)).toEqual(row);
  });

  it("keeps the projects of a version before, and which of them are trusted", async () => {
    await (await openSqliteStore(path, MIGRATIONS.slice(0, 7))).close();
    const old = new DatabaseSync(path);
    old.prepare("insert into projects values (?, ?, ?), (?, ?, ?)").run("prj1", "/srv/a", "hash", "prj2", "/srv/b", null);
    old.close();
    const store = await open();
    expect(await store.projects.list()).toEqual([
      { id: "prj1", path: "/srv/a", trusted: "hash" },
      { id: "prj2", path: "/srv/b", trusted: null },
    ]);
    expect(await store.projects.find({ path: "/srv/b" })).toMatchObject({ id: "prj2" });
  });

  it("keeps experiments of a version before, without the paths of given files, of which it knew no content", async () => {
    const before = MIGRATIONS.length - 1;
    await (await openSqliteStore(path, MIGRATIONS.slice(0, before))).close();
    const old = new DatabaseSync(path);
    const columns = old
      .prepare("select name from pragma_table_info('experiments')")
      .all()
      .map(({ name }) => String(name));
    for (const id of ["exp1", "exp2"]) {
      const row = { id, inputs: id === "exp1" ? ["letter.txt"] : undefined, reason: "kept" };
      const values = columns.map((name) => (name === "id" ? id : name === "body" ? JSON.stringify(row) : "x"));
      old.prepare(`insert into experiments values (${columns.map(() => "?").join(", ")})`).run(...values);
    }
    old.close();
    const store = await open();
    expect(await store.experiments.get("exp1")).toEqual({ id: "exp1", reason: "kept" });
    expect(await store.experiments.get("exp2")).toEqual({ id: "exp2", reason: "kept" });
  });

  it("leaves a private backup of the version before, which can be opened", async () => {
    const old = await openSqliteStore(path);
    await old.change(async (change) => change.projects.put({ id: "prj1", path: "/srv/project", trusted: null }));
    await old.close();
    await (await openSqliteStore(path, [...MIGRATIONS, addColumn])).close();
    const backup = backupsOf(path)[0]?.file ?? "";
    expect(statSync(backup).mode & 0o777).toBe(0o600);
    const restored = await openSqliteStore(backup);
    expect(await restored.projects.list()).toEqual([{ id: "prj1", path: "/srv/project", trusted: null }]);
    await restored.close();
    rmSync(path);
    await expect(openSqliteStore(path)).rejects.toMatchObject({ code: "store_corrupt" });
  });

  it("of a new database that was killed half-way starts again", async () => {
    writeFileSync(`${path}.new`, "half a database");
    expect(await (await open()).events.range()).toEqual({ oldest: 1, newest: 0 });
  });
});

/** Starts a writer, kills it once it acknowledged `count` rows, and says what it acknowledged. */
async function killedWriter(from: number, count: number): Promise<{ writer: string | null; last: number }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "../support/store-writer.ts"), path, String(from)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, NODE_COMPILE_CACHE: COMPILED },
  });
  const closed = once(child, "close");
  let last = from - 1;
  for await (const line of createInterface({ input: child.stdout })) {
    last = Number(line);
    if (last - from + 1 === count) child.kill("SIGKILL");
  }
  await closed;
  return { writer: child.signalCode, last };
}

describe("a writer that is killed (F-45)", () => {
  it("loses no acknowledged change", { timeout: 120_000 }, async () => {
    let next = 0;
    for (let round = 0; round < 10; round += 1) {
      const { writer, last } = await killedWriter(next, 20 + round * 37);
      expect(writer).toBe("SIGKILL");
      const store = await openSqliteStore(path);
      const rows = await store.sandboxes.list();
      const events = await store.events.list({ after: 0, limit: 100_000 });
      await store.close();
      expect(rows.length).toBeGreaterThan(last);
      expect(events.length).toBe(rows.length);
      expect(events.map((event) => event.data["number"])).toEqual(Array.from({ length: events.length }, (_, index) => index));
      next = rows.length;
    }
  });
});
