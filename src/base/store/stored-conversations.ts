/** Conversations as tables: one row for each, one for each record, and vectors beside the records. */
import { sql, type Kysely } from "kysely";
import type { ConversationRecord } from "../schema/conversation.ts";
import type {
  ConversationOf,
  ConversationSearch,
  ConversationSums,
  FoundRecord,
  GrowingConversationLog,
  NewRecord,
  RecordHead,
  RecordRange,
  SearchScope,
  StoredVector,
  WordIndex,
} from "./conversation-log.ts";
import type { Statements } from "./statements.ts";
import type { Tables } from "./tables.ts";

const HEAD = ["sequence", "role", "kind", "tokens", "call_id as callId"] as const;

export class StoredConversations implements GrowingConversationLog {
  readonly #db: Kysely<Tables>;
  readonly #statements: Statements;
  readonly #words: WordIndex;
  readonly search: ConversationSearch;

  constructor(db: Kysely<Tables>, statements: Statements, words: WordIndex) {
    this.#db = db;
    this.#statements = statements;
    this.#words = words;
    this.search = new StoredSearch(db, words);
  }

  async sums(run: string, first = Infinity): Promise<ConversationSums | undefined> {
    const all = await this.#db
      .selectFrom("conversations")
      .select(["project", "records", "tokens"])
      .where("run", "=", run)
      .executeTakeFirst();
    if (all === undefined || all.records <= first) return all;
    const later = this.#between({ run, after: first, limit: all.records }).select("tokens");
    const { tokens } = await this.#db
      .selectFrom(later.as("later"))
      .select(({ fn }) => fn.sum<number>("tokens").as("tokens"))
      .executeTakeFirstOrThrow();
    return { ...all, records: first, tokens: all.tokens - tokens };
  }

  async list(range: RecordRange): Promise<ConversationRecord[]> {
    const rows = await this.#between(range).select(["sequence", "body"]).orderBy("sequence").execute();
    return rows.map(toRecord);
  }

  async heads(range: RecordRange): Promise<RecordHead[]> {
    return (await this.#between(range).select(HEAD).orderBy("sequence", "desc").execute()) as RecordHead[];
  }

  async pinned(range: RecordRange): Promise<RecordHead[]> {
    const all = this.#between(range).where("pinned", "=", sql.lit(1));
    return (await all.select(HEAD).orderBy("sequence", "desc").execute()) as RecordHead[];
  }

  async callBefore(run: string, callId: string, sequence: number): Promise<RecordHead | undefined> {
    const calls = this.#between({ run, before: sequence, limit: 1 }).where("call_id", "=", callId).where("kind", "=", "tool-call");
    return (await calls.select(HEAD).orderBy("sequence", "desc").executeTakeFirst()) as RecordHead | undefined;
  }

  async get(run: string, sequence: number): Promise<ConversationRecord | undefined> {
    const query = this.#statements.fill("get record", [run, sequence], () =>
      this.#db
        .selectFrom("conversation_records")
        .select(["sequence", "body"])
        .where("conversation", "=", this.#idOf(""))
        .where("sequence", "=", 0),
    );
    return (await this.#statements.run(query)).map(toRecord)[0];
  }

  async append({ run, project }: ConversationOf, records: readonly NewRecord[]): Promise<number> {
    const tokens = records.reduce((sum, record) => sum + record.tokens, 0);
    const { id, newest } = await this.#grow(run, project, records.length, tokens);
    let sequence = newest - records.length;
    for (const record of records) await this.#words.add(await this.#add(id, (sequence += 1), record), record.text);
    return newest;
  }

  /** Makes place for more records at the end: the sums say which numbers are free. */
  async #grow(run: string, project: string, records: number, tokens: number): Promise<{ id: number; newest: number }> {
    const query = this.#statements.fill("grow conversation", [run, project, records, tokens], () =>
      this.#db
        .insertInto("conversations")
        .values({ run, project, records, tokens })
        .onConflict((conflict) =>
          conflict.column("run").doUpdateSet((present) => ({
            records: present("conversations.records", "+", present.ref("excluded.records")),
            tokens: present("conversations.tokens", "+", present.ref("excluded.tokens")),
          })),
        )
        .returning(["id", "records as newest"]),
    );
    const [row] = await this.#statements.run(query);
    return row ?? { id: 0, newest: 0 };
  }

