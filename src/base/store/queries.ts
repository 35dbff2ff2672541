/** Every query of the store, in SQL that all databases understand. */
import { CompiledQuery, type Insertable, type Kysely, type Selectable } from "kysely";
import type { Base } from "./rows.ts";
import type { Approval } from "../schema/approval.ts";
import type { AuditRecord } from "../schema/audit.ts";
import type { Command } from "../schema/command.ts";
import type { Effect } from "../schema/effect.ts";
import type { UsageRow } from "../schema/model.ts";
import type { EventType, VivEvent } from "../schema/event.ts";
import type { ApprovalFilter, AuditFilter, Change, EventFilter, Read, RecordFilter, UsageFilter } from "./store.ts";
import type { ExperimentRow, ProjectRow, PromotionRow, SandboxRow, SecretRow, SnapshotRow } from "./rows.ts";
import type { EventTable, Tables } from "./tables.ts";

/** What the store wrote it trusts when it reads. */
function body<Row>(row: { body: string } | undefined): Row | undefined {
  return row === undefined ? undefined : (JSON.parse(row.body) as Row);
}

function bodies<Row>(rows: readonly { body: string }[]): Row[] {
  return rows.map((row) => JSON.parse(row.body) as Row);
}

function chosen(filter: UsageFilter): (readonly ["sandbox" | "task" | "project" | "day", string])[] {
  const columns = ["sandbox", "task", "project", "day"] as const;
  return columns.flatMap((column) => {
    const value = filter[column];
    return value === undefined ? [] : [[column, value] as const];
  });
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

/** Tables whose rows are one JSON text, beside the columns they are found by. */
type Kept = "sandboxes" | "commands" | "snapshots" | "bases" | "experiments" | "promotions" | "approvals";

export class Queries implements Read {
  readonly db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.db = db;
  }

  /** Written out: with every request some of these run, and building one costs more than running it. */
  async #one<Row, Table extends Kept>(table: Table, column: keyof Tables[Table] & string, value: string): Promise<Row | undefined> {
    const query = CompiledQuery.raw(`select body from ${table} where ${column} = ?`, [value]);
    return body((await this.db.executeQuery<{ body: string }>(query)).rows[0]);
  }

  async sandbox(id: string): Promise<SandboxRow | undefined> {
    return this.#one("sandboxes", "id", id);
  }

  async sandboxByName(name: string): Promise<SandboxRow | undefined> {
    return this.#one("sandboxes", "name", name);
  }

  async sandboxByIdempotencyKey(key: string): Promise<SandboxRow | undefined> {
    return this.#one("sandboxes", "idempotency_key", key);
  }

  async sandboxes(): Promise<SandboxRow[]> {
    return bodies(await this.db.selectFrom("sandboxes").select("body").orderBy("created_at").orderBy("id").execute());
  }

  async command(id: string): Promise<Command | undefined> {
    return this.#one("commands", "id", id);
  }

  async commands(sandbox: string, runningOnly: boolean): Promise<Command[]> {
    const all = this.db.selectFrom("commands").select("body").where("sandbox", "=", sandbox);
    const asked = runningOnly ? all.where("running", "=", 1) : all;
    return bodies(await asked.orderBy("started_at").orderBy("id").execute());
  }

  async snapshot(id: string): Promise<SnapshotRow | undefined> {
    return this.#one("snapshots", "id", id);
  }

  async snapshots(sandbox?: string): Promise<SnapshotRow[]> {
    const all = this.db.selectFrom("snapshots").select("body");
    const asked = sandbox === undefined ? all : all.where("sandbox", "=", sandbox);
    return bodies(await asked.orderBy("created_at").orderBy("id").execute());
  }

  async base(id: string): Promise<Base | undefined> {
    return this.#one("bases", "id", id);
  }

  async bases(): Promise<Base[]> {
    return bodies(await this.db.selectFrom("bases").select("body").orderBy("taken_at").orderBy("id").execute());
  }

  async isBaseNeeded(id: string): Promise<boolean> {
    if ((await this.#has("sandboxes", "base", id)) || (await this.#has("sandboxes", "refreshed_to", id))) return true;
    return this.#has("snapshots", "refreshed_to", id);
  }

  async isProjectUsed(path: string): Promise<boolean> {
    return this.#has("sandboxes", "project", path);
  }

  async #has<Table extends Kept>(table: Table, column: keyof Tables[Table] & string, value: string): Promise<boolean> {
    const query = CompiledQuery.raw(`select 1 as found from ${table} where ${column} = ? limit 1`, [value]);
    return (await this.db.executeQuery(query)).rows.length > 0;
  }

  async experiment(id: string): Promise<ExperimentRow | undefined> {
    return this.#one("experiments", "id", id);
  }

  async experiments(filter: RecordFilter): Promise<ExperimentRow[]> {
    return bodies(await this.#records("experiments", filter));
  }

  async promotion(id: string): Promise<PromotionRow | undefined> {
    return this.#one("promotions", "id", id);
  }

  async promotions(filter: RecordFilter): Promise<PromotionRow[]> {
    return bodies(await this.#records("promotions", filter));
  }

  async #records(table: "experiments" | "promotions", { project, open, limit }: RecordFilter): Promise<{ body: string }[]> {
    let asked = this.db.selectFrom(table).select("body").orderBy("created_at", "desc").orderBy("id", "desc");
    if (project !== undefined) asked = asked.where("project", "=", project);
    if (open === true) asked = asked.where("open", "=", 1);
    return (limit === undefined ? asked : asked.limit(limit)).execute();
  }

  async approval(id: string): Promise<Approval | undefined> {
    return this.#one("approvals", "id", id);
  }

  async approvals({ state, hash, scope }: ApprovalFilter): Promise<Approval[]> {
    let asked = this.db.selectFrom("approvals").select("body").orderBy("asked_at", "desc").orderBy("id");
    if (state !== undefined) asked = asked.where("state", "=", state);
    if (hash !== undefined) asked = asked.where("hash", "=", hash);
    if (scope !== undefined) asked = asked.where("scope", "=", scope);
    return bodies(await asked.execute());
  }

  async audit({ after, before, sandbox, limit, newest = false }: AuditFilter): Promise<AuditRecord[]> {
    let asked = this.db.selectFrom("audit").select("body").where("sequence", ">", after);
    if (before !== undefined) asked = asked.where("sequence", "<", before);
    if (sandbox !== undefined) asked = asked.where("sandbox", "=", sandbox);
    const found = bodies<AuditRecord>(
      await asked
        .orderBy("sequence", newest ? "desc" : "asc")
        .limit(limit)
        .execute(),
    );
    return newest ? found.toReversed() : found;
  }

  async newestAudit(): Promise<AuditRecord | undefined> {
    return body(await this.db.selectFrom("audit").select("body").orderBy("sequence", "desc").limit(1).executeTakeFirst());
  }

  async effects({ sandbox, limit }: { sandbox?: string | undefined; limit: number }): Promise<Effect[]> {
    const all = this.db.selectFrom("effects").select("body").orderBy("at", "desc").orderBy("id").limit(limit);
    return bodies(await (sandbox === undefined ? all : all.where("sandbox", "=", sandbox)).execute());
  }

  async secrets(): Promise<SecretRow[]> {
    return bodies(await this.db.selectFrom("secrets").select("body").orderBy("name").execute());
  }

  async usage(filter: UsageFilter): Promise<UsageRow[]> {
    let asked = this.db
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
    let asked = this.db.selectFrom("usage").select((sum) => sum.fn.sum<number | null>("micro_dollars").as("spent"));
    for (const [column, value] of chosen(filter)) asked = asked.where(column, "=", value);
    return (await asked.executeTakeFirst())?.spent ?? 0;
  }

  async project(id: string): Promise<ProjectRow | undefined> {
    return this.db.selectFrom("projects").selectAll().where("id", "=", id).executeTakeFirst();
  }

  async projectByPath(path: string): Promise<ProjectRow | undefined> {
    return this.db.selectFrom("projects").selectAll().where("path", "=", path).executeTakeFirst();
  }

  async projects(): Promise<ProjectRow[]> {
    return this.db.selectFrom("projects").selectAll().orderBy("path").execute();
  }

  async events(filter: EventFilter): Promise<VivEvent[]> {
    const all = this.db.selectFrom("events").selectAll().where("sequence", ">", filter.after);
    const asked = filter.sandbox === undefined ? all : all.where("sandbox", "=", filter.sandbox);
    return (await asked.orderBy("sequence").limit(filter.limit).execute()).map(toEvent);
  }

  /** An empty log is the range 1 to 0. */
  async eventRange(): Promise<{ oldest: number; newest: number }> {
    const oldest = await this.db.selectFrom("events").select("sequence").orderBy("sequence").limit(1).executeTakeFirst();
    const newest = await this.db.selectFrom("events").select("sequence").orderBy("sequence", "desc").limit(1).executeTakeFirst();
    return { oldest: oldest?.sequence ?? 1, newest: newest?.sequence ?? 0 };
  }
}

export class Changes extends Queries implements Change {
  /** Events of this transaction, to be published once it is committed. */
  readonly written: VivEvent[] = [];

  /** In place of what has the same key. */
  async #put<Table extends keyof Tables>(table: Table, key: keyof Tables[Table] & string, row: Insertable<Tables[Table]>): Promise<void> {
    const names = Object.keys(row);
    const others = names.filter((name) => name !== key).map((name) => `${name} = excluded.${name}`);
    const sql = `insert into ${table} (${names.join(", ")}) values (${names.map(() => "?").join(", ")}) on conflict (${key}) do update set ${others.join(", ")}`;
    await this.db.executeQuery(CompiledQuery.raw(sql, Object.values(row)));
  }

  async putSandbox(row: SandboxRow): Promise<void> {
    await this.#put("sandboxes", "id", {
      id: row.id,
      name: row.name,
      state: row.state,
      idempotency_key: row.idempotencyKey,
      created_at: row.createdAt,
      project: row.project,
      base: row.base,
      refreshed_to: row.refreshedTo ?? null,
      body: JSON.stringify(row),
    });
  }

  async removeSandbox(id: string): Promise<void> {
    await this.db.deleteFrom("commands").where("sandbox", "=", id).execute();
    await this.db.deleteFrom("sandboxes").where("id", "=", id).execute();
  }

  async putCommand(command: Command): Promise<void> {
    await this.#put("commands", "id", {
      id: command.id,
      sandbox: command.sandbox,
      running: command.running ? 1 : 0,
      started_at: command.startedAt,
      body: JSON.stringify(command),
    });
  }

  async putSnapshot(snapshot: SnapshotRow): Promise<void> {
    await this.#put("snapshots", "id", {
      id: snapshot.id,
      sandbox: snapshot.sandbox,
      created_at: snapshot.createdAt,
      refreshed_to: snapshot.refreshedTo ?? null,
      body: JSON.stringify(snapshot),
    });
  }

  async removeSnapshot(id: string): Promise<void> {
    await this.db.deleteFrom("snapshots").where("id", "=", id).execute();
  }

  async putBase(base: Base): Promise<void> {
    await this.#put("bases", "id", { id: base.id, project: base.project, taken_at: base.takenAt, body: JSON.stringify(base) });
  }

  async removeBase(id: string): Promise<void> {
    await this.db.deleteFrom("bases").where("id", "=", id).execute();
  }

  async putExperiment(row: ExperimentRow): Promise<void> {
    const open = ["queued", "running", "choosing"].includes(row.state) ? 1 : 0;
    await this.#put("experiments", "id", { id: row.id, project: row.project, open, created_at: row.createdAt, body: JSON.stringify(row) });
  }

  async removeExperiment(id: string): Promise<void> {
    await this.db.deleteFrom("experiments").where("id", "=", id).execute();
  }

  async putPromotion(row: PromotionRow): Promise<void> {
    const isWaiting = row.stages.some(({ state }) => state === "waiting");
    const open = row.writing || isWaiting || ["planning", "waiting", "applying"].includes(row.state) ? 1 : 0;
    await this.#put("promotions", "id", { id: row.id, project: row.project, open, created_at: row.createdAt, body: JSON.stringify(row) });
  }

  async putApproval(approval: Approval): Promise<void> {
    await this.#put("approvals", "id", {
      id: approval.id,
      state: approval.state,
      hash: approval.hash,
      scope: approval.scope,
      asked_at: approval.askedAt,
      body: JSON.stringify(approval),
    });
  }

  async appendAudit(records: readonly AuditRecord[]): Promise<void> {
    for (const record of records) {
      const row = [record.sequence, record.sandbox, JSON.stringify(record)];
      await this.db.executeQuery(CompiledQuery.raw("insert into audit (sequence, sandbox, body) values (?, ?, ?)", row));
    }
  }

  async putEffect(effect: Effect): Promise<void> {
    await this.#put("effects", "id", { id: effect.id, sandbox: effect.sandbox, at: effect.at, body: JSON.stringify(effect) });
  }

  async putSecret(row: SecretRow): Promise<void> {
    await this.#put("secrets", "name", { name: row.name, body: JSON.stringify(row) });
  }

  async removeSecret(name: string): Promise<void> {
    await this.db.deleteFrom("secrets").where("name", "=", name).execute();
  }

  async addUsage(row: UsageRow): Promise<void> {
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
    await this.db
      .insertInto("usage")
      .values({ sandbox, day, provider, model, sandbox_name: row.name, task, project, ...sums })
      .onConflict((conflict) =>
        conflict
          .columns(["sandbox", "day", "provider", "model"])
          .doUpdateSet((present) => Object.fromEntries(names.map((name) => [name, present(`usage.${name}`, "+", sums[name])]))),
      )
      .execute();
  }

  async putProject(project: ProjectRow): Promise<void> {
    await this.#put("projects", "id", { id: project.id, path: project.path, trusted: project.trusted });
  }

  async removeProject(id: string): Promise<void> {
    await this.db.deleteFrom("projects").where("id", "=", id).execute();
  }

  async event(type: EventType, sandbox: string | null, data: VivEvent["data"] = {}): Promise<void> {
    const at = new Date().toISOString();
    const row = { at, type, sandbox, data: JSON.stringify(data) };
    const { sequence } = await this.db.insertInto("events").values(row).returning("sequence").executeTakeFirstOrThrow();
    this.written.push({ sequence, at, type, sandbox, data });
  }

  /** Of each sandbox with more commands than that, the oldest that have ended. */
  async dropCommandsBeyond(most: number): Promise<void> {
    const counted = this.db.selectFrom("commands").select("sandbox").groupBy("sandbox");
    for (const { sandbox } of await counted.having((one) => one.fn.countAll(), ">", most).execute()) {
      const ended = this.db.selectFrom("commands").select("started_at").where("sandbox", "=", sandbox).where("running", "=", 0);
      const last = await ended.orderBy("started_at", "desc").offset(most).limit(1).executeTakeFirst();
      if (last === undefined) continue;
      await this.db
        .deleteFrom("commands")
        .where("sandbox", "=", sandbox)
        .where("running", "=", 0)
        .where("started_at", "<=", last.started_at)
        .execute();
    }
  }

  async dropEventsUpTo(sequence: number): Promise<void> {
    await this.db.deleteFrom("events").where("sequence", "<=", sequence).execute();
  }
}
