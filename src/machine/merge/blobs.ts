/** Contents from here and there, brought into a store with one run of git. */
import { randomUUID } from "node:crypto";
import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { GitStore } from "./store.ts";

export class Blobs {
  readonly #store: GitStore;
  readonly #path: string;
  readonly #file: number;
  #count = 0;

  constructor(store: GitStore) {
    this.#store = store;
    this.#path = join(store.folder, `blobs-${randomUUID()}`);
    this.#file = openSync(this.#path, "wx", 0o600);
  }

  /** The number by which the content is known until it has an id. */
  add(content: Buffer): number {
    this.#count += 1;
    for (const part of [Buffer.from(`blob\nmark :${this.#count}\ndata ${content.length}\n`), content, Buffer.from("\n")])
      for (let at = 0; at < part.length;) at += writeSync(this.#file, part, at);
    return this.#count;
  }

  /** Object ids, by number. */
  async store(): Promise<ReadonlyMap<number, string>> {
    closeSync(this.#file);
    return (await this.#store.write([], this.#path)).contents;
  }
}
