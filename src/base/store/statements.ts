/**
 * Queries that kysely builds once for each shape, and that go to the database without it: building one costs more than running it, and
 * so does the way through kysely's layers.
 */
import type { Compilable, CompiledQuery } from "kysely";

/** What all databases keep. */
export type Stored = string | number | null;

/** Built queries by their names; connections of one database have them in common. */
export type BuiltQueries = Map<string, CompiledQuery>;

export class Statements {
  readonly #built: BuiltQueries;
  readonly #send: (query: CompiledQuery) => Promise<{ readonly rows: unknown[] }>;

  /** `send` runs a query on a connection. */
  constructor(built: BuiltQueries, send: (query: CompiledQuery) => Promise<{ readonly rows: unknown[] }>) {
    this.#built = built;
    this.#send = send;
  }

  /** The query of this name with these parameters. `build` is called once for a name; its parameters only hold the places. */
  fill<Row>(name: string, parameters: readonly (Stored | Uint8Array)[], build: () => Compilable<Row>): CompiledQuery<Row> {
    let built = this.#built.get(name) as CompiledQuery<Row> | undefined;
    if (built === undefined) this.#built.set(name, (built = build().compile()));
    return { sql: built.sql, query: built.query, queryId: built.queryId, parameters };
  }

  async run<Row>(query: CompiledQuery<Row>): Promise<Row[]> {
    return (await this.#send(query)).rows as Row[];
  }
}
