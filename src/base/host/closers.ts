/** What the server closes when it stops, the newest first. */
import { errorText, type Logger } from "./log.ts";

export class Closers {
  readonly #log: Logger;
  readonly #closers: (() => unknown)[] = [];

  constructor(log: Logger) {
    this.#log = log;
  }

  add(close: () => unknown): void {
    this.#closers.push(close);
  }

  /** A part that does not close keeps no other from closing. */
  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).toReversed()) {
      try {
        await close();
      } catch (error) {
        this.#log.warn("a part did not stop cleanly", { error: errorText(error) });
      }
    }
  }
}
