/** What every implementation of the store's port does. */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Approval } from "../../src/base/schema/approval.ts";
import type { AuditRecord } from "../../src/base/schema/audit.ts";
import type { VivEvent } from "../../src/base/schema/event.ts";
import { newId } from "../../src/base/schema/ids.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import type { UsageRow } from "../../src/base/schema/model.ts";
import { COLLECTIONS, type CollectionName } from "../../src/base/store/collections.ts";
import type { ExperimentRow, PromotionRow, SnapshotRow } from "../../src/base/store/rows.ts";
import type { Change, Store } from "../../src/base/store/store.ts";
import { conversationsContract } from "./conversations-contract.ts";
import { aCommand, aSandboxRow } from "./rows.ts";

/** A place for one database: `open` opens it, the first time anew. */
export interface StorePlace {
  open(): Promise<Store>;
  remove(): Promise<void>;
}

const time = (second: number): string => new Date(second * 1000).toISOString();

function aSnapshot(changes: Partial<SnapshotRow> = {}): SnapshotRow {
  const id = newId("snapshot");
  const rest = { name: null, parent: null, current: true, expiresAt: null, frozenMs: 1 };
  return { id, sandbox: newId("sandbox"), createdAt: time(0), ...rest, ...changes };
}

function anApproval(changes: Partial<Approval> = {}): Approval {
  const question = { kind: "command" as const, target: "true", rule: null, reason: "", always: null, project: "/srv/project" };
  const answer = { answeredAt: null, answeredBy: null, scope: null };
  const id = newId("approval");
  const rest = { sandbox: null, sandboxName: null, hash: "h", askedAt: time(0), deadline: time(9) };
  return { id, state: "waiting", ...question, ...answer, ...rest, ...changes };
}

/** The fields that the store looks at, and no others: a body is the caller's own. */
function anExperiment(changes: Partial<ExperimentRow>): ExperimentRow {
  return { id: newId("experiment"), project: "/srv/project", state: "queued", createdAt: time(0), ...changes } as ExperimentRow;
}

function aPromotion(changes: Partial<PromotionRow>): PromotionRow {
  const rest = { project: "/srv/project", state: "applied" as const, stages: [], writing: false, createdAt: time(0) };
  return { id: newId("promotion"), ...rest, ...changes } as unknown as PromotionRow;
}

function aRecord(sequence: number, sandbox: string | null = null): AuditRecord {
  return { sequence, sandbox, action: "exec" } as unknown as AuditRecord;
}

function aUsage(changes: Partial<UsageRow> = {}): UsageRow {
  const tokens = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 2, cacheWriteTokens: 1 };
  const about = { sandbox: "sbx1", name: "one", task: null, project: "/p", day: "2026-01-01", provider: "anthropic", model: "m" };
  return { ...about, requests: 1, ...tokens, microDollars: 100, ...changes };
}

