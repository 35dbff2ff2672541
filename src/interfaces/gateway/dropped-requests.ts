/** Counts requests that the gateway refused because there were too many, and records the count. */
import type { Audit } from "../../rules/audit/audit.ts";
import { LIMITS } from "../../base/schema/limits.ts";

interface Count {
  readonly since: string;
  readonly kinds: Map<string, number>;
  readonly timer: NodeJS.Timeout;
}

export class DroppedRequests {
  readonly #audit: Audit;
  readonly #counts = new Map<string, Count>();

  constructor(audit: Audit) {
    this.#audit = audit;
  }

  count(sandbox: string, kind: string): void {
    let count = this.#counts.get(sandbox);
    if (count === undefined) {
      const timer = setTimeout(() => this.record(sandbox), LIMITS.droppedEveryMs).unref();
      this.#counts.set(sandbox, (count = { since: new Date().toISOString(), kinds: new Map(), timer }));
    }
    count.kinds.set(kind, (count.kinds.get(kind) ?? 0) + 1);
  }

  record(sandbox: string): void {
    const count = this.#counts.get(sandbox);
    if (count === undefined) return;
    this.#counts.delete(sandbox);
    clearTimeout(count.timer);
    this.#audit.note({
      actor: { kind: "server", name: "gateway" },
      action: "gateway.dropped",
      target: sandbox,
      arguments: { dropped: Object.fromEntries(count.kinds), since: count.since },
      label: "DENIED",
      rule: "rate limit",
      reason: "More requests than a sandbox may send.",
      sandbox,
      snapshot: null,
    });
  }

  close(): void {
    for (const sandbox of this.#counts.keys()) this.record(sandbox);
  }
}
