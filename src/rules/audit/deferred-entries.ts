/** Audit entries that are made a moment later, several together, so that a frequent operation does not wait for its entry. */
import type { AuditEntry } from "../../base/schema/audit.ts";
import { LIMITS } from "../../base/schema/limits.ts";

/** Makes the entry when the server has time for it; undefined where there is nothing to record. */
export type DeferredEntry = () => Promise<AuditEntry | undefined>;

interface Listener {
  readonly tell: (at: string, entry: AuditEntry) => void;
  readonly failed: (error: unknown) => void;
}

export class DeferredEntries {
  readonly #listener: Listener;
  readonly #now: () => Date;
  #waiting: { readonly at: string; readonly entry: DeferredEntry }[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** When the oldest that waits came, in monotonic time. */
  #since = 0;
  #telling: Promise<void> | undefined;

  constructor(listener: Listener, now: () => Date) {
    this.#listener = listener;
    this.#now = now;
  }

  /** `atOnce` is when whatever is under way now has gone first. */
  add(entry: DeferredEntry, atOnce: boolean): void {
    this.#waiting.push({ at: this.#now().toISOString(), entry });
    if (atOnce) setImmediate(() => void this.flush());
    else this.#wait();
  }

  /** For a pause, so that several come together; and not for one that does not come. */
  #wait(): void {
    if (this.#timer === undefined) {
      this.#since = performance.now();
      this.#timer = setTimeout(() => void this.flush(), LIMITS.auditPauseMs);
    } else if (performance.now() - this.#since < LIMITS.auditSoonMs) this.#timer.refresh();
  }

  /** Whether something is not told yet: what comes after it is told after it. */
  get isBusy(): boolean {
    return this.#waiting.length > 0 || this.#telling !== undefined;
  }

  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const [waiting, before] = [this.#waiting, this.#telling];
    this.#waiting = [];
    const telling = this.#together(waiting, before);
    this.#telling = telling;
    await telling;
    if (this.#telling === telling) this.#telling = undefined;
  }

  async #together(
    waiting: readonly { readonly at: string; readonly entry: DeferredEntry }[],
    before: Promise<void> | undefined,
  ): Promise<void> {
    const entries = await Promise.allSettled(waiting.map(({ entry }) => entry()));
    await before;
    for (const [index, entry] of entries.entries()) {
      const at = waiting[index]?.at;
      if (entry.status === "rejected") this.#listener.failed(entry.reason);
      else if (entry.value !== undefined && at !== undefined) this.#listener.tell(at, entry.value);
    }
  }
}
