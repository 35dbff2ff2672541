import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CommandRecords } from "../../src/sandbox/commands/command-records.ts";
import { Live } from "../../src/sandbox/shared/live.ts";
import type { CommandEnd } from "../../src/base/schema/command.ts";
import { MIGRATIONS } from "../../src/base/store/migrations.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import { aCommand, aSandboxRow } from "../support/rows.ts";

describe("records of commands while something else holds the database (F-42)", () => {
  const END: CommandEnd = {
    cause: "exit",
    exitCode: 3,
    signal: null,
    message: null,
    wallMs: 1,
    cpuMs: 1,
    outputBytes: 0,
    droppedBytes: 0,
  };

  let folder: string;
  let path: string;
  let store: Store;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "viv-records-"));
    path = join(folder, "vivarium.db");
    store = await openSqliteStore(path, MIGRATIONS, 100);
  });
  afterEach(async () => {
    await store.close();
    rmSync(folder, { recursive: true });
  });

  it("are kept in order and written when it is free", async () => {
    const row = aSandboxRow();
    const [before, during, quick] = [aCommand(row.id), aCommand(row.id), aCommand(row.id)];
    await store.change(async (change) => {
      await change.sandboxes.put(row);
      await change.commands.put(before);
    });
    const given: string[] = [];
    const log = { info: () => undefined, warn: (message: string) => given.push(message) };
    const records = new CommandRecords({ store, live: new Live(), log });
    const other = new DatabaseSync(path);
    other.exec("begin immediate");
    const running = Promise.withResolvers<void>();
    await expect(records.begun(during, running.promise)).rejects.toMatchObject({ code: "store_busy" });
    const written = [
      records.surely(during, null),
      records.surely(quick, END),
      records.surely(before, END),
      records.surely(during, { ...END, exitCode: 4 }),
    ];
    await delay(300);
    expect(await store.commands.list({ sandbox: row.id, running: true })).toMatchObject([{ id: before.id }]);
    other.exec("commit");
    other.close();
    await Promise.all(written);
    const ends = (await store.commands.list({ sandbox: row.id })).map(({ id, running: isRunning, end }) => [id, isRunning, end?.exitCode]);
    expect(new Set(ends)).toEqual(
      new Set([
        [before.id, false, 3],
        [during.id, false, 4],
        [quick.id, false, 3],
      ]),
    );
    const told = (await store.events.list({ after: 0, limit: 100 })).map(({ type, data }) => [type, data["id"]]);
    expect(told).toEqual([
      ["command.started", during.id],
      ["command.started", quick.id],
      ["command.ended", quick.id],
      ["command.ended", before.id],
      ["command.ended", during.id],
    ]);
    expect(given).toEqual([]);
  });

  it("are given up when the server ends, which does not wait for it", async () => {
    const given: string[] = [];
    const log = { info: () => undefined, warn: (message: string) => given.push(message) };
    const records = new CommandRecords({ store, live: new Live(), log });
    const other = new DatabaseSync(path);
    other.exec("begin immediate");
    const kept = records.surely(aCommand(aSandboxRow().id), END);
    await records.close();
    await kept;
    expect(given).toEqual(["end of command not recorded"]);
    other.close();
  });
});
