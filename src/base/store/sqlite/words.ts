/** Words of conversations in a table of FTS5 without content: the text lies with its record, and only there. */
import { sql, type Kysely, type RawBuilder } from "kysely";
import type { SearchScope, WordIndex } from "../conversation-log.ts";
import type { Statements } from "../statements.ts";
import type { Tables } from "../tables.ts";

export class SqliteWords implements WordIndex {
  readonly #db: Kysely<Tables>;
  readonly #statements: Statements;

  constructor(db: Kysely<Tables>, statements: Statements) {
    this.#db = db;
    this.#statements = statements;
  }

  async add(id: number, text: string): Promise<void> {
    const query = this.#statements.fill("add words", [id, withParts(text)], () =>
      this.#db.insertInto("conversation_words").values({ rowid: 0, text: "" }),
    );
    await this.#statements.run(query);
  }

  async removeOf(conversation: number): Promise<void> {
    const records = this.#db.selectFrom("conversation_records").select("id").where("conversation", "=", conversation);
    await this.#db.deleteFrom("conversation_words").where("rowid", "in", records).execute();
  }

  async find(words: readonly string[], scope: SearchScope, limit: number): Promise<number[]> {
    const asked = expressionOf(words);
    if (asked === "") return [];
    const { rows } = await sql<{ id: number }>`
      select conversation_words.rowid as id from conversation_words
      join conversation_records on conversation_records.id = conversation_words.rowid
      join conversations on conversations.id = conversation_records.conversation
      where conversation_words match ${asked} ${within(scope)}
      order by conversation_words.rank, conversation_words.rowid desc limit ${limit}`.execute(this.#db);
    return rows.map(({ id }) => id);
  }
}

const NAME = /[A-Za-z0-9]{4,80}/g;
const HUMP = /([a-z0-9])(?=[A-Z])/g;
const MOST_NAMES = 1_000;

/** Names such as parseConfig are found by their parts, too. */
function withParts(text: string): string {
  const names = text.match(NAME)?.filter((name) => name.search(HUMP) !== -1) ?? [];
  return names.length === 0 ? text : `${text} ${names.slice(0, MOST_NAMES).join(" ").replace(HUMP, "$1 ")}`;
}

/** In quotes nothing is an operator of FTS5's language, and letters and digits can't end the quotes. */
function expressionOf(words: readonly string[]): string {
  const plain = words.map((word) => word.replace(/[^\p{L}\p{M}\p{N}]/gu, "")).filter((word) => word !== "");
  return plain.map((word) => `"${word}"`).join(" OR ");
}

function within({ run, project }: SearchScope): RawBuilder<unknown> {
  if (run !== undefined) return sql`and conversations.run = ${run}`;
  return project === undefined ? sql`` : sql`and conversations.project = ${project}`;
}
