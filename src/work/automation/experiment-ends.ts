/** Waits for experiments to end, by their events. */
import { setTimeout as rest } from "node:timers/promises";
import { VivError } from "../../base/schema/errors.ts";
import type { VivEvent } from "../../base/schema/event.ts";
import type { ExperimentRow } from "../../base/store/rows.ts";
import type { Store } from "../../base/store/store.ts";
import type { Experiments } from "../experiments/experiments.ts";

/** An event may be missed where the store was brought back; then this finds the end. */
const LOOK_AGAIN_MS = 10_000;
const REST_MS = 20;
const ENDED = new Set(["done", "failed", "cancelled"]);

/** An id in the data of an event. */
export function idIn(value: VivEvent["data"][string] | undefined): string {
  return typeof value === "string" ? value : "";
}

export function isFinal(state: ExperimentRow["state"]): boolean {
  return ENDED.has(state);
}

export class ExperimentEnds {
  readonly #experiments: Experiments;
  readonly #waiting = new Map<string, () => void>();
  readonly #leave: () => void;

  constructor(store: Store, experiments: Experiments) {
    this.#experiments = experiments;
    this.#leave = store.onEvents((events) => this.#hear(events));
  }

  #hear(events: readonly VivEvent[]): void {
    for (const { type, data } of events) if (type === "experiment.ended") this.#waiting.get(idIn(data["experiment"]))?.();
  }

  /** The row once it has ended, or waits for a choice. */
  async of(id: string, signal: AbortSignal): Promise<ExperimentRow> {
    for (;;) {
      const heard = Promise.withResolvers<void>();
      this.#waiting.set(id, heard.resolve);
      const look = new AbortController();
      try {
        const row = await this.#experiments.row(id);
        if (isFinal(row.state) || row.state === "choosing") return row;
        const again = rest(LOOK_AGAIN_MS, undefined, { signal: AbortSignal.any([signal, look.signal]) });
        await Promise.race([heard.promise, again]);
      } finally {
        this.#waiting.delete(id);
        look.abort();
      }
      if (signal.aborted) throw new VivError("cancelled", "The server stops; the firing goes on.");
    }
  }

  /** Does something with an experiment as soon as no part of the server works on it. */
  async resting(id: string, signal: AbortSignal, work: () => Promise<unknown>): Promise<void> {
    for (;;) {
      try {
        await work();
        return;
      } catch (error) {
        if (!(error instanceof VivError) || error.code !== "busy") throw error;
      }
      await rest(REST_MS, undefined, { signal });
      // A pick that was cut short by a crash may have been written.
      if (isFinal((await this.#experiments.row(id)).state)) return;
    }
  }

  close(): void {
    this.#leave();
  }
}
