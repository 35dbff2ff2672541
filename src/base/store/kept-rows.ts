/**
 * Rows that are asked for again and again, kept in memory as they were committed last: reading and parsing one takes longer than most of
 * what a request does with it. For a store that alone writes its database, because a row is forgotten here when a change of this store
 * has written it, and for collections that are part of no other, because a removal takes the parts along. Rows are frozen: all callers get
 * the same object.
 */
import type { ChangeableCollection, Collection } from "./store.ts";

/** Some kilobytes each. */
const MOST_ROWS = 512;

export class KeptRows {
  /** The least recently asked for first. */
  readonly #rows = new Map<string, object>();
  /** What the change under way has written: only the database knows it. */
  readonly #written = new Set<string>();
  /** Grows with every commit: a row that was read before it may be an older one. */
  #commits = 0;

  /** For reads of what is committed. */
  read<Row extends object, Columns>(name: string, id: keyof Row & string, from: Collection<Row, Columns>): Collection<Row, Columns> {
    return {
      get: (wanted) => this.#get(`${name} ${wanted}`, () => from.get(wanted)),
      find: (where) => from.find(where),
      list: (where, options) => this.#list(name, id, () => from.list(where, options)),
      count: (where) => from.count(where),
      has: (where) => from.has(where),
    };
  }

  /** For reads and writes of the one change that is under way. */
  change<Row extends object, Columns>(
    name: string,
    id: keyof Row & string,
    from: ChangeableCollection<Row, Columns>,
  ): ChangeableCollection<Row, Columns> {
    return {
      ...this.read(name, id, from),
      list: (where, options) => from.list(where, options),
      get: (wanted) => {
        const key = `${name} ${wanted}`;
        return this.#written.has(key) ? from.get(wanted) : this.#get(key, () => from.get(wanted));
      },
      put: (row) => {
        this.#written.add(`${name} ${String(row[id])}`);
        return from.put(row);
      },
      remove: (wanted) => {
        this.#written.add(`${name} ${wanted}`);
        return from.remove(wanted);
      },
    };
  }

  /** The change under way is committed. */
  committed(): void {
    this.#commits += 1;
    for (const key of this.#written) this.#rows.delete(key);
    this.over();
  }

  /** The change under way has ended, in whatever way. */
  over(): void {
    this.#written.clear();
  }

  async #get<Row extends object>(key: string, read: () => Promise<Row | undefined>): Promise<Row | undefined> {
    const known = this.#rows.get(key) as Row | undefined;
    if (known !== undefined) {
      this.#rows.delete(key);
      this.#rows.set(key, known);
      return known;
    }
    const commits = this.#commits;
    const row = await read();
    if (row !== undefined && commits === this.#commits && !this.#written.has(key)) this.#keep(key, row);
    return row;
  }

  /** What a list finds takes the place of what is kept: the reconciler, which lists, sees the database itself. */
  async #list<Row extends object>(name: string, id: keyof Row & string, read: () => Promise<Row[]>): Promise<Row[]> {
    const commits = this.#commits;
    const rows = await read();
    if (commits !== this.#commits) return rows;
    for (const row of rows) {
      const key = `${name} ${String(row[id])}`;
      if (this.#rows.has(key)) this.#keep(key, row);
    }
    return rows;
  }

  #keep(key: string, row: object): void {
    this.#rows.set(key, freeze(row));
    const [oldest] = this.#rows.keys();
    if (this.#rows.size > MOST_ROWS && oldest !== undefined) this.#rows.delete(oldest);
  }
}

export function freeze<Value extends object>(value: Value): Value {
  for (const part of Object.values(value) as unknown[]) if (typeof part === "object" && part !== null) freeze(part);
  return Object.freeze(value);
}
