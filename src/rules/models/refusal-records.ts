/** Refusals that a person has to do something about: each is in the audit trail, and an event of the sandbox once within a minute. */
import type { Audit } from "../audit/audit.ts";
import { errorText, type Logger } from "../../base/host/log.ts";
import type { Store } from "../../base/store/store.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { Refusal, RefusalKind } from "./refusal.ts";

/** With the rule that each follows from. */
const TOLD: Partial<Record<RefusalKind, string>> = {
  budget_used_up: "budgets",
  budget_held: "budgets",
  login_refused: "the provider's answer",
  model_refused: "the provider's answer",
  no_login: "the login of the provider",
};
const AGAIN_MS = 60_000;
/** Sandboxes whose last refusal is known. */
const MOST_LAST = 1_000;

export class RefusalRecords {
  readonly #parts: { readonly audit: Audit; readonly store: Store; readonly log: Logger };
  /** When each was last an event. */
  readonly #events = new Map<string, number>();
  /** What a sandbox was told last. */
  readonly #last = new Map<string, string>();

  constructor(parts: { readonly audit: Audit; readonly store: Store; readonly log: Logger }) {
    this.#parts = parts;
  }

  /** Never fails: the refusal itself must reach the program inside. */
  async add({ id, name }: Pick<SandboxRow, "id" | "name">, provider: string, model: string | undefined, refusal: Refusal): Promise<void> {
    const { kind, message } = refusal;
    const rule = TOLD[kind];
    if (rule === undefined) return;
    this.#last.delete(id);
    this.#last.set(id, message);
    for (const oldest of [...this.#last.keys()].slice(0, -MOST_LAST)) this.#last.delete(oldest);
    this.#parts.audit.note({
      actor: { kind: "agent", name },
      action: "model.request",
      target: model === undefined ? provider : `${provider}/${model}`,
      arguments: {},
      label: "DENIED",
      rule,
      reason: message,
      sandbox: id,
      snapshot: null,
    });
    if (!this.#isDue(`${id} ${provider} ${kind}`)) return;
    try {
      await this.#parts.store.change((change) => change.event("model.refused", id, { provider, refusal: kind, reason: message }));
    } catch (error) {
      this.#parts.log.warn("a refusal of the model gateway is no event", { sandbox: id, error: errorText(error) });
    }
  }

  /** The refusal alone, where a program's words are about it: each program puts other words or its whole JSON around it. */
  plainly(sandbox: string, words: string): string {
    const last = this.#last.get(sandbox);
    if (last === undefined) return words;
    return [last, JSON.stringify(last).slice(1, -1)].some((each) => words.includes(each)) ? last : words;
  }

  /** A program that asks again and again does not fill the log of events. */
  #isDue(key: string): boolean {
    const now = performance.now();
    for (const [other, at] of this.#events) if (now - at >= AGAIN_MS) this.#events.delete(other);
    if (this.#events.has(key)) return false;
    this.#events.set(key, now);
    return true;
  }
}
