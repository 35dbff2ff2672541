/**
 * Changes for work that must outlast a full disk or a held database: they are tried again until they are written, the work waits
 * meanwhile, and nothing of it is lost. Anything else that goes wrong is the caller's.
 */
import { setTimeout as delay } from "node:timers/promises";
import { errorText, type Logger } from "./log.ts";
import { VivError } from "../schema/errors.ts";
import { LIMITS } from "../schema/limits.ts";

/** Whether the same may go well later, without anything being different but the machine. */
export function isPassing(error: unknown): boolean {
  return error instanceof VivError && (error.code === "disk_full" || error.code === "store_busy");
}

export class Patience {
  readonly #log: Logger;
  readonly #what: Readonly<Record<string, string>>;
  readonly #end = new AbortController();
  #trouble: unknown;

  constructor(log: Logger, what: Readonly<Record<string, string>>) {
    this.#log = log;
    this.#what = what;
  }

  /** Why nothing can be written now; undefined where things go well. */
  get trouble(): unknown {
    return this.#trouble;
  }

  /** Tries until it is done; rejects with what does not pass, or once this was given up. */
  async until<T>(work: () => Promise<T>): Promise<T> {
    for (let waitMs: number = LIMITS.firstRetryMs; ; waitMs = Math.min(2 * waitMs, LIMITS.mostRetryMs)) {
      try {
        const done = await work();
        if (this.#trouble !== undefined) this.#log.info("writing works again", this.#what);
        this.#trouble = undefined;
        return done;
      } catch (error) {
        if (!isPassing(error) || this.#end.signal.aborted) throw error;
        if (this.#trouble === undefined) this.#log.warn("nothing can be written; trying again", { ...this.#what, error: errorText(error) });
        this.#trouble = error;
      }
      await delay(waitMs, undefined, { signal: this.#end.signal }).catch(() => undefined);
    }
  }

  /** What is tried now is tried once more at most. */
  giveUp(): void {
    this.#end.abort();
  }
}
