/** Work that is done again and again, with a rest between, until it is closed. */
import { setTimeout as rest } from "node:timers/promises";
import { errorText, type Logger } from "./log.ts";

export class RepeatedTasks {
  readonly #log: Logger;
  readonly #stopping = new AbortController();
  readonly #ended: Promise<void>[] = [];

  constructor(log: Logger) {
    this.#log = log;
  }

  every(what: string, restMs: number | (() => number), work: () => Promise<unknown>): void {
    const { signal } = this.#stopping;
    const again = async (): Promise<void> => {
      while (!signal.aborted) {
        await rest(typeof restMs === "number" ? restMs : restMs(), undefined, { signal });
        await work().catch((error: unknown) => this.#log.warn(`${what} failed`, { error: errorText(error) }));
      }
    };
    this.#ended.push(
      again().catch((error: unknown) => {
        if (!signal.aborted) throw error;
      }),
    );
  }

  /** Waits for what is under way. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#ended);
  }
}
