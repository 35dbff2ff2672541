import type { OutputChunk } from "../drivers/drivers.ts";

/** The last bytes of each stream of a command. */
export class OutputTail {
  readonly #most: number;
  readonly #chunks = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  readonly #sizes = { stdout: 0, stderr: 0 };
  #truncated = false;

  constructor(most: number) {
    this.#most = most;
  }

  add(chunk: OutputChunk): void {
    if (chunk.stream === "gap") {
      this.#truncated = true;
      return;
    }
    const chunks = this.#chunks[chunk.stream];
    chunks.push(chunk.data);
    this.#sizes[chunk.stream] += chunk.data.length;
    while (this.#sizes[chunk.stream] - (chunks[0]?.length ?? 0) >= this.#most) {
      this.#sizes[chunk.stream] -= chunks.shift()?.length ?? 0;
      this.#truncated = true;
    }
  }

  result(): { stdout: string; stderr: string; truncated: boolean } {
    const text = (stream: "stdout" | "stderr"): string => {
      const all = Buffer.concat(this.#chunks[stream]);
      if (all.length > this.#most) this.#truncated = true;
      return all.subarray(Math.max(0, all.length - this.#most)).toString("utf8");
    };
    const stdout = text("stdout");
    const stderr = text("stderr");
    return { stdout, stderr, truncated: this.#truncated };
  }
}
