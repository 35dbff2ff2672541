import { expect, test } from "vitest";
import { KeptRows } from "../../src/base/store/kept-rows.ts";
import type { ChangeableCollection } from "../../src/base/store/store.ts";

interface Row {
  readonly id: string;
  readonly value: number;
  readonly parts: readonly number[];
}

/** A table that counts its reads; a read takes a turn of the event loop. */
function table(): { rows: Map<string, Row>; reads: () => number; collection: ChangeableCollection<Row, Record<string, never>> } {
  const rows = new Map<string, Row>();
  let reads = 0;
  const collection: ChangeableCollection<Row, Record<string, never>> = {
    get: async (id) => {
      reads += 1;
      const row = rows.get(id);
      await new Promise((resolve) => setImmediate(resolve));
      return row;
    },
    find: async () => undefined,
    list: async () => [...rows.values()],
    count: async () => 0,
    has: async () => false,
    put: async (row) => void rows.set(row.id, row),
    remove: async (id) => void rows.delete(id),
  };
  return { rows, reads: () => reads, collection };
}

function opened() {
  const store = table();
  const kept = new KeptRows();
  return { ...store, kept, read: kept.read("things", "id", store.collection), change: kept.change("things", "id", store.collection) };
}

const row = (value: number): Row => ({ id: "a", value, parts: [value] });

test("a row is read once, and given to all as one frozen object", async () => {
  const { rows, reads, read } = opened();
  rows.set("a", row(1));
  const [first, again] = [await read.get("a"), await read.get("a")];
  expect([first, reads(), again === first]).toEqual([row(1), 1, true]);
  expect(Object.isFrozen(first) && Object.isFrozen(first?.parts)).toBe(true);
});

test("readers see a written row once it is committed, the change itself at once", async () => {
  const { read, change, kept, collection } = opened();
  await collection.put(row(1));
  expect((await read.get("a"))?.value).toBe(1);
  await change.put(row(2));
  expect([(await read.get("a"))?.value, (await change.get("a"))?.value]).toEqual([1, 2]);
  kept.committed();
  expect((await read.get("a"))?.value).toBe(2);
  await change.remove("a");
  expect((await read.get("a"))?.value).toBe(2);
  kept.committed();
  expect(await read.get("a")).toBeUndefined();
});

test("what a change that failed has written is not kept", async () => {
  const { rows, read, change, kept } = opened();
  rows.set("a", row(1));
  await change.put(row(2));
  expect((await change.get("a"))?.value).toBe(2);
  rows.set("a", row(1));
  kept.over();
  expect((await read.get("a"))?.value).toBe(1);
  expect((await change.get("a"))?.value).toBe(1);
});

test("a row that was read before a commit is not kept after it", async () => {
  const { rows, read, change, kept } = opened();
  rows.set("a", row(1));
  const early = read.get("a");
  await change.put(row(2));
  kept.committed();
  expect((await early)?.value).toBe(1);
  expect((await read.get("a"))?.value).toBe(2);
});

test("what a list finds takes the place of what is kept", async () => {
  const { rows, read } = opened();
  rows.set("a", row(1));
  expect((await read.get("a"))?.value).toBe(1);
  rows.set("a", row(2));
  expect((await read.get("a"))?.value).toBe(1);
  expect((await read.list())[0]?.value).toBe(2);
  expect((await read.get("a"))?.value).toBe(2);
});

test("only so many are kept, those that were asked for last", async () => {
  const { rows, reads, read } = opened();
  for (let at = 0; at < 600; at += 1) rows.set(`r${at}`, { id: `r${at}`, value: at, parts: [] });
  for (let at = 0; at < 600; at += 1) await read.get(`r${at}`);
  const before = reads();
  await read.get("r599");
  expect(reads()).toBe(before);
  await read.get("r0");
  expect(reads()).toBe(before + 1);
});
