/**
 * The audit trail. Records are collected and written together, so that thousands a second are durable. A caller that must not act
 * without a record waits for it. A caller that only reports does not wait: a report that can't be written is kept and tried again.
 */
import { setImmediate as immediate } from "node:timers/promises";
import type { AuditEntry, AuditRecord, AuditReport } from "../../base/schema/audit.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { AuditFilter, Change, Store } from "../../base/store/store.ts";
import type { Anchor } from "./anchor.ts";
import { cleaned } from "./cleaning.ts";
import { lostEntry } from "./own-entries.ts";
import { DeferredEntries, type DeferredEntry } from "./deferred-entries.ts";
import { RecordChain, type DatedEntry } from "./record-chain.ts";

interface QueuedEntry {
  readonly entry: DatedEntry;
  /** Settled for the caller that waits for the record. */
  readonly done?: PromiseWithResolvers<AuditRecord>;
  /** Called once it is in the write-ahead log, before the sync of the disk begins. */
  readonly written?: (() => void) | undefined;
  /** Called once it is written, or is not and waits for a better time. */
  readonly tried?: () => void;
}

/** What a change of rows comes to, and the record of it; none where nothing was decided. */
export interface AuditedResult<Result> {
  readonly entry?: AuditEntry | undefined;
  readonly result: Result;
}

export interface AuditOptions {
  /** Called at named points; tests kill the process there. */
  readonly reach?: (point: string) => void;
  readonly now?: () => Date;
}

export class Audit {
  readonly #store: Store;
  readonly #trail: RecordChain;
  readonly #onTrouble: (error: unknown, lost: number) => void;
  readonly #now: () => Date;
  readonly #waiting: QueuedEntry[] = [];
  /** Reports that could not be written yet, older than all that wait. */
  readonly #held: QueuedEntry[] = [];
  #writing: Promise<void> | undefined;
  /** Callers whose own record follows in a moment: it is written together with those before it. */
  #following = 0;
  #lost = 0;
  readonly #soon: DeferredEntries;
  /** Set while there are records that no caller waits for and that may not be on the disk yet. */
  #settling: NodeJS.Timeout | undefined;
  #again: NodeJS.Timeout | undefined;

  /** `onTrouble` hears of reports that are lost, with their number, and of a trail that is not what it was. */
  constructor(store: Store, anchor: string, onTrouble: (error: unknown, lost: number) => void, options: AuditOptions = {}) {
    const { reach = () => undefined, now = () => new Date() } = options;
    this.#store = store;
    this.#onTrouble = onTrouble;
    this.#now = now;
    this.#soon = new DeferredEntries(
      { tell: (at, entry) => this.#tell({ ...cleaned(entry), at }), failed: (error) => onTrouble(error, 1) },
      now,
    );
    this.#trail = new RecordChain(store, anchor, { reach, now, onBroken: (error) => onTrouble(error, 0) });
  }

