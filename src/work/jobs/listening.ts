/** Output of a job for one listener, as fast as the listener takes it. The job never waits for a listener. */
import { LIMITS } from "../../base/schema/limits.ts";
import type { OutputChunk } from "../../machine/drivers/drivers.ts";
import type { JobRun } from "./job-run.ts";

/** Until the job has ended, or the signal. */
export async function* listenTo(run: JobRun, signal: AbortSignal): AsyncGenerator<OutputChunk, void, void> {
  const waiting = new WaitingOutput();
  const leave = run.text.hear((chunk) => waiting.add(chunk));
  const end = (): void => waiting.end();
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  void run.ended.then(end, end);
  try {
    for (;;) {
      for (const chunk of waiting.take()) yield chunk;
      if (signal.aborted || (waiting.isOver && waiting.isEmpty)) return;
      await waiting.changed();
    }
  } finally {
    signal.removeEventListener("abort", end);
    leave();
  }
}

class WaitingOutput {
  #chunks: OutputChunk[] = [];
  #bytes = 0;
  #isOver = false;
  #change = Promise.withResolvers<void>();

  add(chunk: OutputChunk): void {
    const size = chunk.stream === "gap" ? 0 : chunk.data.length;
    const last = this.#chunks.at(-1);
    if (this.#bytes + size <= LIMITS.jobListenerBytes) this.#chunks.push(chunk);
    else if (last?.stream === "gap") this.#chunks[this.#chunks.length - 1] = { stream: "gap", bytes: last.bytes + size };
    else this.#chunks.push({ stream: "gap", bytes: size });
    this.#bytes = Math.min(this.#bytes + size, LIMITS.jobListenerBytes);
    this.#change.resolve();
  }

  end(): void {
    this.#isOver = true;
    this.#change.resolve();
  }

  take(): OutputChunk[] {
    const taken = this.#chunks;
    this.#chunks = [];
    this.#bytes = 0;
    return taken;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get isEmpty(): boolean {
    return this.#chunks.length === 0;
  }

  async changed(): Promise<void> {
    if (!this.isEmpty || this.#isOver) return;
    this.#change = Promise.withResolvers<void>();
    await this.#change.promise;
  }
}
