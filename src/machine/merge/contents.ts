/**
 * Contents by object id, in a folder of ours: one file with the bytes of all of them, and one that says where each lies.
 * As files of their own, thousands would take a file system longer than everything else that is done with them.
 */
import { closeSync, fstatSync, openSync, readFileSync, readSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { VivError } from "../../base/schema/errors.ts";
import type { GitStore } from "./store.ts";

/** Both are read by the cell, too: native/PROTOCOL.md. */
export const PACK = "pack";
export const INDEX = "index";
const READ_BYTES = 64 * 1024;
const LINE_END = 0x0a;
const MOST_HEADER_BYTES = 256;

/** Adds to the contents of a folder. What was added counts from close() on. */
export class ContentsWriter {
  readonly #folder: string;
  readonly #pack: number;
  readonly #lines: string[] = [];
  #end: number;

  constructor(folder: string) {
    this.#folder = folder;
    this.#pack = openSync(join(folder, PACK), "a", 0o600);
    this.#end = fstatSync(this.#pack).size;
  }

  get count(): number {
    return this.#lines.length;
  }

  add(id: string, bytes: Buffer): void {
    this.begin(id, bytes.length);
    this.part(bytes);
  }

  /** A content whose parts follow, `size` bytes in all. */
  begin(id: string, size: number): void {
    this.#lines.push(`${id} ${this.#end} ${size}\n`);
    this.#end += size;
  }

  part(bytes: Buffer): void {
    for (let at = 0; at < bytes.length;) at += writeSync(this.#pack, bytes, at);
  }

  close(): void {
    closeSync(this.#pack);
    writeFileSync(join(this.#folder, INDEX), this.#lines.join(""), { flag: "a", mode: 0o600 });
  }
}

interface Place {
  readonly offset: number;
  readonly size: number;
}

/** What a folder holds. Reading does not wait: most contents are small, there may be thousands, and all were written a moment ago. */
export class Contents {
  readonly #places: ReadonlyMap<string, Place>;
  readonly #pack: number | undefined;

  constructor(folder: string) {
    const lines = ifThere(() => readFileSync(join(folder, INDEX), "latin1")) ?? "";
    this.#places = new Map(lines.split("\n").flatMap(placeOf));
    this.#pack = ifThere(() => openSync(join(folder, PACK), "r"));
  }

  has(id: string): boolean {
    return this.#places.has(id);
  }

  sizeOf(id: string): number {
    return this.#placeOf(id).size;
  }

  read(id: string): Buffer {
    const { offset, size } = this.#placeOf(id);
    return this.#bytes(offset, size);
  }

  *parts(id: string): Generator<Buffer, void, void> {
    const { offset, size } = this.#placeOf(id);
    for (let at = 0; at < size; at += READ_BYTES) yield this.#bytes(offset + at, Math.min(READ_BYTES, size - at));
  }

  close(): void {
    if (this.#pack !== undefined) closeSync(this.#pack);
  }

  #placeOf(id: string): Place {
    const place = this.#places.get(id);
    if (place === undefined) throw new VivError("internal", `The content ${id} is not kept.`);
    return place;
  }

  #bytes(offset: number, size: number): Buffer {
    const bytes = Buffer.allocUnsafe(size);
    for (let at = 0; at < size;) {
      const read = readSync(this.#pack ?? -1, bytes, at, size - at, offset + at);
      if (read === 0) throw new VivError("internal", "The kept contents are shorter than they were.");
      at += read;
    }
    return bytes;
  }
}

function placeOf(line: string): [string, Place][] {
  const [id = "", offset, size] = line.split(" ");
  return size === undefined ? [] : [[id, { offset: Number(offset), size: Number(size) }]];
}

function ifThere<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Opens the contents of a folder for as long as `work` takes. */
export async function withContents<T>(folder: string, work: (contents: Contents) => T | Promise<T>): Promise<T> {
  const contents = new Contents(folder);
  try {
    return await work(contents);
  } finally {
    contents.close();
  }
}

/** Adds contents of a store to a folder, each once, with one run of git; bytes are exact. */
export async function writeContents(store: GitStore, ids: Iterable<string>, folder: string): Promise<void> {
  const wanted = [...new Set(ids)];
  if (wanted.length === 0) return;
  const writer = new ContentsWriter(folder);
  const batch = new Batch(writer);
  try {
    for await (const chunk of store.stream(["cat-file", "--batch", "--buffer"], [Buffer.from(`${wanted.join("\n")}\n`)]))
      batch.take(chunk as Buffer);
  } finally {
    writer.close();
  }
  if (writer.count !== wanted.length || !batch.isWhole)
    throw new VivError("internal", `git gave ${writer.count} of ${wanted.length} contents.`);
}

/** Takes apart `<id> blob <size>`, the bytes, and a line end, again and again. */
class Batch {
  readonly #writer: ContentsWriter;
  #header = Buffer.alloc(0);
  /** Bytes to come of a content and of the line end behind it. */
  #left = 0;

  constructor(writer: ContentsWriter) {
    this.#writer = writer;
  }

  get isWhole(): boolean {
    return this.#left === 0 && this.#header.length === 0;
  }

  take(chunk: Buffer): void {
    for (let at = 0; at < chunk.length;) at += this.#left === 0 ? this.#begin(chunk.subarray(at)) : this.#go(chunk.subarray(at));
  }

  #begin(chunk: Buffer): number {
    const end = chunk.indexOf(LINE_END);
    this.#header = Buffer.concat([this.#header, end < 0 ? chunk : chunk.subarray(0, end)]);
    if (this.#header.length > MOST_HEADER_BYTES) throw new VivError("internal", "git's answer is not as expected.");
    if (end < 0) return chunk.length;
    const [id = "", type, size = ""] = this.#header.toString("latin1").split(" ");
    if (type !== "blob" || !/^[0-9a-f]+$/.test(id)) throw new VivError("internal", `The content ${id} is not in the store.`);
    this.#header = Buffer.alloc(0);
    this.#writer.begin(id, Number(size));
    this.#left = Number(size) + 1;
    return end + 1;
  }

  #go(chunk: Buffer): number {
    const taken = Math.min(chunk.length, this.#left);
    this.#writer.part(chunk.subarray(0, Math.min(taken, this.#left - 1)));
    this.#left -= taken;
    return taken;
  }
}
