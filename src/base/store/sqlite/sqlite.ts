/** The store on SQLite. Changes go through one connection, one after the other; reads through a second one that sees only what is committed. */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { Kysely } from "kysely";
import type { VivEvent } from "../../schema/event.ts";
import { LIMITS } from "../../schema/limits.ts";
import { MIGRATIONS, type Migration } from "../migrations.ts";
import { KeptAnswers } from "../kept-answers.ts";
import { KeptRows } from "../kept-rows.ts";
import { changesOf, dropOld, readsOf } from "../sql.ts";
import { Statements, type BuiltQueries } from "../statements.ts";
import type { Change, Store } from "../store.ts";
import type { Tables } from "../tables.ts";
import { Connection, sqliteDialect } from "./dialect.ts";
import { storeError } from "./errors.ts";
import { openDatabase, retryBusy } from "./open.ts";
import { SqliteWords } from "./words.ts";
import { WriteAheadLog } from "./write-ahead-log.ts";

/** One connection, for queries that are built as they are needed and for those that are built once. */
function connectionOf(database: DatabaseSync, built: BuiltQueries): { db: Kysely<Tables>; statements: Statements } {
  const connection = new Connection(database);
  const db = new Kysely<Tables>({ dialect: sqliteDialect(database, connection) });
  return { db, statements: new Statements(built, (query) => connection.executeQuery(query)) };
}

type EventsListener = (events: readonly VivEvent[]) => void;

/** Everything of the store that is not a read. */
class Transactions implements Pick<Store, "change" | "onEvents" | "sync" | "trim"> {
  readonly #database: DatabaseSync;
  /** Prepared once: each transaction runs both. */
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #db: Kysely<Tables>;
  readonly #statements: Statements;
  readonly #listeners = new Set<EventsListener>();
  readonly #log: WriteAheadLog;
  readonly #kept: KeptRows;
  readonly #answers: KeptAnswers;
  readonly #busyMs: number;
  /** One for all: a transaction has the connection to itself. */
  readonly #change: Change;
  /** Events of the transaction under way. */
  #written: VivEvent[] = [];
  #last: Promise<unknown> = Promise.resolve();

  constructor(database: DatabaseSync, built: BuiltQueries, kept: KeptRows, answers: KeptAnswers, path: string, busyMs: number) {
    const { db, statements } = connectionOf(database, built);
    const change = changesOf(db, statements, new SqliteWords(db, statements), (event) => this.#written.push(event));
    this.#database = database;
    this.#begin = database.prepare("begin immediate");
    this.#commit = database.prepare("commit");
    this.#db = db;
    this.#statements = statements;
    this.#kept = kept;
    this.#answers = answers;
    this.#change = {
      ...change,
      sandboxes: kept.change("sandboxes", "id", change.sandboxes),
      projects: kept.change("projects", "id", answers.change("projects", change.projects)),
      approvals: answers.change("approvals", change.approvals),
      bases: kept.change("bases", "id", change.bases),
    };
    this.#log = new WriteAheadLog(path);
    this.#busyMs = busyMs;
  }

  change<T>(work: (change: Change) => Promise<T>): Promise<T> {
    // From now on, not from its turn: else each that waits for a held database would wait for all before it, too.
    const until = performance.now() + this.#busyMs;
    return this.#inTurn(async () => {
      this.#written = [];
      const result = await this.#transact(() => work(this.#change), until);
      const written = this.#written;
      if (written.length > 0) for (const listener of this.#listeners) listener(written);
      return result;
    });
  }

  onEvents(listener: EventsListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  sync(): Promise<void> {
    return this.#log.sync();
  }

  trim(): Promise<void> {
    return this.#inTurn(() => this.#transact(() => dropOld(this.#db, this.#statements)));
  }

  async close(reader: DatabaseSync): Promise<void> {
    await this.#inTurn(async () => {
      await this.#log.close();
      // Not by kysely, which closes nothing that it was not asked to query.
      if (reader.isOpen) reader.close();
      if (this.#database.isOpen) this.#database.close();
    });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #transact<T>(work: () => Promise<T>, until?: number): Promise<T> {
    await retryBusy(() => this.#begin.run(), until);
    try {
      const result = await work();
      this.#commit.run();
      this.#kept.committed();
      this.#answers.committed();
      return result;
    } catch (error) {
      this.#kept.over();
      this.#answers.over();
      if (this.#database.isTransaction) this.#database.exec("rollback");
      throw storeError(error);
    }
  }
}

/** `busyMs` is how long a change waits for a database that something else holds. */
export async function openSqliteStore(
  path: string,
  migrations: readonly Migration[] = MIGRATIONS,
  busyMs: number = LIMITS.storeBusyMs,
): Promise<Store> {
  const { writer, reader } = await openDatabase(path, migrations);
  const built: BuiltQueries = new Map();
  const kept = new KeptRows();
  const answers = new KeptAnswers();
  const transactions = new Transactions(writer, built, kept, answers, path, busyMs);
  const { db: reading, statements } = connectionOf(reader, built);
  const reads = readsOf(reading, statements, new SqliteWords(reading, statements));
  return {
    ...reads,
    sandboxes: kept.read("sandboxes", "id", reads.sandboxes),
    projects: kept.read("projects", "id", answers.read("projects", reads.projects)),
    approvals: answers.read("approvals", reads.approvals),
    bases: kept.read("bases", "id", reads.bases),
    change: (work) => transactions.change(work),
    onEvents: (listener) => transactions.onEvents(listener),
    sync: () => transactions.sync(),
    trim: () => transactions.trim(),
    close: () => transactions.close(reader),
  };
}
