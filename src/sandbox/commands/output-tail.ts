import type { OutputChunk } from "../../machine/drivers/drivers.ts";

/** Chunks held before they become one: a command may write its output byte by byte. */
const MOST_CHUNKS = 1024;

interface StreamTail {
  chunks: Buffer[];
  bytes: number;
}

/** The last bytes of each stream of a command. */
export class OutputTail {
  readonly #most: number;
  readonly #held: Readonly<Record<"stdout" | "stderr", StreamTail>> = {
    stdout: { chunks: [], bytes: 0 },
    stderr: { chunks: [], bytes: 0 },
  };
  #truncated = false;

  constructor(most: number) {
    this.#most = most;
  }

  add(chunk: OutputChunk): void {
    if (chunk.stream === "gap") {
      this.#truncated = true;
      return;
    }
    const held = this.#held[chunk.stream];
    held.chunks.push(chunk.data);
    held.bytes += chunk.data.length;
    this.#dropWhole(held);
    if (held.chunks.length > MOST_CHUNKS) this.#join(held);
  }

  /** What lies wholly before the last bytes goes as it came, without a copy of what stays. */
  #dropWhole(held: StreamTail): void {
    let [first] = held.chunks;
    while (first !== undefined && held.bytes - first.length >= this.#most) {
      held.chunks.shift();
      held.bytes -= first.length;
      this.#truncated ||= first.length > 0;
      [first] = held.chunks;
    }
  }

  /** One chunk of what is wanted, so that neither bytes nor chunks pile up. */
  #join(held: StreamTail): Buffer {
    const all = Buffer.concat(held.chunks);
    if (all.length > this.#most) this.#truncated = true;
    const last = all.subarray(Math.max(0, all.length - this.#most));
    held.chunks = [last];
    held.bytes = last.length;
    return last;
  }

  /** What is held of a stream. */
  bytes(stream: "stdout" | "stderr"): Buffer {
    return this.#join(this.#held[stream]);
  }

  result(): { stdout: string; stderr: string; truncated: boolean } {
    const stdout = this.bytes("stdout").toString("utf8");
    const stderr = this.bytes("stderr").toString("utf8");
    return { stdout, stderr, truncated: this.#truncated };
  }
}
