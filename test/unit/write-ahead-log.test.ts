/** The file that a database commits into is synced for those who need their change on the disk. */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SyncPlace } from "../../src/base/store/sqlite/sync-place.ts";
import { WriteAheadLog } from "../../src/base/store/sqlite/write-ahead-log.ts";

let folder: string;
let place: SyncPlace;
let log: WriteAheadLog;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "viv-log-"));
  place = new SyncPlace();
  log = new WriteAheadLog(join(folder, "vivarium.db"), place);
});
afterEach(async () => {
  await log.close();
  rmSync(folder, { recursive: true, force: true });
});

const write = (): void => writeFileSync(join(folder, "vivarium.db-wal"), "x");

/** As after many quick syncs and a rest, or as at the start. */
function choose(where: "loop" | "thread"): void {
  place.begin = () => where;
}

/** Whether the event loop goes on while the log is synced. */
async function goesOnMeanwhile(): Promise<boolean> {
  let goesOn = false;
  setImmediate(() => (goesOn = true));
  await log.sync();
  return goesOn;
}

test("a log that is not there yet is opened by the next sync", async () => {
  await expect(log.sync()).rejects.toMatchObject({ code: "ENOENT" });
  write();
  await expect(log.sync()).resolves.toBeUndefined();
});

test("the event loop syncs while the disk is quick, and goes on meanwhile where it is not", async () => {
  write();
  await log.sync();
  choose("loop");
  expect(await goesOnMeanwhile()).toBe(false);
  choose("thread");
  expect(await goesOnMeanwhile()).toBe(true);
});

test.each(["loop", "thread"] as const)("a sync tells how long it took, in the %s", async (where) => {
  const took: [ms: number, failed: boolean | undefined][] = [];
  place.end = (began, now, failed) => took.push([now - began, failed]);
  write();
  await log.sync();
  choose(where);
  await log.sync();
  expect(took).toEqual([
    [expect.any(Number), false],
    [expect.any(Number), false],
  ]);
  expect(took.every(([ms]) => ms > 0)).toBe(true);
});

test.each(["loop", "thread"] as const)(
  "a sync that fails in the %s is told, to the caller and to the choice of the place",
  async (where) => {
    const failures: (boolean | undefined)[] = [];
    place.end = (_began, _now, failed) => failures.push(failed);
    choose(where);
    // Nothing of it can be synced.
    symlinkSync("/dev/null", join(folder, "vivarium.db-wal"));
    await expect(log.sync()).rejects.toMatchObject({ code: "EINVAL" });
    expect(failures).toEqual([true]);
  },
);

test("a log that was closed is opened anew", async () => {
  write();
  await log.sync();
  await log.close();
  choose("loop");
  await expect(log.sync()).resolves.toBeUndefined();
});

test.each(["loop", "thread"] as const)("a log that is closed while it is synced in the %s is synced all the same", async (where) => {
  write();
  await log.sync();
  choose(where);
  const syncs = Array.from({ length: 8 }, () => log.sync());
  await log.close();
  expect(await Promise.all(syncs)).toHaveLength(8);
});
