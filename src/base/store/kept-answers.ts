/**
 * Answers of small collections that are asked the same again and again, kept until a change has written any row of the collection. For
 * a store that alone writes its database, and for collections that are part of no other, because a removal takes the parts along. Rows
 * are frozen: all callers get the same objects.
 */
import { freeze } from "./kept-rows.ts";
import type { ChangeableCollection, Collection } from "./store.ts";

const MOST_ANSWERS = 128;
/** Longer lists are read anew: they would take much memory. */
const MOST_ROWS_EACH = 32;

export class KeptAnswers {
  /** By the name of the collection; the answer by its question. */
  readonly #answers = new Map<string, Map<string, readonly object[]>>();
  /** Collections that the change under way has written. */
  readonly #written = new Set<string>();
  /** Grows with every commit: an answer that was read before it may be an older one. */
  #commits = 0;

  /** For reads of what is committed. */
  read<Row extends object, Columns>(name: string, from: Collection<Row, Columns>): Collection<Row, Columns> {
    const list: typeof from.list = async (where = {}, { limit } = {}) => [
      ...(await this.#answer(name, JSON.stringify([where, limit]), () => from.list(where, { limit }))),
    ];
    return {
      get: (id) => from.get(id),
      find: async (where) => (await list(where, { limit: 1 }))[0],
      list,
      count: (where) => from.count(where),
      has: (where) => from.has(where),
    };
  }

  /** For reads and writes of the one change that is under way: only the database knows what it has written. */
  change<Row, Columns>(name: string, from: ChangeableCollection<Row, Columns>): ChangeableCollection<Row, Columns> {
    return {
      get: (id) => from.get(id),
      find: (where) => from.find(where),
      list: (where, options) => from.list(where, options),
      count: (where) => from.count(where),
      has: (where) => from.has(where),
      put: (row) => {
        this.#written.add(name);
        return from.put(row);
      },
      remove: (id) => {
        this.#written.add(name);
        return from.remove(id);
      },
    };
  }

  /** The change under way is committed. */
  committed(): void {
    this.#commits += 1;
    for (const name of this.#written) this.#answers.delete(name);
    this.over();
  }

  /** The change under way has ended, in whatever way. */
  over(): void {
    this.#written.clear();
  }

  async #answer<Row extends object>(name: string, question: string, read: () => Promise<Row[]>): Promise<readonly Row[]> {
    const known = this.#answers.get(name)?.get(question);
    if (known !== undefined) return known as readonly Row[];
    const commits = this.#commits;
    const rows = await read();
    if (commits === this.#commits && rows.length <= MOST_ROWS_EACH) this.#keep(name, question, rows);
    return rows;
  }

  #keep(name: string, question: string, rows: readonly object[]): void {
    const answers = this.#answers.get(name) ?? new Map<string, readonly object[]>();
    if (answers.size >= MOST_ANSWERS) answers.clear();
    this.#answers.set(name, answers.set(question, rows.map(freeze)));
  }
}
