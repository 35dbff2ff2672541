/**
 * Whole lines of a program's two output streams, and how far each was read. A server that comes later gives what it finds in the log
 * from the beginning, and what was read before is skipped.
 */
import { StringDecoder } from "node:string_decoder";
import type { OutputChunk } from "../../machine/drivers/drivers.ts";

export type OutputLine =
  | { readonly stream: "stdout" | "stderr"; readonly text: string; readonly cut: boolean }
  /** Output that is not in the log any more. */
  | { readonly lost: number };

/** A line longer than this is cut; its rest is skipped. */
const LINE_BYTES = 8 * 1024 ** 2;
const NEWLINE = 0x0a;

class LineReader {
  readonly #decode = new StringDecoder("utf8");
  /** Of the line that has begun. */
  #parts: Buffer[] = [];
  #size = 0;
  #cut = false;
  /** Up to the end of the last whole line. */
  read: number;
  #seen = 0;

  constructor(read: number) {
    this.read = read;
  }

  *feed(data: Buffer): Generator<{ text: string; cut: boolean }> {
    const skip = Math.min(data.length, Math.max(0, this.read - this.#seen));
    this.#seen += skip;
    let rest = data.subarray(skip);
    for (let at = rest.indexOf(NEWLINE); at >= 0; at = rest.indexOf(NEWLINE)) {
      this.#add(rest.subarray(0, at));
      this.#seen += at + 1;
      rest = rest.subarray(at + 1);
      yield this.#take();
    }
    this.#seen += rest.length;
    this.#add(rest);
  }

  #add(data: Buffer): void {
    const room = LINE_BYTES - this.#size;
    if (data.length > room) this.#cut = true;
    if (room <= 0) return;
    const kept = data.subarray(0, room);
    this.#parts.push(kept);
    this.#size += kept.length;
  }

  #take(): { text: string; cut: boolean } {
    const line = { text: this.#decode.end(Buffer.concat(this.#parts)), cut: this.#cut };
    this.read = this.#seen;
    this.#drop();
    return line;
  }

  #drop(): void {
    this.#parts = [];
    this.#size = 0;
    this.#cut = false;
  }

  /** What stands behind the last line end. */
  end(): { text: string; cut: boolean } | undefined {
    return this.#size === 0 ? undefined : this.#take();
  }

  /** What comes next begins somewhere in a line. */
  jump(): void {
    this.#drop();
    this.#seen = this.read;
  }
}

/** How far output was read: of each stream up to its last whole line, and of both together. */
export interface OutputPlace {
  readonly stdout: number;
  readonly stderr: number;
  readonly total: number;
}

export class OutputLines {
  readonly #readers: Readonly<Record<"stdout" | "stderr", LineReader>>;
  /** What an earlier server had seen. */
  readonly #before: number;
  #total = 0;
  /** Whether the log has lost its beginning: then the streams can't be told apart in what was read before. */
  #lost = false;

  constructor(read: OutputPlace) {
    this.#readers = { stdout: new LineReader(read.stdout), stderr: new LineReader(read.stderr) };
    this.#before = read.total;
  }

  get read(): OutputPlace {
    return { stdout: this.#readers.stdout.read, stderr: this.#readers.stderr.read, total: Math.max(this.#total, this.#before) };
  }

  *feed(chunk: OutputChunk): Generator<OutputLine> {
    if (chunk.stream === "gap") {
      const from = Math.max(this.#total, this.#before);
      this.#total += chunk.bytes;
      this.#lost = true;
      for (const reader of Object.values(this.#readers)) reader.jump();
      if (this.#total > from) yield { lost: this.#total - from };
      return;
    }
    const start = this.#total;
    this.#total += chunk.data.length;
    const known = this.#lost ? Math.min(chunk.data.length, Math.max(0, this.#before - start)) : 0;
    for (const line of this.#readers[chunk.stream].feed(chunk.data.subarray(known))) yield { stream: chunk.stream, ...line };
  }

  *end(): Generator<OutputLine> {
    for (const stream of ["stdout", "stderr"] as const) {
      const line = this.#readers[stream].end();
      if (line !== undefined) yield { stream, ...line };
    }
  }
}
