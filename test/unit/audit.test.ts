/** AUD-1: a chain of records in which nothing can be changed, moved or taken away unseen. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Audit } from "../../src/rules/audit/audit.ts";
import type { AuditEntry } from "../../src/base/schema/audit.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import { workMs } from "../support/work.ts";

let place: string;
let store: Store;
let audit: Audit;
const lost: unknown[] = [];

const entry = (target: string, more: Partial<AuditEntry> = {}): AuditEntry => ({
  actor: { kind: "agent", name: "try" },
  action: "bash",
  target,
  arguments: {},
  label: "AUTONOMOUS",
  rule: null,
  reason: null,
  sandbox: null,
  snapshot: null,
  ...more,
});

let clock: () => Date = () => new Date();

async function open(): Promise<void> {
  store = await openSqliteStore(join(place, "vivarium.db"));
  audit = new Audit(store, join(place, "anchor"), (error, count) => lost.push([error, count]), { now: () => clock() });
}

beforeEach(async () => {
  place = mkdtempSync(join(tmpdir(), "viv-audit-"));
  lost.length = 0;
  clock = () => new Date();
  await open();
});
afterEach(async () => {
  await audit.close();
  await store.close();
  rmSync(place, { recursive: true, force: true });
});

/** An attacker who can write the database. */
async function tamper(...statements: string[]): Promise<void> {
  await audit.close();
  await store.close();
  const database = new DatabaseSync(join(place, "vivarium.db"));
  for (const statement of statements) database.exec(statement);
  database.close();
  await open();
}

