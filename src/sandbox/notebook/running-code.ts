/** One execution under way: its outputs so far, and who listens. */
import { EventEmitter, on } from "node:events";
import { LIMITS } from "../../base/schema/limits.ts";
import type { CodeOutput, Execution, ExecutionEvent } from "../../base/schema/notebook.ts";
import type { ExecutionNews } from "./kernel-messages.ts";

export class RunningCode {
  readonly id: string;
  readonly #about: Pick<Execution, "sandbox" | "context">;
  readonly #outputs: CodeOutput[] = [];
  readonly #changes = new EventEmitter();
  readonly #startedAt = new Date().toISOString();
  readonly ended: Promise<void>;
  #end: () => void = () => undefined;
  #bytes = 0;
  #droppedBytes = 0;
  #state: Execution["state"] = "running";
  #reason: string | null = null;
  #count: number | null = null;
  #endedAt: string | null = null;
  #reply: "ok" | "error" | "aborted" | null = null;
  #isIdle = false;
  #isInterrupted = false;

  constructor(id: string, about: Pick<Execution, "sandbox" | "context">) {
    this.id = id;
    this.#about = about;
    this.#changes.setMaxListeners(0);
    this.ended = new Promise((resolve) => (this.#end = resolve));
  }

  get isUnderWay(): boolean {
    return this.#state === "running";
  }

  get context(): string {
    return this.#about.context;
  }

  shown(): Execution {
    return { ...this.#told(), outputs: [...this.#outputs] };
  }

  #told(): Omit<Execution, "outputs"> {
    return {
      id: this.id,
      ...this.#about,
      state: this.#state,
      reason: this.#reason,
      count: this.#count,
      droppedBytes: this.#droppedBytes,
      startedAt: this.#startedAt,
      endedAt: this.#endedAt,
    };
  }

  hear(news: ExecutionNews): void {
    if (!this.isUnderWay) return;
    if ("output" in news) this.#add(news.output);
    else if ("reply" in news) {
      this.#reply = news.reply;
      this.#count = news.count;
    } else this.#isIdle = true;
    // Outputs may come behind the answer, but not behind the word that the kernel is idle.
    if (this.#reply !== null && this.#isIdle)
      this.#finish(this.#reply === "ok" ? "done" : this.#isInterrupted ? "interrupted" : "failed", null);
  }

  /** What ends it now is meant. */
  interrupted(): void {
    this.#isInterrupted = true;
  }

  fail(reason: string): void {
    if (this.isUnderWay) this.#finish("failed", reason);
  }

  #add(output: CodeOutput): void {
    const size = JSON.stringify(output).length;
    if (this.#bytes + size > LIMITS.executionOutputBytes || this.#outputs.length >= LIMITS.executionOutputs) {
      this.#droppedBytes += size;
      return;
    }
    this.#bytes += size;
    const last = this.#outputs.at(-1);
    if (last !== undefined && "text" in last && "text" in output && last.kind === output.kind)
      this.#outputs[this.#outputs.length - 1] = { kind: last.kind, text: last.text + output.text };
    else this.#outputs.push(output);
    this.#changes.emit("change", { type: "output", output } satisfies ExecutionEvent);
  }

  #finish(state: Execution["state"], reason: string | null): void {
    this.#state = state;
    this.#reason = reason;
    this.#endedAt = new Date().toISOString();
    this.#changes.emit("change", { type: "ended", execution: this.#told() } satisfies ExecutionEvent);
    this.#end();
  }

  /** What there is, then what comes, to the end. */
  async *listen(signal: AbortSignal): AsyncGenerator<ExecutionEvent, void, void> {
    const isOver = !this.isUnderWay;
    const coming = isOver ? undefined : on(this.#changes, "change", { signal });
    // What is added while these are read comes as a change, also its end.
    for (const output of this.#outputs.slice()) yield { type: "output", output };
    if (coming === undefined) return yield { type: "ended", execution: this.#told() };
    for await (const [event] of coming as AsyncIterable<[ExecutionEvent]>) {
      yield event;
      if (event.type === "ended") return;
    }
  }
}
