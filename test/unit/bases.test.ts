import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Base, SnapshotRow } from "../../src/base/store/rows.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import { dropUnused } from "../../src/sandbox/projects/bases.ts";
import { Registry } from "../../src/sandbox/shared/registry.ts";
import { aSandboxRow } from "../support/rows.ts";

const IDS = ["bas1", "bas2", "bas3", "bas4", "bas5"];

describe("bases", () => {
  let place: string;
  let store: Store;
  let registry: Registry;

  beforeEach(async () => {
    place = mkdtempSync(join(tmpdir(), "viv-bases-"));
    store = await openSqliteStore(join(place, "vivarium.db"));
    registry = new Registry({ take: () => true, release: () => undefined, keepOnly: () => undefined });
  });
  afterEach(async () => {
    await store.close();
    rmSync(place, { recursive: true, force: true });
  });

  const drop = (): Promise<string[]> => store.change((change) => dropUnused(change, registry, IDS));
  const kept = async (): Promise<string[]> => (await store.bases.list()).map(({ id }) => id).toSorted();

  test("go when no sandbox, no snapshot and no operation under way needs them", async () => {
    const row = aSandboxRow({ base: "bas1", refreshedTo: "bas2", project: "/srv/it's" });
    const snapshot = { id: "snp1", sandbox: row.id, createdAt: row.createdAt, refreshedTo: "bas3" } as SnapshotRow;
    await store.change(async (change) => {
      for (const id of IDS) await change.bases.put({ id, project: row.project, takenAt: row.createdAt } as Base);
      await change.sandboxes.put(row);
      await change.snapshots.put(snapshot);
    });
    const release = registry.hold("bas4");
    expect([await drop(), await kept()]).toEqual([["bas5"], ["bas1", "bas2", "bas3", "bas4"]]);
    release();
    expect([await store.sandboxes.has({ project: "/srv/it's" }), await store.sandboxes.has({ project: "/srv" })]).toEqual([true, false]);
    await store.change((change) => change.sandboxes.remove(row.id));
    expect(await store.sandboxes.has({ project: "/srv/it's" })).toBe(false);
    expect([await drop(), await kept()]).toEqual([["bas1", "bas2", "bas4", "bas5"], ["bas3"]]);
    await store.change((change) => change.snapshots.remove(snapshot.id));
    await drop();
    expect(await kept()).toEqual([]);
  });
});