  /**
   * Resolves once the record is durable. If it rejects, the caller must not act. `written` is called once before that: the record is
   * committed, and the sync of the disk, which may hold up the event loop, begins right after it. It is not called where the commit
   * fails. The sync may still fail after it, so it only begins what needs no permission. It must not throw; an error of it is told as
   * trouble, and changes nothing.
   */
  async record(entry: AuditEntry, written?: () => void): Promise<AuditRecord> {
    if (this.#soon.isBusy) await this.#toldBefore();
    if (this.#isFull) {
      this.#begin();
      throw full();
    }
    const done = Promise.withResolvers<AuditRecord>();
    this.#enter({ entry: this.#dated(entry), done, written });
    return done.promise;
  }

  /** A decision and its record in one transaction: neither is there without the other. Resolves once both are durable. */
  async recordWith<Result>(work: (change: Change) => Promise<AuditedResult<Result>>): Promise<Result> {
    if (this.#soon.isBusy) await this.#soon.flush();
    // Records that wait already are written first.
    if (this.#waiting.length > 0) await immediate();
    const { entry, result } = await this.#trail.change(async (change, extend) => {
      const decided = await work(change);
      if (decided.entry !== undefined) await extend([this.#dated(decided.entry)]);
      return decided;
    });
    if (entry !== undefined) await this.#settle();
    return result;
  }

  /** Reports something. The caller does not wait, and nothing is refused if the record can't be written. */
  note(entry: AuditEntry): void {
    if (this.#soon.isBusy) this.noteLater(async () => entry, "at once");
    else this.#tell(this.#dated(entry));
  }

  /** For what is done whether or not it can be recorded, but not before: resolves once a kill leaves it, or it could not be written. */
  async noteFirst(entry: AuditEntry): Promise<void> {
    if (this.#soon.isBusy) await this.#soon.flush();
    if (this.#isFull) return this.#lose(1, full());
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#enter({ entry: this.#dated(entry), tried: resolve });
    await promise;
  }

  /** Entries that were deferred come first, and wait for the caller's own: one transaction takes half the time of two. */
  async #toldBefore(): Promise<void> {
    this.#following += 1;
    try {
      await this.#soon.flush();
    } finally {
      this.#following -= 1;
    }
  }

  #tell(entry: DatedEntry): void {
    if (this.#isFull) this.#lose(1, full());
    else this.#enter({ entry });
  }

  /** For what has to be put together first, when there is time: at once, or together with more of it. Told before what comes after. */
  noteLater(entry: DeferredEntry, when: "at once" | "soon"): void {
    this.#soon.add(entry, when === "at once");
  }

  get #isFull(): boolean {
    return this.#waiting.length + this.#held.length >= LIMITS.waitingAuditRecords;
  }

  #dated(entry: AuditEntry): DatedEntry {
    return { ...cleaned(entry), at: this.#now().toISOString() };
  }

  #enter(waiting: QueuedEntry): void {
    this.#waiting.push(waiting);
    this.#begin();
  }

  #begin(): void {
    if (this.#following === 0) this.#beginAtOnce();
  }

  #beginAtOnce(): void {
    if (this.#waiting.length + this.#held.length > 0) this.#writing ??= this.#write();
  }

  /** The loss is told by the next record that can be written. */
  #lose(records: number, error: unknown): void {
    this.#lost += records;
    this.#onTrouble(error, records);
  }

  async #write(): Promise<void> {
    // Whatever comes in this moment goes along.
    await Promise.resolve();
    for (let well = true; this.#waiting.length > 0 || (well && this.#held.length > 0);) {
      const held = this.#held.splice(0, LIMITS.auditBatch);
      const batch = [...held, ...this.#waiting.splice(0, LIMITS.auditBatch - held.length)];
      const lost = this.#lost;
      try {
        await this.#append(batch, lost);
        this.#lost -= lost;
        well = true;
      } catch (error) {
        this.#failed(batch, error);
        well = false;
      }
    }
    this.#writing = undefined;
  }

  async #append(batch: readonly QueuedEntry[], lost: number): Promise<void> {
    const own = lost === 0 ? [] : [this.#dated(lostEntry(lost))];
    const made = await this.#trail.change((_, extend) => extend([...batch.map(({ entry }) => entry), ...own]));
    for (const { tried } of batch) tried?.();
    for (const { written } of batch) if (written !== undefined) this.#call(written);
    const awaited = batch.some(({ done }) => done !== undefined);
    const trouble = awaited ? await this.#settle().then(never, unavailable) : this.#settleSoon();
    for (const [index, { done }] of batch.entries()) {
      const record = made[index];
      if (trouble !== undefined || record === undefined) done?.reject(trouble);
      else done?.resolve(record);
    }
  }

  /** The batch is committed: an error of a caller must not make it look as if it were not. */
  #call(written: () => void): void {
    try {
      written();
    } catch (error) {
      this.#onTrouble(error, 0);
    }
  }

  #failed(batch: readonly QueuedEntry[], error: unknown): void {
    const reason = unavailable(error);
    for (const { done, tried } of batch) {
      done?.reject(reason);
      tried?.();
    }
    this.#held.unshift(...batch.filter(({ done }) => done === undefined));
    this.#again ??= setTimeout(() => {
      this.#again = undefined;
      this.#begin();
    }, LIMITS.auditRetryMs).unref();
  }

  async #settle(): Promise<void> {
    clearTimeout(this.#settling);
    this.#settling = undefined;
    await this.#trail.settle();
  }

  #settleSoon(): undefined {
    const settle = (): void => void this.#settle().catch((error: unknown) => this.#onTrouble(error, 0));
    this.#settling ??= setTimeout(settle, LIMITS.auditSettleMs).unref();
  }

  /** Waits for what is under way. */
  async #written(): Promise<void> {
    await this.#soon.flush();
    if (this.#waiting.length > 0) this.#beginAtOnce();
    await this.#writing;
  }

  async list(filter: AuditFilter): Promise<AuditRecord[]> {
    await this.#written();
    return this.#store.audit.list(filter);
  }

  /** The place after which records of this time and later stand. Those of a clock that was set back may be among them. */
  async placeBefore(since: string, sandbox?: string): Promise<number> {
    await this.#written();
    let before: number | undefined;
    for (;;) {
      const page = await this.#store.audit.list({ after: 0, limit: LIMITS.auditPage, newest: true, before, sandbox });
      const first = page.findIndex(({ at }) => at >= since);
      if (first !== 0) return page.at(first < 0 ? -1 : first - 1)?.sequence ?? 0;
      if (page.length < LIMITS.auditPage) return 0;
      before = page[0]?.sequence;
    }
  }

  /** Reads the whole chain. `noted` is a record that a person noted elsewhere. */
  async verify(noted?: Anchor): Promise<AuditReport> {
    await this.#written();
    return this.#trail.verify(noted);
  }

  /** Writes what is left, and notes the end. */
  async close(): Promise<void> {
    clearTimeout(this.#again);
    await this.#soon.flush();
    this.#beginAtOnce();
    await this.#writing;
    clearTimeout(this.#again);
    if (this.#held.length > 0) this.#lose(this.#held.splice(0).length, new VivError("audit_unavailable", "The server ends."));
    if (this.#settling !== undefined) await this.#settle();
    this.#trail.close();
  }
}

function never(): undefined {
  return undefined;
}

function full(): VivError {
  return new VivError("audit_unavailable", "Too many records wait to be written.");
}

function unavailable(error: unknown): VivError {
  return new VivError("audit_unavailable", "The audit trail can't be written.", { cause: error });
}
