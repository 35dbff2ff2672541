/** The queue of questions for a person. It is kept over restarts. A question without an answer is denied, and can be asked again. */
import { createHash } from "node:crypto";
import type { Audit } from "../audit/audit.ts";
import type { Approval } from "../../base/schema/approval.ts";
import type { AuditEntry } from "../../base/schema/audit.ts";
import { VivError } from "../../base/schema/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { PolicyAction } from "../../base/schema/policy.ts";
import { redact } from "../../base/schema/secret-patterns.ts";
import type { Change, Store } from "../../base/store/store.ts";
import { Approver } from "./approver.ts";

/** What is asked about, exactly. */
export interface Question {
  readonly sandbox: string | null;
  readonly sandboxName: string | null;
  readonly project: string;
  readonly kind: Approval["kind"];
  readonly target: string;
  /** What an answer counts for, where the target is only how it is shown. */
  readonly exact?: string;
  readonly rule: string | null;
  readonly reason: string;
  readonly always: string | null;
  readonly action?: PolicyAction;
  readonly deadlineMs?: number;
}

export interface SandboxQuestion extends Question {
  readonly sandbox: string;
}

type FinalState = Exclude<Approval["state"], "waiting">;
/** The fields of an answer's record that the question does not hold. */
type AnswerFields = Pick<AuditEntry, "actor" | "label" | "reason"> & Partial<AuditEntry>;

const SHOWN_IN_EVENTS = 1_024;
const LOOK_AGAIN_MS = 60_000;

export class Approvals {
  readonly #store: Store;
  readonly #audit: Audit;
  readonly #approver: Approver;
  readonly #reach: (point: string) => void;
  /** Questions whose deadline is looked after. */
  readonly #timed = new Set<string>();
  readonly #listeners = new Map<string, Set<(approval: Approval) => void>>();

  /** `tokenFile` holds the approver's token; it is made if it is not there. `isPerson` knows what browsers send whose person may answer. */
  constructor(
    store: Store,
    audit: Audit,
    tokenFile: string,
    reach: (point: string) => void = () => undefined,
    isPerson: (given: string) => boolean = () => false,
  ) {
    this.#store = store;
    this.#audit = audit;
    this.#approver = new Approver(tokenFile, isPerson);
    this.#reach = reach;
  }

