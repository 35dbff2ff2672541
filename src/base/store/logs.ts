/** What is added to and never taken apart into rows of a collection: events, audit records, sums of usage. */
import { sql, type Kysely, type RawBuilder, type Selectable, type SqlBool } from "kysely";
import type { AuditRecord } from "../schema/audit.ts";
import type { EventType, VivEvent } from "../schema/event.ts";
import type { UsageRow } from "../schema/model.ts";
import type { RunEvent } from "../schema/run.ts";
import type { Statements } from "./statements.ts";
import type {
  AuditFilter,
  EventFilter,
  EventLog,
  GrowingAuditLog,
  GrowingRunEvents,
  GrowingUsageSums,
  RunEventFilter,
  UsageFilter,
} from "./store.ts";
import type { EventTable, Tables } from "./tables.ts";

export class StoredEvents implements EventLog {
  readonly #db: Kysely<Tables>;
  readonly #statements: Statements;

  constructor(db: Kysely<Tables>, statements: Statements) {
    this.#db = db;
    this.#statements = statements;
  }

  async list({ after, limit, sandbox }: EventFilter): Promise<VivEvent[]> {
    const all = this.#db.selectFrom("events").selectAll().where("sequence", ">", after);
    const asked = sandbox === undefined ? all : all.where("sandbox", "=", sandbox);
    return (await asked.orderBy("sequence").limit(limit).execute()).map(toEvent);
  }

  async range(): Promise<{ oldest: number; newest: number }> {
    const oldest = await this.#db.selectFrom("events").select("sequence").orderBy("sequence").limit(1).executeTakeFirst();
    const newest = await this.#db.selectFrom("events").select("sequence").orderBy("sequence", "desc").limit(1).executeTakeFirst();
    return { oldest: oldest?.sequence ?? 1, newest: newest?.sequence ?? 0 };
  }

  async append(type: EventType, sandbox: string | null, data: VivEvent["data"]): Promise<VivEvent> {
    const at = new Date().toISOString();
    const query = this.#statements.fill("append events", [at, type, sandbox, JSON.stringify(data)], () =>
      this.#db.insertInto("events").values({ at, type, sandbox: "", data: "" }).returning("sequence"),
    );
    const [row] = await this.#statements.run(query);
    return { sequence: row?.sequence ?? 0, at, type, sandbox, data };
  }

  async dropUpTo(sequence: number): Promise<void> {
    await this.#db.deleteFrom("events").where("sequence", "<=", sequence).execute();
  }
}

function toEvent(row: Selectable<EventTable>): VivEvent {
  return {
    sequence: row.sequence,
    at: row.at,
    type: row.type as EventType,
    sandbox: row.sandbox,
    data: JSON.parse(row.data) as VivEvent["data"],
  };
}

export class StoredAudit implements GrowingAuditLog {
  readonly #db: Kysely<Tables>;
  readonly #statements: Statements;

  constructor(db: Kysely<Tables>, statements: Statements) {
    this.#db = db;
    this.#statements = statements;
  }

  async list({ after, before, sandbox, action, limit, newest = false }: AuditFilter): Promise<AuditRecord[]> {
    let asked = this.#db.selectFrom("audit").select("body").where("sequence", ">", after);
    if (before !== undefined) asked = asked.where("sequence", "<", before);
    if (sandbox !== undefined) asked = asked.where("sandbox", "=", sandbox);
    if (action !== undefined) asked = asked.where(isAction(action));
    const sorted = asked.orderBy("sequence", newest ? "desc" : "asc").limit(limit);
    const found = (await sorted.execute()).map(toRecord);
    return newest ? found.toReversed() : found;
  }

  async newest(): Promise<AuditRecord | undefined> {
    const row = await this.#db.selectFrom("audit").select("body").orderBy("sequence", "desc").limit(1).executeTakeFirst();
    return row === undefined ? undefined : toRecord(row);
  }

  async append(records: readonly AuditRecord[]): Promise<void> {
    for (const record of records) {
      const query = this.#statements.fill("append audit", [record.sequence, record.sandbox, JSON.stringify(record)], () =>
        this.#db.insertInto("audit").values({ sequence: 0, sandbox: "", body: "" }),
      );
      await this.#statements.run(query);
    }
  }
}

