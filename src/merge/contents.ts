/** Contents of a store as files of ours, each under its object id, with one run of git. */
import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { VivError } from "../schema/errors.ts";
import type { GitStore } from "./store.ts";

const LINE_END = 0x0a;
const MOST_HEADER_BYTES = 256;

/** Writes every content once into an empty folder; bytes are exact. */
export async function writeContents(store: GitStore, ids: Iterable<string>, folder: string): Promise<void> {
  const wanted = [...new Set(ids)];
  if (wanted.length === 0) return;
  const writer = new Contents(folder);
  try {
    for await (const chunk of store.stream(["cat-file", "--batch", "--buffer"], [Buffer.from(`${wanted.join("\n")}\n`)]))
      writer.take(chunk as Buffer);
  } finally {
    writer.close();
  }
  if (writer.written !== wanted.length) throw new VivError("internal", `git gave ${writer.written} of ${wanted.length} contents.`);
}

/**
 * Takes apart `<id> blob <size>`, the bytes, and a line end, again and again. Most contents are small and there may be
 * thousands: waiting for each would take ten times as long, and what waits meanwhile waits for one chunk of git's output.
 */
class Contents {
  readonly #folder: string;
  #header = Buffer.alloc(0);
  #file: number | undefined;
  #left = 0;
  written = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  take(chunk: Buffer): void {
    for (let at = 0; at < chunk.length;)
      at += this.#file === undefined ? this.#begin(chunk.subarray(at)) : this.#go(this.#file, chunk.subarray(at));
  }

  #begin(chunk: Buffer): number {
    const end = chunk.indexOf(LINE_END);
    this.#header = Buffer.concat([this.#header, end < 0 ? chunk : chunk.subarray(0, end)]);
    if (this.#header.length > MOST_HEADER_BYTES) throw new VivError("internal", "git's answer is not as expected.");
    if (end < 0) return chunk.length;
    const [id = "", type, size = ""] = this.#header.toString("latin1").split(" ");
    if (type !== "blob" || !/^[0-9a-f]+$/.test(id)) throw new VivError("internal", `The content ${id} is not in the store.`);
    this.#header = Buffer.alloc(0);
    this.#file = openSync(join(this.#folder, id), "wx", 0o600);
    this.#left = Number(size);
    return end + 1;
  }

  /** The last byte taken is the line end after the content. */
  #go(file: number, chunk: Buffer): number {
    const part = chunk.subarray(0, this.#left);
    for (let at = 0; at < part.length;) at += writeSync(file, part, at);
    this.#left -= part.length;
    if (part.length === chunk.length) return part.length;
    this.close();
    this.written += 1;
    return part.length + 1;
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}
