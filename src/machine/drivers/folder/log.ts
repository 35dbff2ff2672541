/**
 * The log of a command: `<command>.log.1`, then `<command>.log`, each a recording of frames after a head that says how
 * much output lies before it (log-reader.ts reads both). Each frame is written in one go.
 */
import { closeSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { encodeFields, encodeFrame, type FieldList, KIND, type Kind } from "../../../base/host/frames.ts";
import type { RawExit } from "../drivers.ts";

export class CommandLogWriter {
  readonly #file: string;
  readonly #halfBytes: number;
  #descriptor: number;
  /** Bytes in the current file, bytes of output in it, and in the one before. */
  #size = 0;
  #output = 0;
  #older = 0;
  #total = 0;
  #broken = false;

  constructor(folder: string, command: string, mostBytes: number) {
    this.#file = join(folder, `${command}.log`);
    this.#halfBytes = mostBytes / 2;
    this.#descriptor = this.#begin(0);
  }

  /** Bytes of output so far. */
  get total(): number {
    return this.#total;
  }

  /** Bytes of output that are no longer in the log. */
  get dropped(): number {
    return this.#total - this.#output - this.#older;
  }

  output(stream: "stdout" | "stderr", data: Buffer): void {
    this.#total += data.length;
    this.#trying(() => {
      if (this.#size + data.length > this.#halfBytes && this.#output > 0) this.#turn(data.length);
      this.#write(KIND[stream], data);
      this.#output += data.length;
    });
  }

  /** A full disk, or a log that was removed meanwhile, ends the log and not the command. */
  #trying(work: () => void): void {
    if (this.#broken) return;
    try {
      work();
    } catch {
      this.#broken = true;
    }
  }

  exit(exit: RawExit): void {
    const fields: [string, string][] = exit.code === null ? [] : [["code", String(exit.code)]];
    if (exit.signal !== null) fields.push(["signal", String(exit.signal)]);
    fields.push(
      ["timeout", exit.timedOut ? "1" : "0"],
      ["bytes", String(exit.outputBytes)],
      ["dropped", String(exit.droppedBytes)],
      ["wall_ms", String(Math.round(exit.wallMs))],
    );
    this.#trying(() => this.#write(KIND.exit, encodeFields(fields)));
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  /** There was no command. */
  discard(): void {
    this.close();
    rmSync(this.#file, { force: true });
  }

  #begin(offset: number): number {
    this.#descriptor = openSync(this.#file, "wx", 0o600);
    this.#size = 0;
    this.#output = 0;
    const head: FieldList = [["offset", String(offset)]];
    this.#write(KIND.reply, encodeFields(head));
    return this.#descriptor;
  }

  /** A new file; `next` bytes are counted already and come into it. */
  #turn(next: number): void {
    closeSync(this.#descriptor);
    renameSync(this.#file, `${this.#file}.1`);
    this.#older = this.#output;
    this.#begin(this.#total - next);
  }

  #write(kind: Kind, payload: Buffer): void {
    const frame = encodeFrame(kind, payload);
    for (let at = 0; at < frame.length;) at += writeSync(this.#descriptor, frame, at);
    this.#size += frame.length;
  }
}