  /** Throws unless it is the approver's token. */
  requireApprover(given: string): void {
    try {
      this.#approver.require(given);
    } catch (error) {
      this.#audit.note({
        actor: { kind: "person", name: "unknown" },
        action: "approver.refused",
        target: "the approver's token",
        arguments: {},
        label: "DENIED",
        rule: "approver token",
        reason: "A caller without the approver's token tried to answer a question or to change what agents may do.",
        sandbox: null,
        snapshot: null,
      });
      throw error;
    }
  }

  /** The question as it stands: the same one is not put twice. `record` is written with a new one. */
  async ask(question: Question, record?: (approval: Approval) => AuditEntry): Promise<Approval> {
    const hash = hashOf(question);
    const now = Date.now();
    const { deadlineMs = LIMITS.approvalMs, exact: _, ...rest } = question;
    if ((await this.#store.approvals.count({ state: "waiting" })) >= LIMITS.waitingApprovals) await this.#expire();
    const asked = await this.#audit.recordWith(async (change) => {
      const same = (await change.approvals.list({ hash })).find((one) => ["waiting", "approved"].includes(one.state) && !isOver(one, now));
      if (same !== undefined) return { result: same };
      if ((await change.approvals.count({ state: "waiting" })) >= LIMITS.waitingApprovals)
        throw new VivError("no_capacity", "Too many questions wait for an answer.", { remedy: "Answer some with `viv approvals`." });
      const approval: Approval = {
        ...rest,
        id: newId("approval"),
        state: "waiting",
        hash,
        askedAt: new Date(now).toISOString(),
        deadline: new Date(now + deadlineMs).toISOString(),
        answeredAt: null,
        answeredBy: null,
        scope: null,
      };
      await change.approvals.put(approval);
      const target = redact(approval.target).slice(0, SHOWN_IN_EVENTS);
      await change.event("approval.asked", question.sandbox, { approval: approval.id, kind: approval.kind, target });
      return { entry: record?.(approval), result: approval };
    });
    this.#reach("approval.asked");
    this.#expireInTime(asked);
    return asked;
  }

  /** Waits for the answer, or for the deadline. */
  async wait(id: string, signal: AbortSignal): Promise<Approval> {
    let wake = (): void => undefined;
    const heard = (): void => wake();
    const listeners = this.#listeners.get(id) ?? new Set();
    this.#listeners.set(id, listeners.add(heard));
    signal.addEventListener("abort", heard, { once: true });
    try {
      for (;;) {
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        // Listening already: what is answered from here on is heard.
        const now = await this.inspect(id);
        if (now.state !== "waiting" || signal.aborted) return now;
        const timer = setTimeout(resolve, restOf(now));
        await promise.finally(() => clearTimeout(timer));
      }
    } finally {
      signal.removeEventListener("abort", heard);
      listeners.delete(heard);
      if (listeners.size === 0) this.#listeners.delete(id);
    }
  }

  /** A person's answer. The approval and its audit record are written together or not at all. */
  async answer(id: string, answer: "once" | "always" | "deny", approver: string): Promise<Approval> {
    this.requireApprover(approver);
    const asked = await this.inspect(id);
    if (asked.state !== "waiting")
      throw new VivError("illegal_transition", `${id} is ${asked.state} already.`, { remedy: "Ask again: the action can be tried anew." });
    if (answer === "always" && asked.always === null)
      throw new VivError("invalid_input", "There is no rule narrow enough to allow this always.", { remedy: "Answer it once." });
    const scope = answer === "deny" ? null : answer;
    return this.#end(
      id,
      answer === "deny" ? "denied" : "approved",
      { answeredBy: "approver", scope },
      {
        actor: { kind: "person", name: "approver" },
        arguments: { approval: id, kind: asked.kind, hash: asked.hash, answer, rule: answer === "always" ? asked.always : null },
        label: answer === "deny" ? "DENIED" : "APPROVED",
        reason: asked.reason,
      },
    );
  }

  /** Whether this very action was approved: then it may be done, once. `record` is written with its use. */
  async use(question: Question, record?: (approval: Approval) => AuditEntry): Promise<boolean> {
    const hash = hashOf(question);
    const used = await this.#audit.recordWith(async (change) => {
      const found = (await change.approvals.list({ hash, state: "approved" })).find((one) => !isOver(one, Date.now()));
      if (found === undefined) return { result: false };
      await change.approvals.put({ ...found, state: "used" });
      return { entry: record?.(found), result: true };
    });
    if (used) this.#reach("approval.used");
    return used;
  }

  /** The denial of this very action; it holds as long as the question would have. */
  async denial(question: Question): Promise<Approval | undefined> {
    const denied = await this.#store.approvals.list({ hash: hashOf(question), state: "denied" });
    return denied.find((one) => !isOver(one, Date.now()));
  }

  /** Questions by which people added a rule with `always`. */
  async rules(project?: string): Promise<Approval[]> {
    const all = await this.#store.approvals.list({ scope: "always" });
    return all.filter((one) => one.forgottenAt === undefined && (project === undefined || one.project === project));
  }

  /** From now on it is asked again. */
  async forget(id: string): Promise<void> {
    await this.#audit.recordWith(async (change) => {
      const rule = await change.approvals.get(id);
      if (rule === undefined || rule.scope !== "always" || rule.forgottenAt !== undefined)
        throw new VivError("not_found", `There is no rule ${id}.`, { remedy: "Look at `viv policy rules`." });
      // Nothing of it is left to be used once, either.
      await change.approvals.put({ ...rule, state: "used", forgottenAt: new Date().toISOString() });
      await change.event("policy.changed", rule.sandbox, { forgotten: id });
      const { always, hash, project } = rule;
      const entry = { ...entryOf(rule), action: "policy.forget", target: always ?? "", arguments: { rule: id, hash, project } };
      return { entry: { ...entry, actor: { kind: "person" as const, name: "local" }, label: "RECORDED" as const }, result: undefined };
    });
    this.#reach("rule.forgotten");
  }

  async list(all: boolean): Promise<Approval[]> {
    await this.#expire();
    return this.#store.approvals.list(all ? {} : { state: "waiting" });
  }

  /** How many questions of a sandbox wait, where that is too many for another; one that waits already (`isSame`) may be asked again. */
  async tooMany(sandbox: string, isSame: (waiting: Approval) => boolean): Promise<number | undefined> {
    const where = { sandbox, state: "waiting" } as const;
    if ((await this.#store.approvals.count(where)) < LIMITS.waitingQuestions) return undefined;
    // After a suspend of the machine, deadlines have passed that no timer has seen yet.
    await this.#expire();
    const waiting = await this.#store.approvals.list(where);
    return waiting.length < LIMITS.waitingQuestions || waiting.some(isSame) ? undefined : waiting.length;
  }

  async inspect(id: string): Promise<Approval> {
    const found = await this.#store.approvals.get(id);
    if (found === undefined) throw new VivError("not_found", `There is no question ${id}.`, { remedy: "Look at `viv approvals`." });
    return found.state === "waiting" && isOver(found, Date.now()) ? this.#lapse(id) : found;
  }

  /** Goes on with questions that were put before the server ended. */
  async resume(): Promise<void> {
    for (const one of await this.list(false)) this.#expireInTime(one);
  }

  /** The server records that a deadline has passed, also where no caller waits for the answer. */
  #expireInTime(asked: Approval): void {
    const { id, state } = asked;
    if (state !== "waiting" || this.#timed.has(id)) return;
    this.#timed.add(id);
    const expire = async (): Promise<void> => {
      this.#timed.delete(id);
      // Where that fails, the next call that reads the question does it.
      const now = await this.inspect(id).catch(() => undefined);
      if (now !== undefined) this.#expireInTime(now);
    };
    setTimeout(() => void expire(), restOf(asked)).unref();
  }

  async #expire(): Promise<void> {
    for (const one of await this.#store.approvals.list({ state: "waiting" })) if (isOver(one, Date.now())) await this.#lapse(one.id);
  }

  async #lapse(id: string): Promise<Approval> {
    const actor = { kind: "server", name: "approvals" } as const;
    try {
      return await this.#end(id, "expired", {}, { actor, label: "DENIED", reason: "No person answered by the deadline." });
    } catch (error) {
      // Another call ended the question in the same moment.
      const now = await this.#store.approvals.get(id);
      if (now === undefined || now.state === "waiting") throw error;
      return now;
    }
  }

  async #end(id: string, state: FinalState, more: Partial<Approval>, record: AnswerFields): Promise<Approval> {
    const ended = await this.#audit.recordWith(async (change: Change) => {
      const now = await change.approvals.get(id);
      if (now === undefined || now.state !== "waiting") throw new VivError("illegal_transition", `${id} was answered meanwhile.`);
      const next: Approval = { ...now, ...more, state, answeredAt: new Date().toISOString() };
      await change.approvals.put(next);
      await change.event("approval.answered", now.sandbox, { approval: id, state, scope: next.scope });
      return { entry: { ...entryOf(now), ...record }, result: next };
    });
    this.#reach("approval.answered");
    for (const heard of this.#listeners.get(id) ?? []) heard(ended);
    return ended;
  }
}

function entryOf({ id, kind, hash, target, rule, sandbox }: Approval): Omit<AuditEntry, "actor" | "label"> {
  return { action: "approval", target, arguments: { approval: id, kind, hash }, rule, reason: null, sandbox, snapshot: null };
}

/** The exact action of the exact asker. */
function hashOf({ sandbox, project, kind, target, exact }: Question): string {
  return createHash("sha256")
    .update(JSON.stringify(exact === undefined ? [sandbox, project, kind, target] : [sandbox, project, "exactly", exact]))
    .digest("hex");
}

/** Until it is looked at again: timers may come before the clock's time, and clocks are set. */
function restOf({ deadline }: Approval): number {
  return Math.min(LOOK_AGAIN_MS, Math.max(1, Date.parse(deadline) - Date.now()));
}

function isOver({ deadline }: Approval, now: number): boolean {
  return Date.parse(deadline) <= now;
}
