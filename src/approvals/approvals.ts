/** The queue of questions for a person. Kept over restarts; silence is a denial, and what was asked can be asked again. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import type { Audit } from "../audit/audit.ts";
import type { Approval } from "../schema/approval.ts";
import { VivError } from "../schema/errors.ts";
import { newId } from "../schema/ids.ts";
import { LIMITS } from "../schema/limits.ts";
import type { Store } from "../store/store.ts";

/** What is asked about, exactly. */
export interface Question {
  readonly sandbox: string | null;
  readonly sandboxName: string | null;
  readonly project: string;
  readonly kind: Approval["kind"];
  readonly target: string;
  readonly rule: string | null;
  readonly reason: string;
  readonly always: string | null;
  readonly deadlineMs?: number;
}

type Ended = Exclude<Approval["state"], "waiting">;

export class Approvals {
  readonly #store: Store;
  readonly #audit: Audit;
  readonly #token: string;
  readonly #listeners = new Map<string, Set<(approval: Approval) => void>>();

  /** `tokenFile` holds the approver's token; it is made if it is not there. */
  constructor(store: Store, audit: Audit, tokenFile: string) {
    this.#store = store;
    this.#audit = audit;
    this.#token = readToken(tokenFile);
  }

  /** The question as it stands: the same one is not put twice. */
  async ask(question: Question): Promise<Approval> {
    const hash = hashOf(question);
    const now = Date.now();
    const { deadlineMs = LIMITS.approvalMs, ...rest } = question;
    return this.#store.change(async (change) => {
      const same = (await change.approvals({ hash })).find((one) => ["waiting", "approved"].includes(one.state) && !isOver(one, now));
      if (same !== undefined) return same;
      if ((await change.approvals({ state: "waiting" })).length >= LIMITS.waitingApprovals)
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
      await change.putApproval(approval);
      await change.event("approval.asked", question.sandbox, { approval: approval.id, kind: approval.kind, target: approval.target });
      return approval;
    });
  }

  /** Waits for the answer, or for the deadline. */
  async wait(id: string, signal: AbortSignal): Promise<Approval> {
    const asked = await this.inspect(id);
    if (asked.state !== "waiting") return asked;
    const { promise, resolve } = Promise.withResolvers<void>();
    const listeners = this.#listeners.get(id) ?? new Set();
    const heard = (): void => resolve();
    this.#listeners.set(id, listeners.add(heard));
    const timer = setTimeout(resolve, Math.max(0, Date.parse(asked.deadline) - Date.now()));
    signal.addEventListener("abort", heard, { once: true });
    try {
      // An answer may have come while this began to listen.
      if ((await this.inspect(id)).state === "waiting") await promise;
      return await this.inspect(id);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", heard);
      listeners.delete(heard);
      if (listeners.size === 0) this.#listeners.delete(id);
    }
  }

  /** A person's answer. The record comes first: an approval that nobody can find again is none. */
  async answer(id: string, answer: "once" | "always" | "deny", approver: string): Promise<Approval> {
    this.#requireApprover(approver);
    const asked = await this.inspect(id);
    if (asked.state !== "waiting")
      throw new VivError("illegal_transition", `${id} is ${asked.state} already.`, { remedy: "Ask again: the action can be tried anew." });
    if (answer === "always" && asked.always === null)
      throw new VivError("invalid_input", "There is no rule narrow enough to allow this always.", { remedy: "Answer it once." });
    await this.#audit.record({
      actor: { kind: "person", name: "approver" },
      action: "approval",
      target: asked.target,
      arguments: { approval: id, kind: asked.kind, hash: asked.hash, answer, rule: answer === "always" ? asked.always : null },
      label: answer === "deny" ? "DENIED" : "APPROVED",
      rule: asked.rule,
      reason: asked.reason,
      sandbox: asked.sandbox,
      snapshot: null,
    });
    const scope = answer === "deny" ? null : answer;
    return this.#end(id, answer === "deny" ? "denied" : "approved", { answeredBy: "approver", scope });
  }

  /** Whether this very action was approved: then it may be done, once. */
  async use(question: Question): Promise<boolean> {
    const hash = hashOf(question);
    return this.#store.change(async (change) => {
      const found = (await change.approvals({ hash, state: "approved" })).find((one) => !isOver(one, Date.now()));
      if (found === undefined) return false;
      await change.putApproval({ ...found, state: "used" });
      return true;
    });
  }

  /** Rules that people added by answering `always`, for a project. */
  async rules(project: string): Promise<string[]> {
    const all = await this.#store.approvals({ scope: "always" });
    return [...new Set(all.flatMap((one) => (one.project === project && one.always !== null ? [one.always] : [])))];
  }

  async list(all: boolean): Promise<Approval[]> {
    await this.#expire();
    return this.#store.approvals(all ? {} : { state: "waiting" });
  }

  async inspect(id: string): Promise<Approval> {
    const found = await this.#store.approval(id);
    if (found === undefined) throw new VivError("not_found", `There is no question ${id}.`, { remedy: "Look at `viv approvals`." });
    return found.state === "waiting" && isOver(found, Date.now()) ? this.#end(id, "expired", {}) : found;
  }

  async #expire(): Promise<void> {
    for (const one of await this.#store.approvals({ state: "waiting" }))
      if (isOver(one, Date.now())) await this.#end(one.id, "expired", {});
  }

  async #end(id: string, state: Ended, more: Partial<Approval>): Promise<Approval> {
    const ended = await this.#store.change(async (change) => {
      const now = await change.approval(id);
      if (now === undefined || now.state !== "waiting") throw new VivError("illegal_transition", `${id} was answered meanwhile.`);
      const next: Approval = { ...now, ...more, state, answeredAt: new Date().toISOString() };
      await change.putApproval(next);
      await change.event("approval.answered", now.sandbox, { approval: id, state, scope: next.scope });
      return next;
    });
    for (const heard of this.#listeners.get(id) ?? []) heard(ended);
    return ended;
  }

  #requireApprover(given: string): void {
    const [one, other] = [createHash("sha256").update(given).digest(), createHash("sha256").update(this.#token).digest()];
    if (!timingSafeEqual(one, other))
      throw new VivError("unauthorized", "Only an approver may answer.", { remedy: "Run `viv approve` on a terminal." });
  }
}

/** The exact action of the exact asker. */
function hashOf({ sandbox, project, kind, target }: Question): string {
  return createHash("sha256")
    .update(JSON.stringify([sandbox, project, kind, target]))
    .digest("hex");
}

function isOver({ deadline }: Approval, now: number): boolean {
  return Date.parse(deadline) <= now;
}

function readToken(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    const token = randomBytes(32).toString("hex");
    writeFileSync(file, `${token}\n`, { mode: 0o600, flag: "wx" });
    chmodSync(file, 0o600);
    return token;
  }
}
