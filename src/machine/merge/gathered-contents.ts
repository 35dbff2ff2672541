/**
 * Contents as they were gathered, known by the ids that git would give them. They are hashed while they are still being written
 * down, and stay in the file where they are: a change that needs no merge gets by without git, and without another copy.
 */
import { createHash, type Hash } from "node:crypto";
import { copyFile, open, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { VivError } from "../../base/schema/errors.ts";
import { INDEX, PACK } from "./contents.ts";
import { type GitStore, readAlong } from "./store.ts";

const LINE_END = 0x0a;
const MOST_HEADER_BYTES = 64;
const READ_BYTES = 256 * 1024;
const COMPARED_BYTES = 1024 ** 2;

interface Place {
  readonly offset: number;
  readonly size: number;
}

export class GatheredContents {
  /** Object ids, by number of the content. */
  readonly ids: ReadonlyMap<number, string>;
  readonly #path: string;
  readonly #places: ReadonlyMap<string, Place>;
  #stored: Promise<unknown> | undefined;

  private constructor(path: string, { ids, places }: BlobHasher) {
    this.#path = path;
    this.ids = ids;
    this.#places = places;
  }

  /** Of a file with blobs that grows until `complete`. */
  static async read(path: string, complete: Promise<unknown>): Promise<GatheredContents> {
    const hasher = new BlobHasher();
    for await (const chunk of readAlong(path, complete, Buffer.allocUnsafe(READ_BYTES))) hasher.take(chunk);
    if (hasher.twins.length > 0) await requireEqual(path, hasher.twins);
    return new GatheredContents(path, hasher);
  }

  has(id: string): boolean {
    return this.#places.has(id);
  }

  /** Brings them into a store, for what git is to do with them. */
  async store(git: GitStore): Promise<void> {
    this.#stored ??= this.ids.size === 0 ? Promise.resolve() : git.write([], this.#path, { keepsBlobs: true });
    await this.#stored;
  }

  /** They become the contents of an empty folder, and are in no other place afterwards. */
  async moveTo(folder: string): Promise<void> {
    if (this.#places.size === 0) return;
    const pack = join(folder, PACK);
    await rename(this.#path, pack).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== "EXDEV") throw error;
      await copyFile(this.#path, pack);
    });
    const lines = [...this.#places].map(([id, { offset, size }]) => `${id} ${offset} ${size}\n`);
    await writeFile(join(folder, INDEX), lines.join(""), { mode: 0o600 });
  }
}

/** Takes apart `blob`, `mark :<number>`, `data <size>`, a line each, the bytes, and a line end, again and again. */
class BlobHasher {
  readonly ids = new Map<number, string>();
  readonly places = new Map<string, Place>();
  /** Contents that have one id. */
  readonly twins: [Place, Place][] = [];
  #line = "";
  #mark = 0;
  #at = 0;
  #place: Place = { offset: 0, size: 0 };
  #left = -1;
  #hash: Hash | undefined;

  take(chunk: Buffer): void {
    for (let at = 0; at < chunk.length;) {
      const taken = this.#left < 0 ? this.#header(chunk, at) : this.#content(chunk, at);
      at += taken;
      this.#at += taken;
    }
  }

  #header(chunk: Buffer, at: number): number {
    const end = chunk.indexOf(LINE_END, at);
    this.#line += chunk.toString("latin1", at, end < 0 ? chunk.length : end);
    if (this.#line.length > MOST_HEADER_BYTES) throw unexpected();
    if (end < 0) return chunk.length - at;
    const taken = end + 1 - at;
    if (this.#line.startsWith("mark :")) this.#mark = Number(this.#line.slice(6));
    else if (this.#line.startsWith("data ")) {
      this.#left = Number(this.#line.slice(5));
      this.#place = { offset: this.#at + taken, size: this.#left };
      this.#hash = createHash("sha1").update(`blob ${this.#left}\0`);
    } else if (this.#line !== "blob") throw unexpected();
    this.#line = "";
    return taken;
  }

  /** The last byte taken is the line end after the content. */
  #content(chunk: Buffer, at: number): number {
    const bytes = chunk.subarray(at, at + this.#left);
    this.#hash?.update(bytes);
    this.#left -= bytes.length;
    if (at + bytes.length === chunk.length) return bytes.length;
    this.#left = -1;
    this.#end(this.#hash?.digest("hex") ?? "");
    return bytes.length + 1;
  }

  #end(id: string): void {
    this.ids.set(this.#mark, id);
    const known = this.places.get(id);
    if (known === undefined) this.places.set(id, this.#place);
    else this.twins.push([known, this.#place]);
  }
}

/** A program that makes two contents with one SHA-1 may want one of them to be looked at and the other to be written. */
async function requireEqual(path: string, twins: readonly (readonly [Place, Place])[]): Promise<void> {
  const file = await open(path, "r");
  const read = async ({ offset }: Place, at: number, length: number): Promise<Buffer> => {
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, offset + at);
    if (bytesRead !== length) throw unexpected();
    return buffer;
  };
  try {
    for (const [one, other] of twins) {
      let same = one.size === other.size;
      for (let at = 0; same && at < one.size; at += COMPARED_BYTES) {
        const length = Math.min(COMPARED_BYTES, one.size - at);
        same = (await read(one, at, length)).equals(await read(other, at, length));
      }
      if (!same)
        throw new VivError(
          "invalid_input",
          "Two files of the change have different contents and the same SHA-1, which git can't tell apart.",
        );
    }
  } finally {
    await file.close();
  }
}

function unexpected(): VivError {
  return new VivError("internal", "The contents of changes are not as expected.");
}
