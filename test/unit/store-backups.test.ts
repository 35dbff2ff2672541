import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { backUpDaily, backupsOf } from "../../src/base/store/sqlite/backups.ts";
import { openStore } from "../../src/base/store/sqlite/repair.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import { aSandboxRow } from "../support/rows.ts";

const DAY_MS = 24 * 3_600_000;

describe("backups of the database (F-43)", () => {
  let folder: string;
  let path: string;
  const row = aSandboxRow();
  const day = (number: number): Date => new Date(Date.UTC(2026, 0, 1) + number * DAY_MS);

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "viv-backups-"));
    path = join(folder, "vivarium.db");
    const store = await openSqliteStore(path);
    await store.change((change) => change.sandboxes.put(row));
    await store.close();
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it("are made once a day while the database is in use, private, and the newest few are kept", async () => {
    const store = await openSqliteStore(path);
    expect(await backUpDaily(path, day(0))).toMatchObject({ takenAt: day(0).toISOString() });
    expect(await backUpDaily(path, new Date(day(1).getTime() - 1))).toBeUndefined();
    for (let number = 1; number < 6; number += 1) {
      const writing = Array.from({ length: 20 }, () => store.change((change) => change.event("server.started", null)));
      await backUpDaily(path, day(number));
      await Promise.all(writing);
    }
    const kept = backupsOf(path);
    expect(kept.map(({ takenAt }) => Date.parse(takenAt))).toEqual([5, 4, 3].map((number) => day(number).getTime()));
    expect(kept).toHaveLength(LIMITS.backups);
    expect(kept.map(({ file }) => statSync(file).mode & 0o777)).toEqual(kept.map(() => 0o600));
    await store.close();
    expect(readdirSync(folder).toSorted()).toEqual(["vivarium.db", ...kept.map(({ file }) => basename(file)).toSorted()]);
  });

  it("are named when the database is damaged, and the newest whole one is brought back with the damaged files kept", async () => {
    await backUpDaily(path, day(0));
    const [whole] = backupsOf(path);
    await backUpDaily(path, day(1));
    writeFileSync(backupsOf(path)[0]?.file ?? "", "x".repeat(8_192));
    writeFileSync(path, "y".repeat(8_192));
    await expect(openStore(path, false)).rejects.toMatchObject({
      code: "store_corrupt",
      remedy: expect.stringMatching(new RegExp(`viv doctor --repair.*${whole?.file}`)),
    });
    const { store, restoration } = await openStore(path, true);
    expect(await store.sandboxes.list()).toEqual([row]);
    const { takenAt, damaged } = restoration.read() ?? { takenAt: "", damaged: "" };
    expect(Date.parse(takenAt)).toBe(day(0).getTime());
    expect(readFileSync(damaged, "utf8")).toBe("y".repeat(8_192));
    expect(restoration.isPending).toBe(true);
    restoration.settle();
    expect(restoration.isPending).toBe(false);
    await store.close();
  });

  it("that do not exist are not named: what to do instead is told exactly", async () => {
    writeFileSync(path, "y".repeat(8_192));
    const refusal = {
      code: "store_corrupt",
      remedy: expect.stringMatching(new RegExp(`There is no backup.*mv ${folder} ${folder}.damaged`)),
    };
    await expect(openStore(path, false)).rejects.toMatchObject(refusal);
    await expect(openStore(path, true)).rejects.toMatchObject(refusal);
    expect(existsSync(path)).toBe(true);
  });
});
