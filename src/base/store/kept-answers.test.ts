import { describe, expect, it } from "vitest";
import { KeptAnswers } from "./kept-answers.ts";
import type { ChangeableCollection } from "./store.ts";

interface Row {
  readonly id: string;
  readonly path: string;
}

/** Rows in memory, and how often they were read. */
function table(): { from: ChangeableCollection<Row, { path: string }>; reads: () => number } {
  const rows = new Map<string, Row>();
  let reads = 0;
  const list = async ({ path }: { path?: string | undefined } = {}, { limit }: { limit?: number | undefined } = {}): Promise<Row[]> => {
    reads += 1;
    return [...rows.values()].filter((row) => path === undefined || row.path === path).slice(0, limit);
  };
  return {
    reads: () => reads,
    from: {
      get: async (id) => rows.get(id),
      find: async (where) => (await list(where, { limit: 1 }))[0],
      list,
      count: async () => rows.size,
      has: async (where) => (await list(where)).length > 0,
      put: async (row) => void rows.set(row.id, row),
      remove: async (id) => void rows.delete(id),
    },
  };
}

describe("kept answers", () => {
  it("are read once, also where there is no row, until a change of the collection is committed", async () => {
    const { from, reads } = table();
    const kept = new KeptAnswers();
    const [read, change] = [kept.read("projects", from), kept.change("projects", from)];
    expect(await read.find({ path: "/a" })).toBeUndefined();
    expect(await read.find({ path: "/a" })).toBeUndefined();
    expect(reads()).toBe(1);
    await change.put({ id: "one", path: "/a" });
    kept.committed();
    expect(await read.find({ path: "/a" })).toEqual({ id: "one", path: "/a" });
    expect(await read.list({ path: "/a" })).toHaveLength(1);
    await change.remove("one");
    kept.committed();
    expect(await read.list({ path: "/a" })).toEqual([]);
  });

  it("stay when a change of another collection is committed", async () => {
    const [{ from, reads }, other] = [table(), table()];
    const kept = new KeptAnswers();
    const read = kept.read("projects", from);
    await read.list();
    await kept.change("approvals", other.from).put({ id: "one", path: "/a" });
    kept.committed();
    await read.list();
    expect(reads()).toBe(1);
  });

  it("are not kept if a commit came while they were read", async () => {
    const { from, reads } = table();
    const kept = new KeptAnswers();
    const read = kept.read("projects", from);
    const early = read.list();
    await kept.change("projects", from).put({ id: "one", path: "/a" });
    kept.committed();
    expect(await early).toEqual([]);
    expect(await read.list()).toHaveLength(1);
    expect(reads()).toBe(2);
  });

  it("of a change under way come from the database", async () => {
    const { from } = table();
    const kept = new KeptAnswers();
    const change = kept.change("projects", from);
    expect(await kept.read("projects", from).list()).toEqual([]);
    await change.put({ id: "one", path: "/a" });
    expect(await change.find({ path: "/a" })).toEqual({ id: "one", path: "/a" });
  });

  it("are lists of the caller's own", async () => {
    const { from } = table();
    const kept = new KeptAnswers();
    await from.put({ id: "one", path: "/a" });
    const read = kept.read("projects", from);
    (await read.list()).pop();
    expect(await read.list()).toHaveLength(1);
  });
});
