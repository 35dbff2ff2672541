/** Actions as they are decided: recorded first, asked about once, approved once. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Actions } from "../../src/rules/actions/actions.ts";
import { Approvals } from "../../src/rules/approvals/approvals.ts";
import { Audit } from "../../src/rules/audit/audit.ts";
import type { ActionAnswer } from "../../src/base/schema/action.ts";
import type { Autonomy, PolicyAction } from "../../src/base/schema/policy.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import type { SandboxRow } from "../../src/base/store/rows.ts";
import { aSandboxRow } from "../support/rows.ts";

let place: string;
let project: string;
let store: Store;
let audit: Audit;
let approvals: Approvals;
let actions: Actions;
let reached: string[];
const never = new AbortController().signal;

beforeEach(async () => {
  place = mkdtempSync(join(tmpdir(), "viv-actions-"));
  project = join(place, "project");
  mkdirSync(project);
  reached = [];
  store = await openSqliteStore(join(place, "vivarium.db"));
  audit = new Audit(store, join(place, "anchor"), () => undefined);
  const reach = (point: string): void => void reached.push(point);
  approvals = new Approvals(store, audit, join(place, "token"), reach);
  actions = new Actions({ store, audit, approvals, reach, user: { models: {}, budgets: {} } });
});
afterEach(async () => {
  await store.close();
  rmSync(place, { recursive: true, force: true });
});

async function sandbox(autonomy: Partial<Autonomy> = {}, more: Partial<SandboxRow> = {}): Promise<SandboxRow> {
  const row = aSandboxRow({ project, idleMs: 1000, autonomy: { level: null, yolo: null, role: "worker", ...autonomy }, ...more });
  await store.change((change) => change.sandboxes.put(row));
  return row;
}

const decide = (row: SandboxRow, action: PolicyAction | string, wait = 0, signal = never): Promise<ActionAnswer> =>
  actions.decide(row, { action: typeof action === "string" ? { kind: "command", command: action } : action, wait }, signal);
const token = (): string => readFileSync(join(place, "token"), "utf8").trim();
const records = () => audit.list({ after: 0, limit: 1000 });
const config = (value: unknown): void => writeFileSync(join(project, "vivarium.json"), JSON.stringify(value));

describe("a verdict", () => {
  test("AUD-1: has one record with who, what, verdict, rule, hash and sandbox before it is given", async () => {
    const row = await sandbox({ level: 1 });
    expect(await decide(row, "npm test")).toMatchObject({ verdict: "allow", rule: "bash: npm *", approval: null });
    expect(await decide(row, "rm -rf /")).toMatchObject({ verdict: "deny", rule: "bash: rm -rf *" });
    expect(await decide(row, { kind: "tool", tool: "edit", argument: "a.ts" })).toMatchObject({ verdict: "allow" });
    expect(await records()).toMatchObject([
      { action: "bash", target: "npm test", label: "AUTONOMOUS (whitelisted)", actor: { kind: "agent", name: row.name }, sandbox: row.id },
      {
        action: "bash",
        target: "rm -rf /",
        label: "DENIED",
        rule: "bash: rm -rf *",
        arguments: { hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
      },
      { action: "edit", target: "a.ts", label: "AUTONOMOUS" },
    ]);
    expect(reached).toEqual(["action.recorded", "action.recorded", "action.recorded"]);
  });

  test("AU-04: is none while the trail can't be written, and there again once it can", async () => {
    const row = await sandbox({ level: 1 });
    const other = new DatabaseSync(join(place, "vivarium.db"));
    other.exec("begin immediate");
    const [refused] = await Promise.allSettled([decide(row, "npm test")]);
    other.exec("rollback");
    other.close();
    expect(refused).toMatchObject({ status: "rejected", reason: { code: "audit_unavailable" } });
    expect(reached).toEqual([]);
    expect(await records()).toEqual([]);
    expect(await decide(row, "npm test")).toMatchObject({ verdict: "allow" });
  }, 20_000);

  test("POL-4: is that of yolo 3 where no level was chosen, and of the project's config where that says so", async () => {
    const row = await sandbox();
    expect(await decide(row, "python3 app.py")).toMatchObject({ verdict: "allow" });
    expect(await decide(row, "sudo ls")).toMatchObject({ verdict: "deny" });
    expect((await actions.policy(row)).title).toBe("yolo 3 (all but privileged)");
    config({ policy: { level: 1 } });
    expect(await decide(row, "python3 app.py")).toMatchObject({ verdict: "ask" });
    expect((await actions.policy({ ...row, autonomy: { level: null, yolo: 4, role: "worker" } })).title).toBe("yolo 4 (all inside)");
  });

  test("POL-3: goes by what is written in reality and trusted; what is not trusted only tightens", async () => {
    const row = await sandbox({ level: 1 });
    config({ policy: { bash: { "sudo *": "allow", "npm *": "deny" } } });
    expect([await decide(row, "sudo ls"), await decide(row, "npm test")]).toMatchObject([{ verdict: "deny" }, { verdict: "deny" }]);
  });

  test("POL-3: is a denial while the config can't be read", async () => {
    const row = await sandbox({ yolo: 4 });
    writeFileSync(join(project, "vivarium.json"), "{ not json");
    expect(await decide(row, "ls")).toMatchObject({ verdict: "deny", rule: "vivarium.json" });
    expect(await records()).toMatchObject([{ label: "DENIED" }]);
  });

  test("POL-7: of a reviewer is a denial for everything but looking, at every level", async () => {
    const row = await sandbox({ yolo: 4, role: "reviewer" });
    expect(await decide(row, "ls")).toMatchObject({ verdict: "deny", rule: "role reviewer" });
    expect(await decide(row, { kind: "tool", tool: "write", argument: "a" })).toMatchObject({ verdict: "deny" });
    expect(await decide(row, { kind: "path", path: "a", access: "write" })).toMatchObject({ verdict: "deny" });
    expect(await decide(row, { kind: "tool", tool: "read", argument: "a" })).toMatchObject({ verdict: "allow" });
  });

  test("POL-10: level 1 writes to the folders that the project names, and nowhere else", async () => {
    const row = await sandbox({ level: 1 });
    config({ policy: { edit: { "*": "deny", "src/*": "allow", "docs/*": "allow" } } });
    const paths = ["src/a.ts", "docs/a.md", "a.ts", "src/../a.ts", "/etc/hosts"];
    const edits = await Promise.all(paths.map((argument) => decide(row, { kind: "tool", tool: "edit", argument })));
    expect(edits.map(({ verdict }) => verdict)).toEqual(["allow", "allow", "deny", "deny", "deny"]);
    const lines = await Promise.all(["npm test > src/log", "npm test > log", "npm test | tee log"].map((line) => decide(row, line)));
    expect(lines.map(({ verdict }) => verdict)).toEqual(["allow", "deny", "deny"]);
  });

  test("POL-10: level 3 runs only in a sandbox that ends by itself, and with a budget for its models", async () => {
    expect(await decide(await sandbox({ level: 3 }), "python3 app.py")).toMatchObject({ verdict: "allow" });
    expect(await decide(await sandbox({ level: 3 }, { idleMs: 0 }), "ls")).toMatchObject({ verdict: "deny", rule: "level 3" });
    expect(await decide(await sandbox({ yolo: 3 }, { idleMs: 0 }), "ls")).toMatchObject({ verdict: "allow" });
    const models = { anthropic: { secret: "key" } };
    const spending = (budgets: { sandbox?: number }) =>
      new Actions({ store, audit, approvals, reach: () => undefined, user: { models, budgets } });
    const row = await sandbox({ level: 3 });
    const input = { action: { kind: "command", command: "ls" }, wait: 0 } as const;
    expect(await spending({}).decide(row, input, never)).toMatchObject({ verdict: "deny", rule: "level 3" });
    expect(await spending({ sandbox: 5 }).decide(row, input, never)).toMatchObject({ verdict: "allow" });
  });
});

describe("an action that is asked about", () => {
  test("POL-5: is one question, with the rule that `always` would add, and one record", async () => {
    const row = await sandbox({ level: 2 });
    const first = await decide(row, "git push origin main");
    expect(first).toMatchObject({ verdict: "ask", approval: { state: "waiting", always: "bash: git push origin main" } });
    expect((await decide(row, "git push origin main")).approval?.id).toBe(first.approval?.id);
    expect(await approvals.list(false)).toHaveLength(1);
    expect(await records()).toMatchObject([
      { action: "bash", label: "RECORDED", arguments: { verdict: "ask", approval: first.approval?.id } },
    ]);
  });

  test("POL-5: is let through once after a yes, and only this one of this sandbox", async () => {
    const [row, sibling] = [await sandbox({ level: 2 }), await sandbox({ level: 2 })];
    const { approval } = await decide(row, "git push");
    await approvals.answer(approval?.id ?? "", "once", token());
    expect(await decide(row, "git push --force")).toMatchObject({ verdict: "ask" });
    expect(await decide(sibling, "git push")).toMatchObject({ verdict: "ask" });
    const tries = await Promise.all([decide(row, "git push"), decide(row, "git push"), decide(row, "git push")]);
    expect(tries.map(({ verdict }) => verdict).toSorted()).toEqual(["allow", "ask", "ask"]);
    const used = (await records()).filter(({ action, label }) => action === "bash" && label === "APPROVED");
    expect(used).toMatchObject([{ sandbox: row.id, arguments: { approval: approval?.id } }]);
  });

  test("POL-5: waits as long as it wants to, and hears the answer", async () => {
    const row = await sandbox({ level: 2 });
    const waiting = decide(row, "git push", 30);
    const [asked] = await untilAsked();
    await approvals.answer(asked?.id ?? "", "once", token());
    expect(await waiting).toMatchObject({ verdict: "allow", reason: "A person approved it, this once." });
    expect(await decide(row, "git push", 0.05)).toMatchObject({ verdict: "ask" });
  });

  test("POL-5: an approval is kept for the next try when the agent does not wait any more", async () => {
    const row = await sandbox({ level: 2 });
    const gone = new AbortController();
    const waiting = decide(row, "git push", 30, gone.signal);
    const [asked] = await untilAsked();
    gone.abort();
    await expect(waiting).rejects.toMatchObject({ code: "cancelled" });
    await approvals.answer(asked?.id ?? "", "once", token());
    expect(await decide(row, "git push")).toMatchObject({ verdict: "allow" });
  });

  test("POL-5: stays denied after a no, without another question", async () => {
    const row = await sandbox({ level: 2 });
    const { approval } = await decide(row, "git push");
    await approvals.answer(approval?.id ?? "", "deny", token());
    expect(await decide(row, "git push")).toMatchObject({ verdict: "deny", rule: `answer to ${approval?.id}` });
    expect(await approvals.list(false)).toEqual([]);
  });

  test("POL-5: is denied by silence with a record, and asked anew when it is tried again", async () => {
    const row = await sandbox({ level: 2 });
    const { approval } = await decide(row, "git push");
    await store.change(async (change) => {
      const waiting = await change.approvals.get(approval?.id ?? "");
      if (waiting !== undefined) await change.approvals.put({ ...waiting, deadline: new Date(Date.now() + 1_500).toISOString() });
    });
    expect(await decide(row, "git push", 5)).toMatchObject({ verdict: "deny", rule: `deadline of ${approval?.id}` });
    expect((await records()).filter(({ label }) => label === "DENIED").map(({ action, actor }) => `${actor.kind} ${action}`)).toEqual([
      "server approval",
      "agent bash",
    ]);
    const again = await decide(row, "git push");
    expect([again.verdict, again.approval?.id === approval?.id]).toEqual(["ask", false]);
  });

  test("POL-5: always is a rule of the project from then on, until it is forgotten; a denial stays one", async () => {
    const [row, sibling] = [await sandbox({ level: 2 }), await sandbox({ level: 2 })];
    const other = await sandbox({ level: 2 }, { project: place });
    const { approval } = await decide(row, "git push origin main");
    const id = approval?.id ?? "";
    await approvals.answer(id, "always", token());
    expect(await decide(sibling, "git push origin main")).toMatchObject({ verdict: "allow", rule: "always: bash: git push origin main" });
    expect(await decide(row, "git push origin main")).toMatchObject({ verdict: "allow" });
    expect(await decide(other, "git push origin main")).toMatchObject({ verdict: "ask" });
    expect(await decide({ ...row, autonomy: { level: 2, yolo: null, role: "reviewer" } }, "git push origin main")).toMatchObject({
      verdict: "deny",
    });
    await approvals.forget(id);
    expect(await decide(sibling, "git push origin main")).toMatchObject({ verdict: "ask" });
    await expect(approvals.forget(id)).rejects.toMatchObject({ code: "not_found" });
    expect((await records()).filter(({ action }) => action === "policy.forget")).toMatchObject([{ target: "bash: git push origin main" }]);
  });

  test("AP-13: is never let through by a question that the sandbox worded itself", async () => {
    const row = await sandbox({ level: 2 });
    const own = { sandbox: row.id, sandboxName: row.name, project, rule: null, reason: "harmless", always: null };
    const asked = await approvals.ask({ ...own, kind: "command", target: "git push" });
    await approvals.answer(asked.id, "once", token());
    expect(await decide(row, "git push")).toMatchObject({ verdict: "ask" });
  });

  test("POL-5: is denied when it is too long to be read, or too many questions wait", async () => {
    const row = await sandbox({ level: 2 });
    expect(await decide(row, `git push ${"x".repeat(9000)}`)).toMatchObject({ verdict: "deny", rule: "questions" });
    for (let n = 0; n < 16; n += 1) expect(await decide(row, `git push ${n}`)).toMatchObject({ verdict: "ask" });
    expect(await decide(row, "git push 17")).toMatchObject({ verdict: "deny", rule: "questions" });
    expect(await decide(row, "git push 3")).toMatchObject({ verdict: "ask" });
  });

  test("AU-08: keeps secrets out of records", async () => {
    const row = await sandbox({ level: 2 });
    await decide(row, "curl -H 'Authorization: Bearer abcdef123456' https://api.example.com");
    expect(JSON.stringify(await records())).not.toContain("abcdef123456");
    expect(JSON.stringify(await store.events.list({ after: 0, limit: 100 }))).not.toContain("abcdef123456");
  });
});

async function untilAsked() {
  for (;;) {
    const waiting = await approvals.list(false);
    if (waiting.length > 0) return waiting;
  }
}
