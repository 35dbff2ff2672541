/** A collection as a table, in SQL that all databases understand. */
import type { Kysely } from "kysely";
import { COLLECTIONS, type CollectionName, type ColumnValue, type Declaration } from "./collections.ts";
import { VivError } from "../schema/errors.ts";
import type { Statements, Stored } from "./statements.ts";
import type { ChangeableCollection, ChangeableCollections, Where } from "./store.ts";
import type { Tables } from "./tables.ts";

type Columns = Readonly<Record<string, ColumnValue>>;

/** A part of a query's text depends on these; what is looked for is a parameter. */
interface QueryFilter {
  /** The database's names of the columns. */
  readonly columns: readonly string[];
  readonly values: readonly Stored[];
}

/** What the database calls the parts of a declared collection. */
class Table<Row> {
  readonly name: CollectionName;
  readonly id: string;
  /** The id first, the body last. */
  readonly columns: readonly string[];
  readonly order: { readonly by: string; readonly direction: "asc" | "desc" };
  /** Where rows are that are part of one of these. */
  readonly parts: readonly { readonly name: CollectionName; readonly column: string }[];
  readonly #declaration: Declaration<Row, Columns>;
  readonly #named: ReadonlyMap<string, string>;

  constructor(name: CollectionName, declaration: Declaration<Row, Columns>) {
    const { id, columns, order } = declaration;
    this.#declaration = declaration;
    this.#named = new Map(Object.keys(columns).map((column) => [column, snakeCase(column)]));
    this.name = name;
    this.id = snakeCase(id);
    this.columns = [this.id, ...this.#named.values(), "body"];
    this.order = { by: this.#named.get(order.by) ?? this.id, direction: order.direction };
    this.parts = partsOf(name);
  }

  readonly rowOf = ({ body }: { readonly body?: Stored }): Row => JSON.parse(String(body)) as Row;

  /** In the order of `columns`. */
  valuesOf(row: Row): Stored[] {
    const { id, columns } = this.#declaration;
    return [String(row[id]), ...Object.values(columns).map((column) => stored(column(row))), JSON.stringify(row)];
  }

  /** The names of columns become part of the query's text, so they come from the declaration alone. */
  asked(where: Readonly<Record<string, unknown>>): QueryFilter {
    const columns: string[] = [];
    const values: Stored[] = [];
    for (const [name, value] of Object.entries(where)) {
      if (value === undefined) continue;
      const column = this.#named.get(name);
      if (column === undefined) throw new VivError("internal", `Rows of ${this.name} are not found by ${name}.`);
      columns.push(column);
      values.push(stored(value as ColumnValue));
    }
    return { columns, values };
  }
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Booleans are kept as integers: not every database has them. */
function stored(value: ColumnValue): Stored {
  return typeof value === "boolean" ? Number(value) : value;
}

class StoredCollection<Row, Named extends Columns> implements ChangeableCollection<Row, Named> {
  readonly #db: Kysely<Tables>;
  readonly #statements: Statements;
  readonly #table: Table<Row>;

  constructor(db: Kysely<Tables>, statements: Statements, table: Table<Row>) {
    this.#db = db;
    this.#statements = statements;
    this.#table = table;
  }

  async get(id: string): Promise<Row | undefined> {
    const { name, id: column } = this.#table;
    const query = this.#statements.fill(`get ${name}`, [id], () => this.#db.selectFrom(name).select("body").where(column, "=", ""));
    const rows = await this.#statements.run(query);
    return rows.map(this.#table.rowOf)[0];
  }

  async find(where: Where<Named>): Promise<Row | undefined> {
    const [row] = await this.list(where, { limit: 1 });
    return row;
  }

  async list(where: Where<Named> = {}, { limit }: { readonly limit?: number | undefined } = {}): Promise<Row[]> {
    const { name, id, order } = this.#table;
    const { columns, values } = this.#table.asked(where);
    const isLimited = limit !== undefined;
    const parameters = isLimited ? [...values, limit] : values;
    const query = this.#statements.fill(`list ${name} ${columns.join()} ${isLimited}`, parameters, () => {
      const all = this.#db.selectFrom(name).select("body").orderBy(order.by, order.direction);
      const ordered = order.by === id ? all : all.orderBy(id, order.direction);
      const asked = columns.reduce((fitting, column) => fitting.where(column, "=", ""), ordered);
      return isLimited ? asked.limit(1) : asked;
    });
    return (await this.#statements.run(query)).map(this.#table.rowOf);
  }

  async count(where: Where<Named> = {}): Promise<number> {
    const { name } = this.#table;
    const { columns, values } = this.#table.asked(where);
    const query = this.#statements.fill(`count ${name} ${columns.join()}`, values, () => {
      const all = this.#db.selectFrom(name).select((select) => select.fn.countAll<number | string>().as("count"));
      return columns.reduce((asked, column) => asked.where(column, "=", ""), all);
    });
    const [row] = await this.#statements.run(query);
    return Number(row?.count ?? 0);
  }

  async has(where: Where<Named>): Promise<boolean> {
    const { name, id } = this.#table;
    const { columns, values } = this.#table.asked(where);
    const query = this.#statements.fill(`has ${name} ${columns.join()}`, [...values, 1], () => {
      const all = this.#db.selectFrom(name).select(id);
      return columns.reduce((asked, column) => asked.where(column, "=", ""), all).limit(1);
    });
    return (await this.#statements.run(query)).length > 0;
  }

  async put(row: Row): Promise<void> {
    const { name, id, columns } = this.#table;
    const query = this.#statements.fill(`put ${name}`, this.#table.valuesOf(row), () =>
      this.#db
        .insertInto(name)
        .values(Object.fromEntries(columns.map((column) => [column, ""])))
        .onConflict((conflict) =>
          conflict
            .column(id)
            .doUpdateSet((now) => Object.fromEntries(columns.slice(1).map((column) => [column, now.ref(`excluded.${column}`)]))),
        ),
    );
    await this.#statements.run(query);
  }

  async remove(id: string): Promise<void> {
    for (const { name, column } of [...this.#table.parts, { name: this.#table.name, column: this.#table.id }]) {
      const query = this.#statements.fill(`remove ${name} ${column}`, [id], () => this.#db.deleteFrom(name).where(column, "=", ""));
      await this.#statements.run(query);
    }
  }
}

type Declared = readonly [CollectionName, Declaration<never, Columns>];
const DECLARED = Object.entries(COLLECTIONS) as unknown as readonly Declared[];

function partsOf(owner: CollectionName): { name: CollectionName; column: string }[] {
  return DECLARED.flatMap(([name, { partOf }]) => (partOf?.collection === owner ? [{ name, column: snakeCase(partOf.column) }] : []));
}

const TABLES = DECLARED.map(([name, declaration]) => new Table(name, declaration));

/** Every collection that is declared, in the database behind `db`. */
export function collectionsIn(db: Kysely<Tables>, statements: Statements): ChangeableCollections {
  const all = TABLES.map((table) => [table.name, new StoredCollection(db, statements, table)]);
  return Object.fromEntries(all) as ChangeableCollections;
}
