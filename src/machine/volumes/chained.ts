/** What a sandbox changed since another base than the one its volume stands on: the way between the two and its changes, as one. */
import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, rm, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { ContentLimits, Gather, Gathered, GatheredChange, GatheredSide } from "./gather.ts";

const LINE_END = 0x0a;
/** Whether contents are equal is only known when they are there, whatever the caller wants of them. */
const EVERYTHING: ContentLimits = { fileBytes: LIMITS.maxPatchFileBytes, totalBytes: LIMITS.maxPatchBytes };

/** The same gather, for sides that have a way before them too. */
export function chained(gather: Gather): Gather {
  return async (sides, folder, contents) => {
    const { before, ...own } = sides;
    if (before === undefined) return gather(own, folder, contents);
    const back = before.way.back.map((each) => ({ each, turned: true }));
    const forth = [...before.way.forth, own].map((each) => ({ each, turned: false }));
    const all = await Contents.open(join(folder, "blobs"));
    const chain = new Chain(all);
    try {
      for (const [index, { each, turned }] of [...back, ...forth].entries()) {
        const place = join(folder, `step-${index}`);
        await mkdir(place, { mode: 0o700 });
        await chain.add(await gather(each, place, EVERYTHING), turned);
      }
    } finally {
      await all.close();
    }
    return { ...chain.result(), blobs: contents === undefined ? null : join(folder, "blobs") };
  };
}

class Chain {
  readonly #contents: Contents;
  readonly #changes = new Map<string, GatheredChange>();
  readonly #kept: Buffer[] = [];
  #skipped = 0;
  #more = false;

  constructor(contents: Contents) {
    this.#contents = contents;
  }

  async add({ changes, kept, blobs, skipped, more }: Gathered, turned: boolean): Promise<void> {
    const marks = await this.#contents.take(blobs);
    const renumber = (side: GatheredSide | null): GatheredSide | null =>
      side === null ? null : { ...side, mark: marks.get(side.mark) ?? 0 };
    for (const change of changes) {
      const [old, now] = [renumber(change.old), renumber(change.new)];
      this.#follow(turned ? { ...change, old: now, new: old } : { ...change, old, new: now });
    }
    this.#kept.push(...kept);
    this.#skipped += skipped;
    this.#more ||= more;
  }

  /** One after the other; what ends as it began is no change. */
  #follow(change: GatheredChange): void {
    const key = change.path.toString("latin1");
    const known = this.#changes.get(key);
    const old = known === undefined ? change.old : known.old;
    if (isSame(old, change.new)) this.#changes.delete(key);
    else this.#changes.set(key, { ...change, type: change.new === null && known !== undefined ? known.type : change.type, old });
  }

  result(): Omit<Gathered, "blobs"> {
    return { changes: [...this.#changes.values()], kept: this.#kept, skipped: this.#skipped, more: this.#more };
  }
}

/** Equal contents have one number; what has none and is no folder may be anything. */
function isSame(one: GatheredSide | null, other: GatheredSide | null): boolean {
  if (one === null || other === null) return one === other;
  return one.mode === other.mode && one.mark === other.mark && (one.mark > 0 || one.mode === "40000");
}

/** Several files of contents as one, in which every content has one number. */
class Contents {
  readonly #file: FileHandle;
  readonly #known = new Map<string, number>();
  #last = 0;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  static async open(path: string): Promise<Contents> {
    return new Contents(await open(path, "wx", 0o600));
  }

  /** Which number each content of the file has here. */
  async take(path: string | null): Promise<Map<number, number>> {
    const marks = new Map<number, number>();
    if (path === null) return marks;
    const reader = new BlobReader({
      begin: (size) => this.#file.writeFile(`blob\nmark :${(this.#last += 1)}\ndata ${size}\n`),
      part: (bytes) => this.#file.writeFile(bytes),
      end: async (mark, hash) => {
        await this.#file.writeFile("\n");
        const number = this.#known.get(hash) ?? this.#last;
        this.#known.set(hash, number);
        marks.set(mark, number);
      },
    });
    for await (const chunk of createReadStream(path)) await reader.take(chunk as Buffer);
    await rm(path);
    return marks;
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

interface BlobListener {
  begin(size: number): Promise<void>;
  part(bytes: Buffer): Promise<void>;
  end(mark: number, hash: string): Promise<void>;
}

/** Takes apart `blob`, `mark :<number>`, `data <size>`, a line each, the bytes, and a line end, again and again. */
class BlobReader {
  readonly #listener: BlobListener;
  #line = "";
  #mark = 0;
  #left = -1;
  #hash: Hash = createHash("sha256");

  constructor(listener: BlobListener) {
    this.#listener = listener;
  }

  async take(chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length;)
      at += this.#left < 0 ? await this.#header(chunk.subarray(at)) : await this.#content(chunk.subarray(at));
  }

  async #header(chunk: Buffer): Promise<number> {
    const end = chunk.indexOf(LINE_END);
    this.#line += chunk.toString("latin1", 0, end < 0 ? chunk.length : end);
    if (end < 0) return chunk.length;
    const [word, value = ""] = this.#line.split(" ");
    this.#line = "";
    if (word === "mark") this.#mark = Number(value.slice(1));
    else if (word === "data") {
      this.#left = Number(value);
      this.#hash = createHash("sha256");
      await this.#listener.begin(this.#left);
    } else if (word !== "blob") throw new VivError("internal", "The contents of changes are not as expected.");
    return end + 1;
  }

  /** The last byte taken is the line end after the content. */
  async #content(chunk: Buffer): Promise<number> {
    const bytes = chunk.subarray(0, this.#left);
    this.#hash.update(bytes);
    if (bytes.length > 0) await this.#listener.part(bytes);
    this.#left -= bytes.length;
    if (bytes.length === chunk.length) return bytes.length;
    this.#left = -1;
    await this.#listener.end(this.#mark, this.#hash.digest("hex"));
    return bytes.length + 1;
  }
}
