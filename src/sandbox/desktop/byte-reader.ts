/** Reads a stream by lengths. What was not asked for stays in the stream, so that a sender who floods waits. */
import type { Readable } from "node:stream";
import { VivError } from "../../base/schema/errors.ts";

export class ByteReader {
  readonly #stream: Readable;
  #closed: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(stream: Readable) {
    this.#stream = stream;
    const end = (error?: Error): void => {
      this.#closed ??= error ?? new VivError("port_unreachable", "The desktop closed its connection.");
      this.#wake?.();
    };
    stream.on("readable", () => this.#wake?.());
    stream.on("error", end);
    stream.on("end", () => end());
    stream.on("close", () => end());
  }

  /** Whether a byte is there before the signal. */
  async arrives(signal: AbortSignal): Promise<boolean> {
    while (this.#stream.readableLength === 0 && !signal.aborted) {
      // Asks the stream to fetch more.
      this.#stream.read(0);
      if (this.#stream.readableLength === 0) await this.#more(signal);
    }
    return this.#stream.readableLength > 0;
  }

  async take(length: number, signal: AbortSignal): Promise<Buffer> {
    const parts: Buffer[] = [];
    let missing = length;
    while (missing > 0) {
      signal.throwIfAborted();
      const part = this.#stream.read(Math.min(missing, Math.max(this.#stream.readableLength, 1))) as Buffer | null;
      if (part === null) {
        await this.#more(signal);
        continue;
      }
      parts.push(part);
      missing -= part.length;
    }
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  }

  async #more(signal: AbortSignal): Promise<void> {
    if (this.#closed !== undefined) throw this.#closed;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    this.#wake = undefined;
  }
}
