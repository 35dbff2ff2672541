/** The audit trail on a disk that is full: a tiny file system of its own. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Audit } from "../../src/rules/audit/audit.ts";
import type { AuditEntry } from "../../src/base/schema/audit.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const entry = (target: string): AuditEntry => ({
  actor: { kind: "agent", name: "try" },
  action: "bash",
  target,
  arguments: { filler: "x".repeat(3000) },
  label: "AUTONOMOUS",
  rule: null,
  reason: null,
  sandbox: null,
  snapshot: null,
});

describe("the audit trail on a full disk", needs("root"), () => {
  let place: string;
  let store: Store;
  let audit: Audit;
  const trouble: unknown[] = [];

  beforeEach(async () => {
    place = mkdtempSync(join(tmpdir(), "viv-audit-full-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=2m,mode=700", "viv-audit-test", place]);
    store = await openSqliteStore(join(place, "vivarium.db"));
    audit = new Audit(store, join(place, "anchor"), (error) => trouble.push(error));
  });
  afterEach(async () => {
    await audit.close();
    await store.close();
    execFileSync("umount", ["--lazy", place]);
    rmSync(place, { recursive: true, force: true });
  });

  function fill(): void {
    const { bavail, bsize } = statfsSync(place);
    writeFileSync(join(place, "filler"), Buffer.alloc(bavail * bsize));
  }

  test("AU-04: refuses what must be recorded, keeps what was only reported, and goes on when there is room", async () => {
    await audit.record(entry("before"));
    fill();
    // What SQLite has room for in its log already is used up first.
    const useUp = async (): Promise<void> => {
      for (let index = 0; index < 500; index += 1) await audit.record(entry(`action ${index}`));
    };
    await expect(useUp()).rejects.toMatchObject({ code: "audit_unavailable", cause: { code: "disk_full" } });
    audit.note(entry("a report"));
    await expect(audit.record(entry("another action"))).rejects.toMatchObject({ code: "audit_unavailable" });
    const before = await audit.verify();
    expect(before.whole).toBe(true);
    expect(readFileSync(join(place, "anchor"), "utf8")).toContain(before.newest);

    rmSync(join(place, "filler"));
    await eventually(
      () => audit.list({ after: before.records, limit: 10 }),
      (records) => records.some(({ target }) => target === "a report"),
    );
    await audit.record(entry("afterwards"));
    expect(await audit.verify()).toMatchObject({ whole: true, records: before.records + 2 });
    expect(trouble).toEqual([]);
  });
});
