/** The row of an experiment that is under way: changed in memory at once, written soon and in order, with its events. */
import { errorText, type Logger } from "../../base/host/log.ts";
import type { EventType, VivEvent } from "../../base/schema/event.ts";
import type { Attempt } from "../../base/schema/experiment.ts";
import { VivError } from "../../base/schema/errors.ts";
import { Patience } from "../../base/host/patience.ts";
import type { Store } from "../../base/store/store.ts";
import type { ExperimentRow } from "../../base/store/rows.ts";

/** How long a change waits for others that are written along with it: attempts tend to come to the same point together. */
const TOGETHER_MS = 5;

interface JournalEvent {
  readonly type: EventType;
  readonly sandbox: string | null;
  readonly data: VivEvent["data"];
}

export class Journal {
  readonly #store: Store;
  readonly #log: Logger;
  #row: ExperimentRow;
  #events: JournalEvent[] = [];
  #isDirty = false;
  #writing: Promise<void> | undefined;
  #closed = false;
  /** Callers that wait until everything is written. */
  #awaited = 0;
  #hurry: (() => void) | undefined;
  readonly #patience: Patience;

  constructor(store: Store, log: Logger, row: ExperimentRow) {
    this.#store = store;
    this.#log = log;
    this.#row = row;
    this.#patience = new Patience(log, { experiment: row.id });
  }

  get row(): ExperimentRow {
    return this.#row;
  }

  attempt(index: number): Attempt {
    const found = this.#row.attempts.find((attempt) => attempt.index === index);
    if (found === undefined) throw new VivError("not_found", `The experiment has no attempt ${index}.`);
    return found;
  }

  /** Changes the experiment; with an event where one is named. */
  change(patch: Partial<ExperimentRow>, event?: EventType): void {
    this.#row = { ...this.#row, ...patch };
    if (event !== undefined)
      this.#events.push({
        type: event,
        sandbox: null,
        data: { experiment: this.#row.id, state: this.#row.state, winner: this.#row.winner, reason: this.#row.reason },
      });
    this.#touch();
  }

  /** Changes an attempt; a new state is an event. */
  changeAttempt(index: number, patch: Partial<Attempt>): void {
    const before = this.attempt(index);
    const now = { ...before, ...patch };
    this.#row = { ...this.#row, attempts: this.#row.attempts.map((attempt) => (attempt === before ? now : attempt)) };
    if (now.state !== before.state)
      this.#events.push({
        type: "experiment.attempt",
        sandbox: now.sandbox,
        data: { experiment: this.#row.id, attempt: index, name: now.name, state: now.state, reason: now.reason },
      });
    this.#touch();
  }

  #touch(): void {
    this.#isDirty = true;
    this.#writing ??= this.#write().finally(() => (this.#writing = undefined));
    this.#writing.catch((error: unknown) =>
      this.#log.warn("experiment not written", { experiment: this.#row.id, error: errorText(error) }),
    );
  }

  async #write(): Promise<void> {
    while (this.#isDirty && !this.#closed) {
      await this.#together();
      if (this.#closed) return;
      const row = this.#row;
      const events = this.#events;
      this.#events = [];
      this.#isDirty = false;
      try {
        await this.#patience.until(() =>
          this.#store.change(async (change) => {
            await change.experiments.put(row);
            for (const { type, sandbox, data } of events) await change.event(type, sandbox, data);
          }),
        );
      } catch (error) {
        this.#isDirty = true;
        this.#events = [...events, ...this.#events];
        throw error;
      }
    }
  }

  async #together(): Promise<void> {
    if (this.#awaited > 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, TOGETHER_MS);
    this.#hurry = resolve;
    await promise;
    clearTimeout(timer);
  }

  /** Resolves when everything is written, however long the disk is full; rejects if it can't be. */
  async written(): Promise<void> {
    if (this.#isDirty && this.#writing === undefined) this.#touch();
    this.#awaited += 1;
    this.#hurry?.();
    try {
      await this.#writing;
    } finally {
      this.#awaited -= 1;
    }
  }

  /** Writes nothing more: what is on disk is what the next server goes on from. */
  close(): void {
    this.#closed = true;
    this.#hurry?.();
    this.#patience.giveUp();
  }
}
