/** AUD-1: a chain of records in which nothing can be changed, moved or taken away unseen. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Audit } from "../../src/audit/audit.ts";
import type { AuditEntry } from "../../src/schema/audit.ts";
import { openSqliteStore } from "../../src/store/sqlite/sqlite.ts";
import type { Store } from "../../src/store/store.ts";

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

async function open(): Promise<void> {
  store = await openSqliteStore(join(place, "vivarium.db"));
  audit = new Audit(store, join(place, "anchor"), (error) => lost.push(error));
}

beforeEach(async () => {
  place = mkdtempSync(join(tmpdir(), "viv-audit-"));
  lost.length = 0;
  await open();
});
afterEach(async () => {
  await store.close();
  rmSync(place, { recursive: true, force: true });
});

/** Somebody with the database in their hands. */
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
    ["taken out", "delete from audit where sequence = 4"],
    [
      "exchanged",
      "update audit set sequence = -1 where sequence = 4; update audit set sequence = 4 where sequence = 5; update audit set sequence = 5 where sequence = -1",
    ],
  ])("AU-02: a record that is %s is found, and named", async (_, statement) => {
    for (let index = 0; index < 8; index += 1) await audit.record(entry(`command ${index}`));
    expect((await audit.verify()).whole).toBe(true);
    await tamper(statement);
    expect(await audit.verify()).toMatchObject({ whole: false, firstBad: 4 });
  });

  test("AU-02: records cut off the end are missed by the note beside the database", async () => {
    for (let index = 0; index < 8; index += 1) await audit.record(entry(`command ${index}`));
    await tamper("delete from audit where sequence > 5");
    expect(await audit.verify()).toMatchObject({ whole: false, firstBad: 6, problem: "Records 6 to 8 were cut off." });
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
    const ahead = new Date(Date.now() + 3_600_000).toISOString();
    await audit.record(entry("first"));
    const [first] = await store.audit({ after: 0, limit: 1 });
    expect(first?.clockBack).toBe(false);
    await tamper(`update audit set body = json_set(body, '$.at', '${ahead}') where sequence = 1`);
    expect((await audit.record(entry("second"))).clockBack).toBe(true);
  });

  test("AU-04: what can't be recorded is refused, and what is only reported is told to be lost", async () => {
    await audit.record(entry("before"));
    const blocker = new DatabaseSync(join(place, "vivarium.db"));
    blocker.exec("begin immediate");
    try {
      audit.note(entry("a report"));
      await expect(audit.record(entry("an action"))).rejects.toMatchObject({ code: "audit_unavailable" });
      expect(lost.length).toBe(1);
    } finally {
      blocker.exec("rollback");
      blocker.close();
    }
    expect((await audit.record(entry("afterwards"))).sequence).toBe(2);
    expect((await audit.verify()).whole).toBe(true);
  });

  test("a note that was forged does not make the chain whole", async () => {
    await audit.record(entry("one"));
    await audit.close();
    writeFileSync(join(place, "anchor"), `1 ${"f".repeat(64)}\n`);
    expect(await audit.verify()).toMatchObject({ whole: false, firstBad: 1 });
  });
});