/** The action is a part of the body: few ask for it, and records are many. */
function isAction(action: string): RawBuilder<SqlBool> {
  const found = sql<string>`json_extract(body, '$.action')`;
  if (!action.endsWith(".*")) return sql`${found} = ${action}`;
  const start = action.slice(0, -1);
  return sql`substr(${found}, 1, ${start.length}) = ${start}`;
}

function toRecord({ body }: { readonly body: string }): AuditRecord {
  return JSON.parse(body) as AuditRecord;
}

export class StoredRunEvents implements GrowingRunEvents {
  readonly #db: Kysely<Tables>;
  readonly #statements: Statements;

  constructor(db: Kysely<Tables>, statements: Statements) {
    this.#db = db;
    this.#statements = statements;
  }

  async list({ run, after, limit, newest = false }: RunEventFilter): Promise<RunEvent[]> {
    const asked = this.#db.selectFrom("run_events").select("body").where("run", "=", run).where("sequence", ">", after);
    const rows = await asked
      .orderBy("sequence", newest ? "desc" : "asc")
      .limit(limit)
      .execute();
    const events = rows.map(({ body }) => JSON.parse(body) as RunEvent);
    return newest ? events.toReversed() : events;
  }

  async append(run: string, events: readonly RunEvent[]): Promise<void> {
    for (const event of events) {
      const query = this.#statements.fill("append run events", [run, event.sequence, JSON.stringify(event)], () =>
        this.#db.insertInto("run_events").values({ run: "", sequence: 0, body: "" }),
      );
      await this.#statements.run(query);
    }
  }

  async remove(run: string): Promise<void> {
    await this.#db.deleteFrom("run_events").where("run", "=", run).execute();
  }
}

export class StoredUsage implements GrowingUsageSums {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  async list(filter: UsageFilter): Promise<UsageRow[]> {
    let asked = this.#db
      .selectFrom("usage")
      .select(["sandbox", "sandbox_name as name", "task", "project", "day", "provider", "model", "requests", "input_tokens as inputTokens"])
      .select(["output_tokens as outputTokens", "cache_read_tokens as cacheReadTokens", "cache_write_tokens as cacheWriteTokens"])
      .select("micro_dollars as microDollars")
      .orderBy("day", "desc")
      .orderBy("sandbox")
      .orderBy("provider")
      .orderBy("model");
    for (const [column, value] of chosen(filter)) asked = asked.where(column, "=", value);
    return asked.execute();
  }

  async spent(filter: UsageFilter): Promise<number> {
    let asked = this.#db.selectFrom("usage").select((sum) => sum.fn.sum<number | string | null>("micro_dollars").as("spent"));
    for (const [column, value] of chosen(filter)) asked = asked.where(column, "=", value);
    // Some databases give a sum as text, since it may be larger than their integers.
    return Number((await asked.executeTakeFirst())?.spent ?? 0);
  }

  async add(row: UsageRow): Promise<void> {
    const { sandbox, day, provider, model, task, project } = row;
    const sums = {
      requests: row.requests,
      input_tokens: row.inputTokens,
      output_tokens: row.outputTokens,
      cache_read_tokens: row.cacheReadTokens,
      cache_write_tokens: row.cacheWriteTokens,
      micro_dollars: row.microDollars,
    };
    const names = Object.keys(sums) as (keyof typeof sums)[];
    await this.#db
      .insertInto("usage")
      .values({ sandbox, day, provider, model, sandbox_name: row.name, task, project, ...sums })
      .onConflict((conflict) =>
        conflict
          .columns(["sandbox", "day", "provider", "model"])
          .doUpdateSet((present) => Object.fromEntries(names.map((name) => [name, present(`usage.${name}`, "+", sums[name])]))),
      )
      .execute();
  }
}

function chosen(filter: UsageFilter): (readonly ["sandbox" | "task" | "project" | "day", string])[] {
  const columns = ["sandbox", "task", "project", "day"] as const;
  return columns.flatMap((column) => {
    const value = filter[column];
    return value === undefined ? [] : [[column, value] as const];
  });
}
