/** Which operations leave a record, and how. */
import { describe, expect, test } from "vitest";
import { RECORDED_OPERATIONS, RECORDED_STREAMS } from "../../src/interfaces/operations/recorded.ts";
import { OperationAudit } from "../../src/interfaces/operations/operation-audit.ts";
import type { Engine } from "../../src/interfaces/operations/operations.ts";
import { CONTRACTS } from "../../src/base/schema/contracts.ts";
import { VivError } from "../../src/base/schema/errors.ts";
import type { AuditEntry } from "../../src/base/schema/audit.ts";
import type { Audit } from "../../src/rules/audit/audit.ts";
import type { DeferredEntry } from "../../src/rules/audit/deferred-entries.ts";

const READING = new Set(["planPromotion", "explainPolicy", "triageAction", "importPolicy"]);

describe("the table of what is recorded", () => {
  test("AUD-1: has a row for every operation and every stream, and none too many", () => {
    expect(Object.keys(RECORDED_OPERATIONS).toSorted()).toEqual(Object.keys(CONTRACTS).toSorted());
    expect(Object.keys(RECORDED_STREAMS)).toContain("exec");
  });

  test("AUD-1: nothing that is sent to change something only looks, and nothing that is fetched is recorded", () => {
    for (const [name, contract] of Object.entries(CONTRACTS)) {
      const rule = RECORDED_OPERATIONS[name as keyof typeof CONTRACTS];
      const looks = "not" in rule && rule.not === "only looks";
      expect([name, looks]).toEqual([name, contract.method === "get" || READING.has(name)]);
    }
  });

  test("an operation without a row in the table is refused when the server starts", () => {
    const engine = { operations: { unheardOf: async () => 1 }, streams: {} } as unknown as Engine;
    expect(() => new OperationAudit({} as Audit, async () => ({ id: "", name: "", currentSnapshot: null })).engine(engine)).toThrow(
      "unheardOf",
    );
  });
});

describe("what people do", () => {
  const entries: AuditEntry[] = [];
  let isFull = false;
  const audit = {
    record: async (entry: AuditEntry) => {
      if (isFull) throw new VivError("audit_unavailable", "The audit trail can't be written.");
      entries.push(entry);
    },
    note: (entry: AuditEntry) => void (isFull || entries.push(entry)),
    noteFirst: async (entry: AuditEntry) => void (isFull || entries.push(entry)),
    noteLater: (later: DeferredEntry) => void later().then((entry) => entry !== undefined && !isFull && entries.push(entry)),
  } as unknown as Audit;
  const done: string[] = [];
  const find = async (reference: string) => {
    if (reference !== "try") throw new VivError("not_found", "There is none.");
    return { id: "sbx1", name: "try", currentSnapshot: "snp1" };
  };
  const work =
    (name: string) =>
    async (input: { fail?: boolean }): Promise<unknown> => {
      if (input.fail === true) throw new VivError("not_running", "It does not run.");
      done.push(name);
      return { id: "sbx2", name: "new", sandboxes: [] };
    };
  const engine = new OperationAudit(audit, find).engine({
    operations: Object.fromEntries(Object.keys(CONTRACTS).map((name) => [name, work(name)])),
    streams: {},
  } as unknown as Engine);
  const call = async (name: keyof typeof CONTRACTS, input: object): Promise<AuditEntry[]> => {
    entries.length = 0;
    done.length = 0;
    const operation = engine.operations[name] as unknown as (input: object) => Promise<unknown>;
    await operation(input).catch((error: unknown) => {
      if (!(error instanceof VivError)) throw error;
    });
    await new Promise((resolve) => setTimeout(resolve, 5));
    return [...entries];
  };

  test("is told with who, what and about which sandbox", async () => {
    expect(await call("runCommand", { sandbox: "try", command: ["echo", "a b"], env: { TOKEN: "secret" } })).toEqual([
      {
        actor: { kind: "person", name: "owner" },
        action: "exec",
        target: "echo 'a b'",
        arguments: { env: ["TOKEN"] },
        label: "RECORDED",
        rule: null,
        reason: null,
        sandbox: "sbx1",
        snapshot: "snp1",
      },
    ]);
    expect(await call("removeSandbox", { sandbox: "try" })).toMatchObject([{ action: "sandbox.remove", target: "try", sandbox: "sbx1" }]);
    expect(await call("createSandbox", { project: "/p" })).toMatchObject([{ action: "sandbox.create", target: "new", sandbox: "sbx2" }]);
    expect(await call("inspectSandbox", { sandbox: "try" })).toEqual([]);
  });

  test("that failed is told again with why, and what is about nothing is not told", async () => {
    const told = await call("stopSandbox", { sandbox: "try", fail: true });
    expect(told.map(({ action, reason }) => [action, reason])).toEqual([
      ["sandbox.stop", null],
      ["sandbox.stop", "It failed: It does not run."],
    ]);
    expect(await call("stopSandbox", { sandbox: "nobody", fail: true })).toEqual([]);
  });

  test("AU-04: is refused without a record where it opens something, and done without one where it does not", async () => {
    isFull = true;
    const outcomes: [keyof typeof CONTRACTS, object, boolean][] = [
      ["runCommand", { sandbox: "try", command: ["true"] }, true],
      ["stopSandbox", { sandbox: "try" }, true],
      ["createSandbox", { project: "/p" }, true],
      ["createSandbox", { project: "/p", network: "off" }, true],
      ["createSandbox", { project: "/p", network: "public" }, false],
      ["createSandbox", { project: "/p", unwalled: true }, false],
      ["createSandbox", { project: "/p", yolo: 3 }, true],
      ["createSandbox", { project: "/p", yolo: 4 }, false],
      ["forkSandbox", { sandbox: "try" }, true],
      ["forkSandbox", { sandbox: "try", level: 3 }, false],
      ["changeNetwork", { sandbox: "try", mode: "off" }, true],
      ["changeNetwork", { sandbox: "try", deny: ["example.com"] }, true],
      ["changeNetwork", { sandbox: "try", effects: "hold" }, true],
      ["changeNetwork", { sandbox: "try", mode: "public" }, false],
      ["changeNetwork", { sandbox: "try", allow: [{ host: "example.com" }] }, false],
      ["changeNetwork", { sandbox: "try", mode: "off", ports: [22] }, false],
      ["changeNetwork", { sandbox: "try", effects: "record" }, false],
    ];
    for (const [name, input, isDone] of outcomes) {
      await call(name, input);
      expect([name, input, done]).toEqual([name, input, isDone ? [name] : []]);
    }
    isFull = false;
    await call("changeNetwork", { sandbox: "try", mode: "public" });
    expect(done).toEqual(["changeNetwork"]);
  });
});
