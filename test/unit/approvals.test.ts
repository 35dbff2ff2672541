/** POL-5: questions for a person: bound to one action, answered by an approver alone, used once, denied by silence. */
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Approvals, type Question } from "../../src/rules/approvals/approvals.ts";
import { Audit } from "../../src/rules/audit/audit.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import { eventually } from "../support/server.ts";

let place: string;
let store: Store;
let audit: Audit;
let approvals: Approvals;
const never = new AbortController().signal;

async function open(): Promise<void> {
  store = await openSqliteStore(join(place, "vivarium.db"));
  audit = new Audit(store, join(place, "anchor"), () => undefined);
  approvals = new Approvals(store, audit, join(place, "approver-token"));
}
const token = (): string => readFileSync(join(place, "approver-token"), "utf8").trim();
const question = (more: Partial<Question> = {}): Question => ({
  sandbox: "sbx1",
  sandboxName: "try",
  project: "/project",
  kind: "command",
  target: "git push",
  rule: "git push*",
  reason: "git push changes something outside.",
  always: "git push origin main",
  ...more,
});

beforeEach(async () => {
  place = mkdtempSync(join(tmpdir(), "viv-approvals-"));
  await open();
});
afterEach(async () => {
  await store.close();
  rmSync(place, { recursive: true, force: true });
});

describe("an approval", () => {
  test("POL-5: counts for the very action that was asked about, and once", async () => {
    const { id } = await approvals.ask(question());
    await approvals.answer(id, "once", token());
    expect(await approvals.use(question({ target: "git push --force" }))).toBe(false);
    expect(await approvals.use(question({ sandbox: "sbx2" }))).toBe(false);
    expect(await approvals.use(question())).toBe(true);
    expect(await approvals.use(question())).toBe(false);
    expect(await approvals.inspect(id)).toMatchObject({ state: "used", scope: "once" });
  });

  test("POL-5: no answer by the deadline is a denial, and the action can be tried again", async () => {
    const asked = await approvals.ask(question({ deadlineMs: 30 }));
    expect(await approvals.wait(asked.id, never)).toMatchObject({ state: "expired" });
    expect(await approvals.use(question())).toBe(false);
    await expect(approvals.answer(asked.id, "once", token())).rejects.toMatchObject({ code: "illegal_transition" });
    expect((await approvals.ask(question())).id).not.toBe(asked.id);
  });

  test("POL-5: a missing answer is recorded at the deadline, also where no caller waits", async () => {
    await approvals.ask(question({ deadlineMs: 30 }));
    const [silence] = await eventually(
      () => audit.list({ after: 0, limit: 10 }),
      ({ length }) => length === 1,
    );
    expect(silence).toMatchObject({ actor: { kind: "server" }, action: "approval", label: "DENIED", target: "git push" });
  });

  test("POL-5: questions whose deadline passed while the machine slept leave room for others", async () => {
    for (let count = 0; count < LIMITS.waitingQuestions; count += 1) await approvals.ask(question({ target: `push ${count}` }));
    expect(await approvals.tooMany("sbx1", () => false)).toBe(LIMITS.waitingQuestions);
    for (let count = LIMITS.waitingQuestions; count < LIMITS.waitingApprovals; count += 1)
      await approvals.ask(question({ sandbox: "sbx2", target: `push ${count}` }));
    await expect(approvals.ask(question())).rejects.toMatchObject({ code: "no_capacity" });
    const clock = vi.spyOn(Date, "now").mockReturnValue(Date.now() + LIMITS.approvalMs);
    try {
      expect(await approvals.tooMany("sbx1", () => false)).toBeUndefined();
      expect(await approvals.ask(question())).toMatchObject({ state: "waiting" });
    } finally {
      clock.mockRestore();
    }
  });

  test("POL-5: a full queue is cleared of those, too, when another question is asked", async () => {
    for (let count = 0; count < LIMITS.waitingApprovals; count += 1) await approvals.ask(question({ target: `push ${count}` }));
    const clock = vi.spyOn(Date, "now").mockReturnValue(Date.now() + LIMITS.approvalMs);
    try {
      expect(await approvals.ask(question())).toMatchObject({ state: "waiting" });
    } finally {
      clock.mockRestore();
    }
  });

  test("POL-5: silence is recorded, too, where the clock is behind the timer", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    try {
      const { deadline } = await approvals.ask(question({ deadlineMs: 20 }));
      // The timer has come and found that it is not time yet.
      await new Promise((resolve) => setTimeout(resolve, 60));
      expect(await audit.list({ after: 0, limit: 10 })).toEqual([]);
      vi.setSystemTime(Date.parse(deadline) + 1);
      expect(
        await eventually(
          () => audit.list({ after: 0, limit: 10 }),
          ({ length }) => length === 1,
        ),
      ).toMatchObject([{ label: "DENIED" }]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("POL-5: a caller that waits gets the answer at once, also of a question put twice", async () => {
    const first = await approvals.ask(question());
    expect((await approvals.ask(question())).id).toBe(first.id);
    const waiting = [approvals.wait(first.id, never), approvals.wait(first.id, never)];
    await approvals.answer(first.id, "deny", token());
    expect((await Promise.all(waiting)).map(({ state }) => state)).toEqual(["denied", "denied"]);
  });

  test("AP-13: only the approver's token answers, which is a file that others can't read", async () => {
    const { id } = await approvals.ask(question());
    for (const wrong of ["", "x", `${token()}x`])
      await expect(approvals.answer(id, "once", wrong)).rejects.toMatchObject({ code: "unauthorized" });
    expect(statSync(join(place, "approver-token")).mode & 0o777).toBe(0o600);
    expect((await approvals.inspect(id)).state).toBe("waiting");
    const refused = (await audit.list({ after: 0, limit: 10 })).filter(({ action }) => action === "approver.refused");
    expect(refused.map(({ label }) => label)).toEqual(["DENIED", "DENIED", "DENIED"]);
  });

  test("POL-5: always adds the rule that was shown, and only where there is one", async () => {
    const { id } = await approvals.ask(question());
    await approvals.answer(id, "always", token());
    expect((await approvals.rules("/project")).map(({ always }) => always)).toEqual(["git push origin main"]);
    expect(await approvals.rules("/other")).toEqual([]);
    const wide = await approvals.ask(question({ target: "curl x | sh", always: null }));
    await expect(approvals.answer(wide.id, "always", token())).rejects.toMatchObject({ code: "invalid_input" });
  });

  test("POL-5: questions and answers outlive the server, and every answer has one record", async () => {
    const { id } = await approvals.ask(question());
    const other = await approvals.ask(question({ target: "rm -rf build" }));
    await approvals.answer(id, "once", token());
    await store.close();
    await open();
    expect((await approvals.list(false)).map((one) => one.id)).toEqual([other.id]);
    await approvals.answer(other.id, "deny", token());
    expect(await approvals.use(question())).toBe(true);
    const records = await audit.list({ after: 0, limit: 10 });
    expect(records.map(({ label, target }) => `${label} ${target}`)).toEqual(["APPROVED git push", "DENIED rm -rf build"]);
  });
});
