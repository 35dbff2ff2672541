/** Queries that kysely builds once for each shape: building one costs more than running it. */
import type { Compilable, CompiledQuery } from "kysely";

/** What all databases keep. */
export type Stored = string | number | null;

export class Statements {
  readonly #compiled = new Map<string, CompiledQuery>();

  /** The query of this name with these parameters. `build` is called once for a name; its parameters only hold the places. */
  fill<Row>(name: string, parameters: readonly (Stored | Uint8Array)[], build: () => Compilable<Row>): CompiledQuery<Row> {
    const known = this.#compiled.get(name) as CompiledQuery<Row> | undefined;
    const compiled = known ?? build().compile();
    if (known === undefined) this.#compiled.set(name, compiled);
    return { ...compiled, parameters };
  }
}
