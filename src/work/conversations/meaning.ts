/** Search by meaning: vectors are made beside the records, some time after them, and compared one page after the other. */
import { setImmediate as breathe } from "node:timers/promises";
import { errorText, type Logger } from "../../base/host/log.ts";
import type { SearchScope } from "../../base/store/conversation-log.ts";
import type { Store } from "../../base/store/store.ts";
import { similarity, type Embedder } from "./embedder.ts";

const BATCH = 64;
const PAGE = 1_000;
/** How long the first record of many waits for the others; longer after a failure, so that a model API that refuses is left alone. */
const SOON_MS = 200;
const LATER_MS = 30_000;

export class Meaning {
  readonly #store: Store;
  readonly #embedder: Embedder;
  readonly #log: Logger;
  #waiting: NodeJS.Timeout | undefined;
  #working: Promise<void> | undefined;
  #hasFailed = false;
  #closed = false;

  constructor(store: Store, embedder: Embedder, log: Logger) {
    this.#store = store;
    this.#embedder = embedder;
    this.#log = log;
  }

  /** There may be new records. */
  wake(): void {
    if (this.#waiting !== undefined || this.#closed) return;
    const hadFailed = this.#hasFailed;
    this.#waiting = setTimeout(
      () => {
        this.#waiting = undefined;
        // The next record, the next search or the next server tries again.
        this.#afterWait(hadFailed).catch((error: unknown) => this.#warn(error));
      },
      hadFailed ? LATER_MS : SOON_MS,
    ).unref();
  }

  /** Work that was under way when the record came may have failed since. */
  async #afterWait(hadFailed: boolean): Promise<void> {
    await this.#working?.catch(() => undefined);
    if (this.#hasFailed && !hadFailed) this.wake();
    else await this.catchUp();
  }

  /** Resolves when every record has its vector. */
  async catchUp(): Promise<void> {
    await this.#working?.catch(() => undefined);
    this.#working ??= this.#tryAll().finally(() => (this.#working = undefined));
    await this.#working;
  }

  /** Ids of the records that are nearest, the nearest first; none where a model API does not answer. */
  async find(query: string, scope: SearchScope, limit: number): Promise<number[]> {
    try {
      return await this.#nearest(query, scope, limit);
    } catch (error) {
      this.#warn(error);
      return [];
    }
  }

  async #nearest(query: string, scope: SearchScope, limit: number): Promise<number[]> {
    const [asked] = await this.#embedder.embed([query]);
    if (asked === undefined) return [];
    const nearest = new Nearest(limit, this.#embedder.leastSimilarity);
    for (let after = 0; ;) {
      const page = await this.#store.conversations.search.vectors(this.#embedder.name, scope, after, PAGE);
      for (const { id, vector } of page) nearest.add(id, similarity(asked, signed(vector)));
      if (page.length < PAGE) return nearest.ids();
      after = page.at(-1)?.id ?? after;
      await breathe();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#waiting);
    await this.#working?.catch(() => undefined);
  }

  #warn(error: unknown): void {
    this.#log.warn("conversations can't be searched by meaning", { error: errorText(error) });
  }

  async #tryAll(): Promise<void> {
    try {
      await this.#makeAll();
      this.#hasFailed = false;
    } catch (error) {
      this.#hasFailed = true;
      throw error;
    }
  }

  async #makeAll(): Promise<void> {
    const { name } = this.#embedder;
    while (!this.#closed) {
      const records = await this.#store.conversations.search.withoutVector(name, BATCH);
      if (records.length === 0) return;
      const vectors = await this.#embedder.embed(records.map(({ text }) => text));
      const made = records.map(({ id }, index) => ({ id, vector: unsigned(vectors[index] ?? new Int8Array()) }));
      await this.#store.change((change) => change.conversations.addVectors(name, made));
      await breathe();
    }
  }
}

/** The best of many, without keeping the many. */
class Nearest {
  readonly #most: number;
  #kept: { id: number; score: number }[] = [];
  #least: number;

  constructor(most: number, least: number) {
    this.#most = most;
    this.#least = least;
  }

  add(id: number, score: number): void {
    if (score < this.#least) return;
    this.#kept.push({ id, score });
    if (this.#kept.length >= 2 * this.#most) this.#drop();
  }

  ids(): number[] {
    this.#drop();
    return this.#kept.map(({ id }) => id);
  }

  #drop(): void {
    this.#kept = this.#kept.toSorted((one, other) => other.score - one.score || other.id - one.id).slice(0, this.#most);
    if (this.#kept.length === this.#most) this.#least = this.#kept.at(-1)?.score ?? this.#least;
  }
}

function signed(bytes: Uint8Array): Int8Array {
  return new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length);
}

function unsigned(vector: Int8Array): Uint8Array {
  return new Uint8Array(vector.buffer, vector.byteOffset, vector.length);
}
