/** kysely over node:sqlite: one connection, statements prepared once. */
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import {
  CompiledQuery,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  type QueryResult,
} from "kysely";
import { storeError } from "./errors.ts";

/** Enough for every statement the store has; lists of varying length do not occur in its SQL. */
const MAX_PREPARED = 200;

export class Connection implements DatabaseConnection {
  readonly #db: DatabaseSync;
  readonly #prepared = new Map<string, { statement: StatementSync; reads: boolean }>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    try {
      return Promise.resolve(this.#run<Row>(query));
    } catch (error) {
      return Promise.reject(storeError(error));
    }
  }

  #run<Row>(query: CompiledQuery): QueryResult<Row> {
    const { statement, reads } = this.#prepare(query.sql);
    const parameters = query.parameters as readonly SQLInputValue[];
    if (reads) return { rows: statement.all(...parameters) as Row[] };
    const { changes, lastInsertRowid } = statement.run(...parameters);
    return { rows: [], insertId: BigInt(lastInsertRowid), numAffectedRows: BigInt(changes) };
  }

  #prepare(sql: string): { statement: StatementSync; reads: boolean } {
    const known = this.#prepared.get(sql);
    if (known !== undefined) return known;
    const statement = this.#db.prepare(sql);
    const entry = { statement, reads: statement.columns().length > 0 };
    if (this.#prepared.size < MAX_PREPARED) this.#prepared.set(sql, entry);
    return entry;
  }

  async *streamQuery<Row>(query: CompiledQuery): AsyncIterableIterator<QueryResult<Row>> {
    yield await this.executeQuery<Row>(query);
  }
}

class SqliteDriver implements Driver {
  readonly #db: DatabaseSync;
  readonly #connection: Connection;

  constructor(db: DatabaseSync, connection: Connection) {
    this.#db = db;
    this.#connection = connection;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    return this.#connection;
  }

  /** Takes the write lock at once: a transaction that reads first and writes later fails with BUSY_SNAPSHOT, without waiting. */
  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw("begin immediate"));
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw("commit"));
  }

  /** SQLite rolls back by itself after some errors (disk full, I/O). */
  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#db.isTransaction) await connection.executeQuery(CompiledQuery.raw("rollback"));
  }

  async releaseConnection(): Promise<void> {}

  async destroy(): Promise<void> {
    if (this.#db.isOpen) this.#db.close();
  }
}

export function sqliteDialect(db: DatabaseSync, connection = new Connection(db)): Dialect {
  return {
    createDriver: () => new SqliteDriver(db, connection),
    createAdapter: () => new SqliteAdapter(),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createIntrospector: (kysely: Kysely<unknown>) => new SqliteIntrospector(kysely),
  };
}
