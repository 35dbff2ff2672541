/** What a job printed: the last bytes of each stream, what was dropped, and listeners that hear it as it comes. */
import { isUtf8 } from "node:buffer";
import { LIMITS } from "../../base/schema/limits.ts";
import type { JobOutput } from "../../base/schema/job.ts";
import type { JobTextRow } from "../../base/store/rows.ts";
import type { OutputChunk } from "../../machine/drivers/drivers.ts";
import { OutputTail } from "../../sandbox/commands/output-tail.ts";

type Stream = "stdout" | "stderr";
type KeptOutput = NonNullable<JobTextRow["output"]>;

/** The two streams as a status shows them. */
export interface ShownOutput {
  readonly stdout: string;
  readonly stderr: string;
}

export class JobText {
  readonly #tail = new OutputTail(LIMITS.jobOutputBytes);
  readonly #total = { stdout: 0, stderr: 0 };
  /** Of either stream: the log of the command no longer had it. */
  #lost = 0;
  #shown: ShownOutput | undefined;
  readonly #listeners = new Set<(chunk: OutputChunk) => void>();

  add(chunk: OutputChunk): void {
    if (chunk.stream === "gap") this.#lost += chunk.bytes;
    else this.#total[chunk.stream] += chunk.data.length;
    this.#tail.add(chunk);
    this.#shown = undefined;
    for (const hear of this.#listeners) hear(chunk);
  }

  /** Words of the server about the job, as a line of its own in stderr. */
  say(sentence: string): void {
    const last = this.#tail.bytes("stderr").at(-1);
    this.add({ stream: "stderr", data: Buffer.from(`${last === undefined || last === 0x0a ? "" : "\n"}viv: ${sentence}\n`) });
  }

  /** Told as often as a status is asked for, so it is put together once for all between two chunks. */
  shown(): ShownOutput {
    this.#shown ??= shownOf(this.#bytes(), this.#dropped());
    return this.#shown;
  }

  kept(): KeptOutput {
    const { stdout, stderr } = this.#bytes();
    const encoding = isUtf8(stdout) && isUtf8(stderr) ? "utf8" : "base64";
    return { encoding, stdout: stdout.toString(encoding), stderr: stderr.toString(encoding), dropped: this.#dropped() };
  }

  /** Bytes that are not kept. */
  get droppedBytes(): number {
    const { stdout, stderr } = this.#dropped();
    return stdout + stderr;
  }

  hear(listener: (chunk: OutputChunk) => void): () => void {
    for (const part of partsOf(this.#bytes(), this.#dropped())) listener(part);
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #bytes(): Record<Stream, Buffer> {
    return { stdout: this.#tail.bytes("stdout"), stderr: this.#tail.bytes("stderr") };
  }

  /** Output without a stream counts as standard output. */
  #dropped(): Record<Stream, number> {
    const beyond = (stream: Stream): number => Math.max(0, this.#total[stream] - LIMITS.jobOutputBytes);
    return { stdout: beyond("stdout") + this.#lost, stderr: beyond("stderr") };
  }
}

function bytesOf({ encoding, stdout, stderr }: KeptOutput): Record<Stream, Buffer> {
  return { stdout: Buffer.from(stdout, encoding), stderr: Buffer.from(stderr, encoding) };
}

/** As a status shows it, with a first line that says what is missing. */
export function shownOutput(output: KeptOutput | undefined): ShownOutput {
  return output === undefined ? { stdout: "", stderr: "" } : shownOf(bytesOf(output), output.dropped);
}

/** As a listener hears it. */
export function heardOutput(output: KeptOutput | undefined): OutputChunk[] {
  return output === undefined ? [] : partsOf(bytesOf(output), output.dropped);
}

/** As it is sent to a listener. */
export function sentOutput(chunk: OutputChunk): JobOutput {
  return chunk.stream === "gap" ? { dropped: chunk.bytes } : { stream: chunk.stream, data: chunk.data.toString("base64") };
}

function shownOf(bytes: Record<Stream, Buffer>, dropped: Record<Stream, number>): ShownOutput {
  const text = (stream: Stream): string => {
    const all = bytes[stream].toString("utf8");
    if (dropped[stream] === 0) return all;
    // The first character may have lost its beginning.
    return `[viv: ${dropped[stream]} bytes of output before this are not kept]\n${all.replace(/^\uFFFD{1,3}/, "")}`;
  };
  return { stdout: text("stdout"), stderr: text("stderr") };
}

function partsOf(bytes: Record<Stream, Buffer>, dropped: Record<Stream, number>): OutputChunk[] {
  const parts: OutputChunk[] = [];
  for (const stream of ["stdout", "stderr"] as const) {
    if (dropped[stream] > 0) parts.push({ stream: "gap", bytes: dropped[stream] });
    if (bytes[stream].length > 0) parts.push({ stream, data: bytes[stream] });
  }
  return parts;
}