describe("the audit trail", () => {
  test("AUD-1: records follow from each other, also over a restart, and the chain is whole", async () => {
    await Promise.all(Array.from({ length: 1200 }, (_, index) => audit.record(entry(`command ${index}`))));
    await tamper();
    const last = await audit.record(entry("after the restart"));
    expect(last.sequence).toBe(1201);
    expect(await audit.verify()).toEqual({ whole: true, records: 1201, newest: last.hash, problem: null, firstBad: null });
  });

  test.each([
    ["changed", "update audit set body = replace(body, 'command 3', 'command X') where sequence = 4"],
    [
      "changed together with its hash",
      "update audit set body = json_set(body, '$.target', 'x', '$.hash', printf('%064d', 1)) where sequence = 4",
    ],
    ["taken out", "delete from audit where sequence = 4"],
    ["put in twice", "update audit set body = (select body from audit where sequence = 3) where sequence = 4"],
    [
      "exchanged",
      "update audit set sequence = -1 where sequence = 4; update audit set sequence = 4 where sequence = 5; update audit set sequence = 5 where sequence = -1",
    ],
    ["cut off the beginning", "delete from audit where sequence < 4; update audit set sequence = sequence - 3", 1],
  ])("AU-02: a record that is %s is found, and named", async (_, statement, first = 4) => {
    for (let index = 0; index < 8; index += 1) await audit.record(entry(`command ${index}`));
    await tamper();
    expect(await audit.verify()).toMatchObject({ whole: true, records: 8 });
    await tamper(statement);
    expect(await audit.verify()).toMatchObject({ whole: false, firstBad: first });
  });

  test("AU-02: records cut off the end are missed by the note beside the database", async () => {
    for (let index = 0; index < 8; index += 1) await audit.record(entry(`command ${index}`));
    await tamper("delete from audit where sequence > 5");
    expect(await audit.verify()).toMatchObject({ whole: false, firstBad: 6, problem: "Records 6 to 8 were cut off." });
  });

  test("AU-02: what was cut off is not forgotten when the server goes on", async () => {
    for (let index = 0; index < 8; index += 1) await audit.record(entry(`command ${index}`));
    await tamper("delete from audit where sequence > 5");
    const next = await audit.record(entry("as if nothing had happened"));
    expect(next.sequence).toBe(7);
    expect(lost).toHaveLength(1);
    await tamper();
    expect(await audit.verify()).toMatchObject({ whole: false, firstBad: 6, problem: "Records 6 to 8 were cut off." });
    // Removing that record, too, breaks the chain.
    await tamper("delete from audit where sequence = 6");
    expect(await audit.verify()).toMatchObject({ whole: false, firstBad: 6 });
  });

  test("AU-02: a note that is gone is missed, before and after the server goes on", async () => {
    await audit.record(entry("one"));
    await audit.record(entry("two"));
    await tamper("delete from audit where sequence = 2");
    rmSync(join(place, "anchor"));
    expect(await audit.verify()).toMatchObject({ whole: false, firstBad: 2 });
    await audit.record(entry("three"));
    expect(await audit.verify()).toMatchObject({ whole: false, firstBad: 2 });
  });

  test("AU-02: records that are removed from the end while the server runs are missed, whatever the note says", async () => {
    for (let index = 0; index < 4; index += 1) await audit.record(entry(`command ${index}`));
    const [, second] = await store.audit.list({ after: 0, limit: 2 });
    const other = new DatabaseSync(join(place, "vivarium.db"));
    other.exec("delete from audit where sequence > 2");
    other.close();
    writeFileSync(join(place, "anchor"), `2 ${second?.hash}\n`);
    expect(await audit.verify()).toMatchObject({ whole: false, firstBad: 3 });
    await audit.record(entry("next"));
    expect(await audit.verify()).toMatchObject({ whole: false, firstBad: 3, problem: "Record 3 is missing." });
  });

  test("AU-02: a trail that was written anew does not match a record that was noted elsewhere", async () => {
    for (let index = 0; index < 4; index += 1) await audit.record(entry(`command ${index}`));
    const [, , third] = await store.audit.list({ after: 0, limit: 3 });
    const noted = { sequence: 3, hash: third?.hash ?? "" };
    expect(await audit.verify(noted)).toMatchObject({ whole: true });
    // A whole new chain, with its own note: nothing in the folder shows it.
    await tamper("delete from audit");
    rmSync(join(place, "anchor"));
    for (let index = 0; index < 4; index += 1) await audit.record(entry(`forged ${index}`));
    expect(await audit.verify()).toMatchObject({ whole: true, records: 4 });
    expect(await audit.verify(noted)).toMatchObject({ whole: false, firstBad: 3 });
  });

  test("AU-08: secrets in commands and arguments are left out", async () => {
    const secret = "hunter2-canary-4711";
    const record = await audit.record(
      entry(`curl -H 'Authorization: Bearer ${secret}' https://me:${secret}@example.com --token ${secret}`, {
        arguments: { password: secret, nested: [{ api_key: secret }], env: `NPM_TOKEN=${secret}` },
      }),
    );
    expect(JSON.stringify(record)).not.toContain(secret);
    expect(record.target).toContain("curl -H");
  });

  test("AU-05: the order is that of the chain, whatever the clock says, and a clock set back is told", async () => {
    await audit.record(entry("first"));
    clock = () => new Date(Date.now() - 3_600_000);
    const second = await audit.record(entry("second"));
    clock = () => new Date();
    await audit.record(entry("third"));
    const all = await audit.list({ after: 0, limit: 10 });
    expect(all.map(({ target, clockBack }) => [target, clockBack])).toEqual([
      ["first", false],
      ["second", true],
      ["third", false],
    ]);
    expect(second.at < (all[0]?.at ?? "")).toBe(true);
    expect((await audit.verify()).whole).toBe(true);
    // The anomaly can't be taken back either.
    await tamper("update audit set body = json_set(body, '$.clockBack', json('false')) where sequence = 2");
    expect(await audit.verify()).toMatchObject({ whole: false, firstBad: 2 });
  });

  test("AU-04: what can't be recorded is refused, and what is only reported waits for its record", async () => {
    await audit.record(entry("before"));
    const blocker = new DatabaseSync(join(place, "vivarium.db"));
    blocker.exec("begin immediate");
    try {
      const began = workMs();
      audit.note(entry("a report"));
      expect(workMs() - began).toBeLessThan(100);
      const act = audit.noteFirst(entry("an act"));
      await expect(audit.record(entry("an action"))).rejects.toMatchObject({ code: "audit_unavailable" });
      await act;
    } finally {
      blocker.exec("rollback");
      blocker.close();
    }
    await audit.record(entry("afterwards"));
    const all = await audit.list({ after: 0, limit: 10 });
    expect(all.map(({ target }) => target)).toEqual(["before", "a report", "an act", "afterwards"]);
    expect(lost).toEqual([]);
    expect((await audit.verify()).whole).toBe(true);
  });

  test("AU-03: when too many wait, actions are refused, reports are counted, and the count is a record", async () => {
    const blocker = new DatabaseSync(join(place, "vivarium.db"));
    blocker.exec("begin immediate");
    const beyond = 25;
    try {
      for (let index = 0; index < LIMITS.waitingAuditRecords + beyond; index += 1) audit.note(entry(`flood ${index}`));
      await expect(audit.record(entry("an action"))).rejects.toMatchObject({ code: "audit_unavailable" });
      expect(lost).toHaveLength(beyond);
    } finally {
      blocker.exec("rollback");
      blocker.close();
    }
    await audit.close();
    const [newest] = await store.audit.list({ after: 0, limit: 1, newest: true });
    const { whole, records } = await audit.verify();
    expect([whole, records]).toEqual([true, LIMITS.waitingAuditRecords + 1]);
    const counts = await audit.list({ after: 0, limit: 1000 });
    expect([...counts, newest].filter((one) => one?.action === "audit.lost")).toMatchObject([{ arguments: { records: beyond } }]);
  }, 180_000);

  test("a decision and its record are there together or not at all", async () => {
    const project = { id: "prj1", path: "/p", trusted: null };
    await audit.recordWith(async (change) => {
      await change.projects.put(project);
      return { entry: entry("trusted"), result: undefined };
    });
    const failing = audit.recordWith(async (change) => {
      await change.projects.put({ ...project, trusted: "hash" });
      throw new Error("no");
    });
    await expect(failing).rejects.toThrow("no");
    const many = Array.from({ length: 50 }, (_, index) =>
      index % 2 === 0
        ? audit.record(entry(`plain ${index}`))
        : audit.recordWith(async () => ({ entry: entry(`with ${index}`), result: undefined })),
    );
    await Promise.all(many);
    expect((await store.projects.get("prj1"))?.trusted).toBe(null);
    expect(await audit.verify()).toMatchObject({ whole: true, records: 51 });
  });

  test("what is told later is told before whatever comes after it, and one that can't be put together takes nothing along", async () => {
    audit.noteLater(async () => entry("first"), "soon");
    audit.noteLater(() => Promise.reject(new Error("no")), "soon");
    audit.noteLater(async () => undefined, "soon");
    audit.noteLater(async () => entry("second"), "at once");
    audit.note(entry("third"));
    audit.noteLater(async () => entry("fourth"), "soon");
    await audit.recordWith(async () => ({ entry: entry("fifth"), result: undefined }));
    audit.noteLater(async () => entry("sixth"), "soon");
    await audit.record(entry("seventh"));
    audit.noteLater(async () => entry("eighth"), "soon");
    const all = await audit.list({ after: 0, limit: 10 });
    expect(all.map(({ target }) => target)).toEqual(["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"]);
    expect(all.some(({ clockBack }) => clockBack)).toBe(false);
    expect(lost).toMatchObject([[new Error("no"), 1]]);
  });

  test("finds the newest, and those of a time and later", async () => {
    const begin = Date.now();
    for (let index = 0; index < 2_500; index += 1) {
      clock = () => new Date(begin + index * 1000);
      audit.note(entry(`command ${index}`, { sandbox: index % 2 === 0 ? "even" : "odd" }));
    }
    const newest = await audit.list({ after: 0, limit: 2, newest: true });
    expect(newest.map(({ target }) => target)).toEqual(["command 2498", "command 2499"]);
    const at = new Date(begin + 1_000_000).toISOString();
    expect(await audit.placeBefore(at)).toBe(1000);
    expect(await audit.placeBefore(at, "odd")).toBe(1000);
    expect(await audit.placeBefore(new Date(begin - 1).toISOString())).toBe(0);
    expect(await audit.placeBefore(new Date(begin + 9e9).toISOString())).toBe(2500);
  });

  describe("a caller that wants to know when its record is written", () => {
    let steps: string[];
    let syncing: (() => Promise<void>) | undefined;
    /** Whether a change fails once all of it is done, as a commit does on a full disk. */
    let full: boolean;

    /** The same trail on a store that tells when its disk is synced. */
    beforeEach(() => {
      steps = [];
      full = false;
      syncing = undefined;
      const sync = async (): Promise<void> => {
        steps.push("sync");
        await syncing?.();
        await store.sync();
        steps.push("synced");
      };
      const change: Store["change"] = (work) =>
        store.change(async (made) => {
          const result = await work(made);
          if (full) throw new Error("The disk is full.");
          return result;
        });
      audit = new Audit({ ...store, change, sync }, join(place, "anchor"), (error, count) => lost.push([error, count]));
    });

    const recorded = (target: string): Promise<unknown> =>
      audit.record(entry(target), () => steps.push(`written ${target}`)).then(() => steps.push(`durable ${target}`));

    test("is told after the commit, before the sync begins, and before the record is durable", async () => {
      let committed: AuditEntry | undefined;
      syncing = async () => void ([committed] = await store.audit.list({ after: 0, limit: 1, newest: true }));
      await recorded("one");
      expect(steps).toEqual(["written one", "sync", "synced", "durable one"]);
      expect(committed?.target).toBe("one");
    });

    test("is told in the turn of the event loop in which the sync begins", async () => {
      let turns = 0;
      const written = Promise.withResolvers<number>();
      syncing = async () => expect(turns).toBe(await written.promise);
      await audit.record(entry("one"), () => {
        written.resolve(turns);
        setImmediate(() => (turns += 1));
      });
    });

    test("is told once for each record of a batch", async () => {
      const names = Array.from({ length: 20 }, (_, index) => `${index}`);
      await Promise.all(names.map(recorded));
      const written = names.map((name) => `written ${name}`);
      expect(steps).toEqual([...written, "sync", "synced", ...names.map((name) => `durable ${name}`)]);
    });

    test("is told once where deferred entries are written along", async () => {
      audit.noteLater(async () => entry("before"), "soon");
      await recorded("one");
      expect(steps).toEqual(["written one", "sync", "synced", "durable one"]);
    });

    test("is not told if the write fails, also when what was only reported is written later", async () => {
      await recorded("one");
      steps.length = 0;
      full = true;
      audit.note(entry("a report"));
      await expect(recorded("two")).rejects.toMatchObject({ code: "audit_unavailable" });
      full = false;
      expect(steps).toEqual([]);
      await recorded("three");
      expect(steps).toEqual(["written three", "sync", "synced", "durable three"]);
    });

    test("was told already if the sync fails, and the record is refused", async () => {
      syncing = () => Promise.reject(new Error("no disk"));
      await expect(recorded("one")).rejects.toMatchObject({ code: "audit_unavailable" });
      expect(steps).toEqual(["written one", "sync"]);
    });

    test("harms nothing if it throws: its record and those beside it are durable, and there once", async () => {
      audit.note(entry("a report"));
      const faulty = audit.record(entry("one"), () => {
        throw new Error("faulty");
      });
      await Promise.all([faulty, recorded("two")]);
      expect(steps).toEqual(["written two", "sync", "synced", "durable two"]);
      expect(lost).toMatchObject([[new Error("faulty"), 0]]);
      const all = await audit.list({ after: 0, limit: 10 });
      expect(all.map(({ target }) => target)).toEqual(["a report", "one", "two"]);
    });
  });

  test("a note that was forged does not make the chain whole", async () => {
    await audit.record(entry("one"));
    await audit.close();
    writeFileSync(join(place, "anchor"), `1 ${"f".repeat(64)}\n`);
    expect(await audit.verify()).toMatchObject({ whole: false, firstBad: 1 });
  });
});
