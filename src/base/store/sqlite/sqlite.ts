/** The store on SQLite. Changes go through one connection, one after the other; reads through a second one that sees only what is committed. */
import type { DatabaseSync } from "node:sqlite";
import { Kysely } from "kysely";
import type { VivEvent } from "../../schema/event.ts";
import { LIMITS } from "../../schema/limits.ts";
import { MIGRATIONS, type Migration } from "../migrations.ts";
import { Changes, Queries } from "../queries.ts";
import type { Change, Store } from "../store.ts";
import type { Tables } from "../tables.ts";
import { sqliteDialect } from "./dialect.ts";
import { storeError } from "./errors.ts";
import { openDatabase, retryBusy } from "./open.ts";
import { WriteAheadLog } from "./write-ahead-log.ts";

type EventsListener = (events: readonly VivEvent[]) => void;

class SqliteStore extends Queries implements Store {
  readonly #writerDatabase: DatabaseSync;
  readonly #writer: Kysely<Tables>;
  readonly #listeners = new Set<EventsListener>();
  readonly #log: WriteAheadLog;
  readonly #busyMs: number;
  #last: Promise<unknown> = Promise.resolve();

  constructor(writer: DatabaseSync, reader: DatabaseSync, path: string, busyMs: number) {
    super(new Kysely<Tables>({ dialect: sqliteDialect(reader) }));
    this.#writerDatabase = writer;
    this.#writer = new Kysely<Tables>({ dialect: sqliteDialect(writer) });
    this.#log = new WriteAheadLog(path);
    this.#busyMs = busyMs;
  }

  change<T>(work: (change: Change) => Promise<T>): Promise<T> {
    // From now on, not from its turn: else each that waits for a held database would wait for all before it, too.
    const until = performance.now() + this.#busyMs;
    return this.#inTurn(() => this.#transact(work, until));
  }

  onEvents(listener: EventsListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  sync(): Promise<void> {
    return this.#log.sync();
  }

  async trim(): Promise<void> {
    const { newest } = await this.eventRange();
    await this.#inTurn(() =>
      this.#transact(async (changes) => {
        await changes.dropEventsUpTo(newest - LIMITS.eventRetentionRows);
        await changes.dropCommandsBeyond(LIMITS.keptCommands);
      }),
    );
  }

  async close(): Promise<void> {
    await this.#inTurn(async () => {
      await this.#log.close();
      await this.db.destroy();
      await this.#writer.destroy();
    });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #transact<T>(work: (changes: Changes) => Promise<T>, until?: number): Promise<T> {
    await retryBusy(() => this.#writerDatabase.exec("begin immediate"), until);
    const changes = new Changes(this.#writer);
    let result: T;
    try {
      result = await work(changes);
      this.#writerDatabase.exec("commit");
    } catch (error) {
      if (this.#writerDatabase.isTransaction) this.#writerDatabase.exec("rollback");
      throw storeError(error);
    }
    if (changes.written.length > 0) for (const listener of this.#listeners) listener(changes.written);
    return result;
  }
}

/** `busyMs` is how long a change waits for a database that something else holds. */
export async function openSqliteStore(
  path: string,
  migrations: readonly Migration[] = MIGRATIONS,
  busyMs: number = LIMITS.storeBusyMs,
): Promise<Store> {
  const { writer, reader } = await openDatabase(path, migrations);
  return new SqliteStore(writer, reader, path, busyMs);
}