  /** The body holds all of it as JSON, in which every character survives. */
  async #add(conversation: number, sequence: number, record: NewRecord): Promise<number> {
    const { role, kind, tokens, callId, pinned } = record;
    const values = [conversation, sequence, role, kind, tokens, callId, Number(pinned), JSON.stringify(record)];
    const query = this.#statements.fill("append record", values, () =>
      this.#db
        .insertInto("conversation_records")
        .values({ conversation, sequence, role, kind, tokens, call_id: "", pinned: 0, body: "" })
        .returning("id"),
    );
    const [row] = await this.#statements.run(query);
    return row?.id ?? 0;
  }

  async addVectors(embedder: string, vectors: readonly StoredVector[]): Promise<void> {
    for (const { id, vector } of vectors) {
      const query = this.#statements.fill("add vector", [embedder, id, vector], () =>
        this.#db.insertInto("conversation_vectors").values({ embedder, record: id, vector }),
      );
      await this.#statements.run(query);
    }
  }

  async remove(run: string): Promise<void> {
    const row = await this.#db.selectFrom("conversations").select("id").where("run", "=", run).executeTakeFirst();
    if (row === undefined) return;
    await this.#words.removeOf(row.id);
    const records = this.#db.selectFrom("conversation_records").select("id").where("conversation", "=", row.id);
    await this.#db.deleteFrom("conversation_vectors").where("record", "in", records).execute();
    await this.#db.deleteFrom("conversation_records").where("conversation", "=", row.id).execute();
    await this.#db.deleteFrom("conversations").where("id", "=", row.id).execute();
  }

  #idOf(run: string) {
    return this.#db.selectFrom("conversations").select("id").where("run", "=", run);
  }

  #between({ run, after = 0, before, limit }: RecordRange) {
    const all = this.#db.selectFrom("conversation_records").where("conversation", "=", this.#idOf(run)).where("sequence", ">", after);
    return (before === undefined ? all : all.where("sequence", "<", before)).limit(limit);
  }
}

class StoredSearch implements ConversationSearch {
  readonly #db: Kysely<Tables>;
  readonly #index: WordIndex;

  constructor(db: Kysely<Tables>, index: WordIndex) {
    this.#db = db;
    this.#index = index;
  }

  words(words: readonly string[], scope: SearchScope, limit: number): Promise<number[]> {
    return this.#index.find(words, scope, limit);
  }

  async vectors(embedder: string, { run, project }: SearchScope, after: number, limit: number): Promise<StoredVector[]> {
    const all = this.#db.selectFrom("conversation_vectors").where("embedder", "=", embedder).where("record", ">", after);
    const page = all.select(["record as id", "vector"]).orderBy("record").limit(limit);
    if (run === undefined && project === undefined) return page.execute();
    const conversations = this.#db.selectFrom("conversations").select("id");
    const asked = run === undefined ? conversations.where("project", "=", project ?? "") : conversations.where("run", "=", run);
    const records = this.#db.selectFrom("conversation_records").select("id").where("conversation", "in", asked);
    return page.where("record", "in", records.where("id", ">", after)).execute();
  }

  /** Vectors are made in the order of ids, so that those without one are the newest. */
  async withoutVector(embedder: string, limit: number): Promise<{ id: number; text: string }[]> {
    const newest = this.#db
      .selectFrom("conversation_vectors")
      .select((most) => sql<number>`coalesce(${most.fn.max("record")}, 0)`.as("newest"))
      .where("embedder", "=", embedder);
    const all = this.#db.selectFrom("conversation_records").select(["id", "sequence", "body"]).where("id", ">", newest);
    return (await all.orderBy("id").limit(limit).execute()).map((row) => ({ id: row.id, text: toRecord(row).text }));
  }

  async get(id: number): Promise<FoundRecord | undefined> {
    const row = await this.#db
      .selectFrom("conversation_records")
      .innerJoin("conversations", "conversations.id", "conversation_records.conversation")
      .select(["conversation_records.sequence", "conversation_records.body", "conversations.run", "conversations.project"])
      .where("conversation_records.id", "=", id)
      .executeTakeFirst();
    return row === undefined ? undefined : { id, run: row.run, project: row.project, record: toRecord(row) };
  }
}

function toRecord({ sequence, body }: { readonly sequence: number; readonly body: string }): ConversationRecord {
  return { sequence, ...(JSON.parse(body) as NewRecord) };
}
