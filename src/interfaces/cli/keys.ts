/** Single keys of a terminal, as they are pressed. */
import type { ReadStream } from "node:tty";

const INTERRUPT = "\u0003";

export class Keys {
  readonly #terminal: ReadStream;
  readonly #onQuit: () => void;
  #waiting: ((key: string) => void) | undefined;

  /** `q` and ctrl-C quit at any time. */
  constructor(terminal: ReadStream, onQuit: () => void) {
    this.#terminal = terminal;
    this.#onQuit = onQuit;
    terminal.setRawMode(true);
    terminal.setEncoding("utf8");
    terminal.on("data", this.#hear);
  }

  /** The next key that is pressed from now on: nothing typed ahead counts. Undefined after the signal. */
  async next(signal: AbortSignal): Promise<string | undefined> {
    if (signal.aborted) return undefined;
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    const abort = (): void => resolve(undefined);
    this.#waiting = resolve;
    signal.addEventListener("abort", abort, { once: true });
    try {
      return await promise;
    } finally {
      this.#waiting = undefined;
      signal.removeEventListener("abort", abort);
    }
  }

  end(): void {
    this.#terminal.off("data", this.#hear);
    this.#terminal.setRawMode(false);
    this.#terminal.pause();
  }

  readonly #hear = (typed: string): void => {
    const key = typed.at(0)?.toLowerCase();
    if (key === "q" || key === INTERRUPT) this.#onQuit();
    else if (key !== undefined) this.#waiting?.(key);
  };
}
