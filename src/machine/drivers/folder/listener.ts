/** One who hears a command: chunks wait here until they are taken. */
import type { OutputChunk } from "../drivers.ts";

/** Output that waits before a command is held, or before a listener that may not hold it misses some. */
const WAITING_MAX_BYTES = 256 * 1024;

export class Listener {
  /** Bytes of output before what is heard here. */
  readonly offset: number;
  #holds: boolean;
  readonly #relieved: () => void;
  readonly #waiting: OutputChunk[] = [];
  #waitingBytes = 0;
  #missed = 0;
  #wake: (() => void) | undefined;
  #over = false;

  /** `holds`: the command waits while this one does not read; otherwise it misses output and hears of a gap. */
  constructor(offset: number, holds: boolean, relieved: () => void) {
    this.offset = offset;
    this.#holds = holds;
    this.#relieved = relieved;
  }

  /** Whether the command must wait. */
  get full(): boolean {
    return this.#holds && !this.#over && this.#waitingBytes > WAITING_MAX_BYTES;
  }

  hear(chunk: Extract<OutputChunk, { data: Buffer }>): void {
    if (this.#over) return;
    if (!this.#holds && this.#waitingBytes > WAITING_MAX_BYTES) this.#missed += chunk.data.length;
    else {
      this.#tellGap();
      this.#waiting.push(chunk);
      this.#waitingBytes += chunk.data.length;
    }
    this.#wake?.();
  }

  /** From now on it misses output instead of holding the command. */
  release(): void {
    this.#holds = false;
    this.#relieved();
  }

  /** Nothing more comes; what waits can still be taken. */
  end(): void {
    this.#tellGap();
    this.#over = true;
    this.#wake?.();
  }

  /** The caller does not listen any more. */
  leave(): void {
    this.#waiting.length = 0;
    this.#waitingBytes = 0;
    this.end();
    this.#relieved();
  }

  async *chunks(): AsyncGenerator<OutputChunk, void, void> {
    for (;;) {
      const chunk = this.#waiting.shift();
      if (chunk !== undefined) {
        this.#waitingBytes -= chunk.stream === "gap" ? 0 : chunk.data.length;
        this.#relieved();
        yield chunk;
        continue;
      }
      if (this.#over) return;
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = undefined;
    }
  }

  #tellGap(): void {
    if (this.#missed === 0) return;
    this.#waiting.push({ stream: "gap", bytes: this.#missed });
    this.#missed = 0;
  }
}