export function storeContract(makePlace: () => Promise<StorePlace>): void {
  let place: StorePlace;
  let store: Store;

  beforeEach(async () => {
    place = await makePlace();
    store = await place.open();
  });
  afterEach(async () => {
    await store.close();
    await place.remove();
  });

  const reopen = async (): Promise<void> => {
    await store.close();
    store = await place.open();
  };
  const put = (work: (change: Change) => Promise<unknown>): Promise<unknown> => store.change(work);

  it("gives back what a change wrote, also after a restart", async () => {
    const row = aSandboxRow({ idempotencyKey: "k", refreshedTo: undefined });
    const command = aCommand(row.id);
    const project = { id: "prj1", path: "/srv/it's", trusted: null };
    await put(async (change) => {
      await change.sandboxes.put(row);
      await change.commands.put(command);
      await change.projects.put(project);
      await change.event("sandbox.creating", row.id, { why: "test" });
    });
    await reopen();
    expect(await store.sandboxes.get(row.id)).toEqual(row);
    expect(await store.sandboxes.find({ name: row.name })).toEqual(row);
    expect(await store.sandboxes.find({ idempotencyKey: "k" })).toEqual(row);
    expect(await store.commands.list({ sandbox: row.id, running: true })).toEqual([command]);
    expect(await store.projects.find({ path: "/srv/it's" })).toEqual(project);
    expect(await store.events.list({ after: 0, limit: 10 })).toMatchObject([
      { sequence: 1, type: "sandbox.creating", sandbox: row.id, data: { why: "test" } },
    ]);
  });

  it("has every column that a collection declares", async () => {
    for (const [name, { columns }] of Object.entries(COLLECTIONS)) {
      const collection = store[name as CollectionName] as { count(where: object): Promise<number> };
      for (const column of Object.keys(columns)) expect(await collection.count({ [column]: "x" }), `${name}.${column}`).toBe(0);
    }
  });

  it("refuses to find rows by what is not declared", async () => {
    const asked = { "id = '' or name": "x" } as object;
    await expect(store.sandboxes.list(asked)).rejects.toMatchObject({ code: "internal" });
    await expect(store.sandboxes.has({ ...asked, name: "x" })).rejects.toMatchObject({ code: "internal" });
  });

  it("puts a row in the place of the one with its id, with what it is found by", async () => {
    const row = aSandboxRow({ refreshedTo: "bas1" });
    await put((change) => change.sandboxes.put(row));
    const { refreshedTo: _, ...after } = { ...row, name: "another" };
    await put((change) => change.sandboxes.put(after));
    expect(await store.sandboxes.list()).toEqual([after]);
    expect(await store.sandboxes.find({ name: row.name })).toBeUndefined();
    expect(await store.sandboxes.has({ refreshedTo: "bas1" })).toBe(false);
    expect(await store.sandboxes.find({ name: "another" })).toEqual(after);
  });

  it("lists rows in the order of their collection, those of one time by their ids, up to a limit", async () => {
    const snapshots = [3, 1, 2].map((second) => aSnapshot({ createdAt: time(second) }));
    const twins = ["snpb", "snpa"].map((id) => aSnapshot({ id, createdAt: time(0) }));
    const approvals = [3, 1, 2].map((second) => anApproval({ askedAt: time(second) }));
    await put(async (change) => {
      for (const row of [...snapshots, ...twins]) await change.snapshots.put(row);
      for (const row of approvals) await change.approvals.put(row);
    });
    const [third, first, second] = snapshots.map(({ id }) => id);
    expect((await store.snapshots.list()).map(({ id }) => id)).toEqual(["snpa", "snpb", first, second, third]);
    expect((await store.snapshots.list({}, { limit: 2 })).map(({ id }) => id)).toEqual(["snpa", "snpb"]);
    expect((await store.snapshots.list({}, { limit: undefined })).length).toBe(5);
    expect((await store.snapshots.find({}))?.id).toBe("snpa");
    expect((await store.approvals.list()).map(({ askedAt }) => askedAt)).toEqual([time(3), time(2), time(1)]);
    expect((await store.approvals.list({}, { limit: 1 })).map(({ askedAt }) => askedAt)).toEqual([time(3)]);
  });

  it("finds the rows that have all values that are asked for; undefined asks for nothing", async () => {
    const [one, two, three] = [
      anApproval({ hash: "a", scope: "always", sandbox: "sbx1" }),
      anApproval({ hash: "a", state: "denied", sandbox: "sbx2" }),
      anApproval({ hash: "b" }),
    ];
    await put(async (change) => {
      for (const row of [one, two, three]) await change.approvals.put(row);
    });
    const ids = async (where: Parameters<Store["approvals"]["list"]>[0]): Promise<Set<string>> =>
      new Set((await store.approvals.list(where)).map(({ id }) => id));
    expect(await ids({ hash: "a" })).toEqual(new Set([one.id, two.id]));
    expect(await ids({ hash: "a", state: "waiting" })).toEqual(new Set([one.id]));
    expect(await ids({ state: "waiting", hash: "b", scope: undefined })).toEqual(new Set([three.id]));
    expect(await ids({ scope: "always" })).toEqual(new Set([one.id]));
    expect(await ids({ sandbox: "sbx2" })).toEqual(new Set([two.id]));
    expect(await ids({})).toEqual(new Set([one.id, two.id, three.id]));
    expect([await store.approvals.count(), await store.approvals.count({ hash: "a" }), await store.approvals.count({ hash: "c" })]).toEqual(
      [3, 2, 0],
    );
    expect([await store.approvals.has({ hash: "a", state: "denied" }), await store.approvals.has({ hash: "b", state: "denied" })]).toEqual([
      true,
      false,
    ]);
  });

  it("knows which experiments and promotions are not at their end", async () => {
    const queued = anExperiment({ state: "queued" });
    const writing = aPromotion({ writing: true });
    const waiting = aPromotion({ stages: [{ state: "waiting" }] as unknown as PromotionRow["stages"], project: "/other" });
    await put(async (change) => {
      for (const row of [queued, anExperiment({ state: "cancelled" })]) await change.experiments.put(row);
      for (const row of [writing, waiting, aPromotion({})]) await change.promotions.put(row);
    });
    expect(await store.experiments.list({ open: true })).toEqual([queued]);
    expect((await store.promotions.list({ open: true })).map(({ id }) => id).toSorted()).toEqual([writing.id, waiting.id].toSorted());
    expect(await store.promotions.list({ open: true, project: "/other" })).toEqual([waiting]);
  });

  it("removes a row with what is part of it, and nothing else; a row that is not there is no error", async () => {
    const [gone, stays] = [aSandboxRow(), aSandboxRow()];
    const kept = aCommand(stays.id);
    const snapshot = aSnapshot({ sandbox: gone.id });
    await put(async (change) => {
      for (const row of [gone, stays]) await change.sandboxes.put(row);
      for (const command of [aCommand(gone.id), kept]) await change.commands.put(command);
      await change.snapshots.put(snapshot);
    });
    await put(async (change) => {
      await change.sandboxes.remove(gone.id);
      await change.sandboxes.remove("sbx0");
    });
    expect(await store.sandboxes.list()).toEqual([stays]);
    expect(await store.commands.list()).toEqual([kept]);
    expect(await store.snapshots.list()).toEqual([snapshot]);
  });

  it("refuses a second sandbox of the same name, and a second project at the same path", async () => {
    await put((change) => change.sandboxes.put(aSandboxRow({ name: "one" })));
    await expect(put((change) => change.sandboxes.put(aSandboxRow({ name: "one" })))).rejects.toMatchObject({ code: "name_taken" });
    await put((change) => change.projects.put({ id: "prj1", path: "/p", trusted: null }));
    const second = put((change) => change.projects.put({ id: "prj2", path: "/p", trusted: null }));
    await expect(second).rejects.toMatchObject({ code: "exists" });
    expect((await store.projects.list()).map(({ id }) => id)).toEqual(["prj1"]);
  });

  it("keeps nothing of a change that throws, throws the same, and publishes none of its events", async () => {
    const heard: VivEvent[] = [];
    store.onEvents((events) => heard.push(...events));
    const why = new Error("no");
    const failed = put(async (change) => {
      await change.sandboxes.put(aSandboxRow());
      await change.audit.append([aRecord(1)]);
      await change.usage.add(aUsage());
      await change.event("sandbox.running", "sbx1");
      throw why;
    });
    await expect(failed).rejects.toBe(why);
    expect([await store.sandboxes.count(), await store.audit.newest(), await store.usage.spent({})]).toEqual([0, undefined, 0]);
    expect([heard, await store.events.range()]).toEqual([[], { oldest: 1, newest: 0 }]);
    await put((change) => change.event("server.started", null));
    expect(heard.map(({ type }) => type)).toEqual(["server.started"]);
  });

  it("runs changes one after the other and publishes their events in order, before each is acknowledged", async () => {
    const heard: number[][] = [];
    const stop = store.onEvents((events) => heard.push(events.map(({ sequence }) => sequence)));
    let inside = 0;
    const changes = Array.from({ length: 50 }, async (_, index) => {
      await store.change(async (change) => {
        inside += 1;
        expect(inside).toBe(1);
        await change.event("server.started", null);
        await new Promise((resolve) => setImmediate(resolve));
        await change.event("server.stopped", null);
        inside -= 1;
      });
      expect(heard.length).toBeGreaterThan(index);
    });
    await Promise.all(changes);
    expect(heard).toEqual(Array.from({ length: 50 }, (_, index) => [index * 2 + 1, index * 2 + 2]));
    stop();
    await put((change) => change.event("server.started", null));
    expect(heard).toHaveLength(50);
  });

  it("shows a change its own writes, and readers only what is committed", async () => {
    const row = aSandboxRow();
    await put(async (change) => {
      await change.sandboxes.put(row);
      await change.event("sandbox.creating", row.id);
      expect([await change.sandboxes.get(row.id), await change.sandboxes.count()]).toEqual([row, 1]);
      expect([await store.sandboxes.get(row.id), await store.sandboxes.count()]).toEqual([undefined, 0]);
      expect([(await change.events.range()).newest, (await store.events.range()).newest]).toEqual([1, 0]);
      await change.sandboxes.remove(row.id);
      expect(await change.sandboxes.get(row.id)).toBeUndefined();
      await change.sandboxes.put(row);
    });
    expect(await store.sandboxes.get(row.id)).toEqual(row);
  });

  it("gives events of all or of one sandbox, after a number, up to a limit", async () => {
    await put(async (change) => {
      for (const sandbox of ["sbx1", "sbx2", null, "sbx1"]) await change.event("sandbox.running", sandbox);
    });
    const numbers = async (filter: Parameters<Store["events"]["list"]>[0]): Promise<number[]> =>
      (await store.events.list(filter)).map(({ sequence }) => sequence);
    expect(await numbers({ after: 0, limit: 10 })).toEqual([1, 2, 3, 4]);
    expect(await numbers({ after: 1, limit: 2 })).toEqual([2, 3]);
    expect(await numbers({ after: 0, limit: 10, sandbox: "sbx1" })).toEqual([1, 4]);
  });

  it("drops events beyond the retention and never gives a number again", { timeout: 60_000 }, async () => {
    await put(async (change) => {
      for (let number = 0; number < LIMITS.eventRetentionRows + 100; number += 1) await change.event("server.started", null);
    });
    await store.trim();
    expect(await store.events.range()).toEqual({ oldest: 101, newest: LIMITS.eventRetentionRows + 100 });
    await reopen();
    await put((change) => change.event("server.started", null));
    expect((await store.events.range()).newest).toBe(LIMITS.eventRetentionRows + 101);
  });

  it("forgets the oldest commands of a sandbox that has very many, but none that runs", { timeout: 60_000 }, async () => {
    const row = aSandboxRow();
    await put(async (change) => {
      await change.sandboxes.put(row);
      await change.commands.put(aCommand(row.id, { startedAt: time(0), running: true }));
      for (let number = 1; number <= LIMITS.keptCommands + 10; number += 1)
        await change.commands.put(aCommand(row.id, { startedAt: time(number), running: false }));
    });
    await store.trim();
    const left = await store.commands.list({ sandbox: row.id });
    expect(left).toHaveLength(LIMITS.keptCommands + 1);
    expect(left.slice(0, 2).map(({ startedAt }) => startedAt)).toEqual([time(0), time(11)]);
  });

  it("only ever adds audit records, and pages through them from both ends", async () => {
    await put((change) => change.audit.append([1, 2, 3, 4, 5].map((number) => aRecord(number, number % 2 === 0 ? "sbx1" : null))));
    await expect(put((change) => change.audit.append([aRecord(5)]))).rejects.toMatchObject({ code: "exists" });
    const numbers = async (filter: Parameters<Store["audit"]["list"]>[0]): Promise<number[]> =>
      (await store.audit.list(filter)).map(({ sequence }) => sequence);
    expect(await numbers({ after: 1, limit: 2 })).toEqual([2, 3]);
    expect(await numbers({ after: 0, limit: 2, newest: true })).toEqual([4, 5]);
    expect(await numbers({ after: 0, limit: 2, newest: true, before: 4 })).toEqual([2, 3]);
    expect(await numbers({ after: 0, limit: 9, sandbox: "sbx1" })).toEqual([2, 4]);
    expect((await store.audit.newest())?.sequence).toBe(5);
  });

  it("finds audit records by their action, whole or by its beginning, and not by other text in them", async () => {
    const actions = ["network.request", "network.ended", "networks", "exec"];
    const records = actions.map((action, index) => ({ ...aRecord(index + 1, "sbx1"), action, target: '"action":"network.request"' }));
    await put((change) => change.audit.append(records));
    const found = async (action: string, more: object = {}): Promise<string[]> =>
      (await store.audit.list({ after: 0, limit: 10, action, ...more })).map((record) => record.action);
    expect(await found("network.request")).toEqual(["network.request"]);
    expect(await found("network.*")).toEqual(["network.request", "network.ended"]);
    expect(await found("network.*", { newest: true, limit: 1, sandbox: "sbx1" })).toEqual(["network.ended"]);
    expect(await found("network.*", { sandbox: "sbx2" })).toEqual([]);
    expect(await found("%")).toEqual([]);
  });

  it("sums up usage per sandbox, day, provider and model", async () => {
    await put(async (change) => {
      await change.usage.add(aUsage());
      await change.usage.add(aUsage({ requests: 0, microDollars: -40 }));
      await change.usage.add(aUsage({ day: "2026-01-02", task: "t" }));
      expect(await change.usage.spent({ sandbox: "sbx1" })).toBe(160);
    });
    expect(await store.usage.list({})).toEqual([
      aUsage({ day: "2026-01-02", task: "t" }),
      aUsage({ inputTokens: 20, outputTokens: 10, cacheReadTokens: 4, cacheWriteTokens: 2, microDollars: 60 }),
    ]);
    expect([
      await store.usage.spent({ day: "2026-01-01" }),
      await store.usage.spent({ task: "t" }),
      await store.usage.spent({ task: "u" }),
    ]).toEqual([60, 100, 0]);
  });

  conversationsContract(() => store);

  it("syncs what is committed, and also where there is nothing", async () => {
    await expect(store.sync()).resolves.toBeUndefined();
    await put((change) => change.event("server.started", null));
    await expect(store.sync()).resolves.toBeUndefined();
  });
}
