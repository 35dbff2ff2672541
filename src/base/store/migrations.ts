/** The schema's history. Only ever appended to: the number of entries is the schema's version. */
import { sql, type CreateTableBuilder, type Kysely } from "kysely";

export type Migration = (db: Kysely<unknown>) => Promise<void>;

async function firstTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("sandboxes")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("name", "text", (column) => column.notNull().unique())
    .addColumn("state", "text", (column) => column.notNull())
    .addColumn("idempotency_key", "text", (column) => column.unique())
    .addColumn("created_at", "text", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .execute();
  await db.schema
    .createTable("commands")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("sandbox", "text", (column) => column.notNull())
    .addColumn("running", "integer", (column) => column.notNull())
    .addColumn("started_at", "text", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("commands_sandbox").on("commands").columns(["sandbox", "running", "started_at"]).execute();
  await db.schema
    .createTable("snapshots")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("sandbox", "text", (column) => column.notNull())
    .addColumn("created_at", "text", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("snapshots_sandbox").on("snapshots").columns(["sandbox", "created_at"]).execute();
  await db.schema
    .createTable("bases")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("project", "text", (column) => column.notNull())
    .addColumn("taken_at", "text", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .execute();
  await db.schema
    .createTable("projects")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("path", "text", (column) => column.notNull().unique())
    .addColumn("trusted", "text")
    .execute();
  await db.schema
    .createTable("events")
    .addColumn("sequence", "integer", (column) => column.primaryKey().autoIncrement())
    .addColumn("at", "text", (column) => column.notNull())
    .addColumn("type", "text", (column) => column.notNull())
    .addColumn("sandbox", "text")
    .addColumn("data", "text", (column) => column.notNull())
    .execute();
  await db.schema
    .createIndex("events_sandbox")
    .on("events")
    .columns(["sandbox", "sequence"])
    .where(sql.ref("sandbox"), "is not", null)
    .execute();
}

async function experimentsAndPromotions(db: Kysely<unknown>): Promise<void> {
  for (const table of ["experiments", "promotions"]) {
    await db.schema
      .createTable(table)
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("project", "text", (column) => column.notNull())
      .addColumn("open", "integer", (column) => column.notNull())
      .addColumn("created_at", "text", (column) => column.notNull())
      .addColumn("body", "text", (column) => column.notNull())
      .execute();
    await db.schema.createIndex(`${table}_open`).on(table).columns(["open", "created_at"]).execute();
    await db.schema.createIndex(`${table}_project`).on(table).columns(["project", "created_at"]).execute();
  }
}

/** Never changed and never trimmed: there is no query that does. */
async function auditTrail(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("audit")
    .addColumn("sequence", "integer", (column) => column.primaryKey())
    .addColumn("sandbox", "text")
    .addColumn("body", "text", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("audit_sandbox").on("audit").columns(["sandbox", "sequence"]).execute();
}

async function approvals(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("approvals")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("state", "text", (column) => column.notNull())
    .addColumn("hash", "text", (column) => column.notNull())
    .addColumn("scope", "text")
    .addColumn("asked_at", "text", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .execute();
  for (const column of ["state", "hash", "scope"])
    await db.schema.createIndex(`approvals_${column}`).on("approvals").columns([column, "asked_at"]).execute();
}

async function secretsUsageAndEffects(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("effects")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("sandbox", "text", (column) => column.notNull())
    .addColumn("at", "text", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("effects_sandbox").on("effects").columns(["sandbox", "at"]).execute();
  await db.schema
    .createTable("secrets")
    .addColumn("name", "text", (column) => column.primaryKey())
    .addColumn("body", "text", (column) => column.notNull())
    .execute();
  let usage: CreateTableBuilder<"usage", string> = db.schema.createTable("usage");
  for (const name of ["sandbox", "day", "provider", "model", "sandbox_name", "project"])
    usage = usage.addColumn(name, "text", (column) => column.notNull());
  usage = usage.addColumn("task", "text");
  for (const name of ["requests", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "micro_dollars"])
    usage = usage.addColumn(name, "integer", (column) => column.notNull());
  await usage.addPrimaryKeyConstraint("usage_key", ["sandbox", "day", "provider", "model"]).execute();
  for (const column of ["day", "project", "task"]) await db.schema.createIndex(`usage_${column}`).on("usage").column(column).execute();
}

/** Which base and which project a row needs, to be asked without reading every row. */
async function needs(db: Kysely<unknown>): Promise<void> {
  const columns = { sandboxes: ["project", "base", "refreshed_to"], snapshots: ["refreshed_to"] } as const;
  for (const [table, names] of Object.entries(columns))
    for (const name of names) {
      await db.schema.alterTable(table).addColumn(name, "text").execute();
      await db.schema.createIndex(`${table}_${name}`).on(table).column(name).execute();
    }
  const { rows: sandboxes } = await sql<{ id: string; body: string }>`select id, body from sandboxes`.execute(db);
  for (const { id, body } of sandboxes) {
    const { project, base, refreshedTo = null } = JSON.parse(body) as { project: string; base: string; refreshedTo?: string };
    await sql`update sandboxes set project = ${project}, base = ${base}, refreshed_to = ${refreshedTo} where id = ${id}`.execute(db);
  }
  const { rows: snapshots } = await sql<{ id: string; body: string }>`select id, body from snapshots`.execute(db);
  for (const { id, body } of snapshots) {
    const { refreshedTo = null } = JSON.parse(body) as { refreshedTo?: string };
    await sql`update snapshots set refreshed_to = ${refreshedTo} where id = ${id}`.execute(db);
  }
}

/** Secrets of before have no projects: whichever uses one next, a person is asked. */
async function projectsOfSecrets(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ name: string; body: string }>`select name, body from secrets`.execute(db);
  for (const { name, body } of rows) {
    const scoped = JSON.stringify({ ...(JSON.parse(body) as object), projects: [] });
    await sql`update secrets set body = ${scoped} where name = ${name}`.execute(db);
  }
}

/** Projects become rows like all others. */
async function bodiesOfProjects(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable("projects")
    .addColumn("body", "text", (column) => column.notNull().defaultTo("{}"))
    .execute();
  const { rows } = await sql<{ id: string; path: string; trusted: string | null }>`select id, path, trusted from projects`.execute(db);
  for (const { id, path, trusted } of rows)
    await sql`update projects set body = ${JSON.stringify({ id, path, trusted })} where id = ${id}`.execute(db);
  await db.schema.alterTable("projects").dropColumn("trusted").execute();
}

/** Which sandbox asks, so that what waits for one is counted without reading what waits for all. */
async function sandboxesOfApprovals(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable("approvals").addColumn("sandbox", "text").execute();
  await db.schema.createIndex("approvals_sandbox").on("approvals").columns(["sandbox", "state", "asked_at"]).execute();
  const { rows } = await sql<{ id: string; body: string }>`select id, body from approvals`.execute(db);
  for (const { id, body } of rows) {
    const { sandbox } = JSON.parse(body) as { sandbox: string | null };
    await sql`update approvals set sandbox = ${sandbox} where id = ${id}`.execute(db);
  }
}

/** Runs of agents, their events and what was said to them. */
async function runs(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("runs")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("project", "text", (column) => column.notNull())
    .addColumn("sandbox", "text")
    .addColumn("experiment", "text")
    .addColumn("open", "integer", (column) => column.notNull())
    .addColumn("created_at", "text", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("runs_open").on("runs").columns(["open", "created_at"]).execute();
  await db.schema.createIndex("runs_sandbox").on("runs").column("sandbox").execute();
  await db.schema.createIndex("runs_experiment").on("runs").column("experiment").execute();
  await db.schema
    .createTable("runMessages")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("run", "text", (column) => column.notNull())
    .addColumn("sequence", "integer", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("run_messages_run").on("runMessages").columns(["run", "sequence"]).execute();
  await db.schema
    .createTable("run_events")
    .addColumn("run", "text", (column) => column.notNull())
    .addColumn("sequence", "integer", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .addPrimaryKeyConstraint("run_events_place", ["run", "sequence"])
    .execute();
}

/** Secrets of before are keys. */
async function kindsOfSecrets(db: Kysely<unknown>): Promise<void> {
  await sql`update secrets set body = json_set(body, '$.kind', 'key')`.execute(db);
}

/** What was said and done in runs, with its words, and vectors for its meaning. */
async function conversations(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("conversations")
    .addColumn("id", "integer", (column) => column.primaryKey().autoIncrement())
    .addColumn("run", "text", (column) => column.notNull().unique())
    .addColumn("project", "text", (column) => column.notNull())
    .addColumn("records", "integer", (column) => column.notNull())
    .addColumn("tokens", "integer", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("conversations_project").on("conversations").column("project").execute();
  await db.schema
    .createTable("conversation_records")
    .addColumn("id", "integer", (column) => column.primaryKey().autoIncrement())
    .addColumn("conversation", "integer", (column) => column.notNull())
    .addColumn("sequence", "integer", (column) => column.notNull())
    .addColumn("role", "text", (column) => column.notNull())
    .addColumn("kind", "text", (column) => column.notNull())
    .addColumn("tokens", "integer", (column) => column.notNull())
    .addColumn("call_id", "text")
    .addColumn("pinned", "integer", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .addUniqueConstraint("conversation_records_sequence", ["conversation", "sequence"])
    .execute();
  await db.schema
    .createIndex("conversation_records_call")
    .on("conversation_records")
    .columns(["conversation", "call_id", "sequence"])
    .where(sql.ref("call_id"), "is not", null)
    .execute();
  await db.schema
    .createIndex("conversation_records_pinned")
    .on("conversation_records")
    .columns(["conversation", "sequence"])
    .where(sql.ref("pinned"), "=", sql.lit(1))
    .execute();
  // Another database has its own way to find words; `WordIndex` says how.
  await sql`create virtual table conversation_words using fts5 (
    text, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
  )`.execute(db);
  await db.schema
    .createTable("conversation_vectors")
    .addColumn("embedder", "text", (column) => column.notNull())
    .addColumn("record", "integer", (column) => column.notNull())
    .addColumn("vector", "blob", (column) => column.notNull())
    .addPrimaryKeyConstraint("conversation_vectors_key", ["embedder", "record"])
    .execute();
}

/** Tasks that agents leave for later. */
async function backlog(db: Kysely<unknown>): Promise<void> {
  let table: CreateTableBuilder<"backlog", string> = db.schema
    .createTable("backlog")
    .addColumn("id", "text", (column) => column.primaryKey());
  for (const name of ["project", "sandbox", "created_at", "body"]) table = table.addColumn(name, "text", (column) => column.notNull());
  await table.execute();
  await db.schema.createIndex("backlog_project").on("backlog").columns(["project", "created_at"]).execute();
  await db.schema.createIndex("backlog_sandbox").on("backlog").column("sandbox").execute();
}

/** Browsers that are logged in to the dashboard. */
async function sessions(db: Kysely<unknown>): Promise<void> {
  let table: CreateTableBuilder<"sessions", string> = db.schema
    .createTable("sessions")
    .addColumn("id", "text", (column) => column.primaryKey());
  for (const name of ["secret_hash", "created_at", "body"]) table = table.addColumn(name, "text", (column) => column.notNull());
  await table.execute();
  await db.schema.createIndex("sessions_secret_hash").on("sessions").column("secret_hash").execute();
}

/** Browsers that were let in to previews of ports. */
async function previews(db: Kysely<unknown>): Promise<void> {
  let table: CreateTableBuilder<"previews", string> = db.schema
    .createTable("previews")
    .addColumn("id", "text", (column) => column.primaryKey());
  for (const name of ["created_at", "body"]) table = table.addColumn(name, "text", (column) => column.notNull());
  await table.execute();
}

/** Code that is given to be run. A key of idempotency belongs to one job. */
async function jobs(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("jobs")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("sequence", "integer", (column) => column.notNull())
    .addColumn("state", "text", (column) => column.notNull())
    .addColumn("project", "text")
    .addColumn("idempotency_key", "text", (column) => column.unique())
    .addColumn("body", "text", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("jobs_sequence").on("jobs").column("sequence").execute();
  for (const column of ["state", "project"])
    await db.schema.createIndex(`jobs_${column}`).on("jobs").columns([column, "sequence"]).execute();
  await db.schema
    .createTable("jobTexts")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("job", "text", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("job_texts_job").on("jobTexts").column("job").execute();
}

/** What is on its way to people, the browsers that get it, and how far the log of events was read for it. */
async function notifications(db: Kysely<unknown>): Promise<void> {
  const tables = { notifications: ["state", "channel", "created_at"], pushBrowsers: ["session", "created_at"], bookmarks: [] };
  for (const [name, columns] of Object.entries(tables)) {
    let table: CreateTableBuilder<string, string> = db.schema.createTable(name).addColumn("id", "text", (column) => column.primaryKey());
    for (const column of [...columns, "body"]) table = table.addColumn(column, "text", (made) => made.notNull());
    await table.execute();
  }
  await db.schema.createIndex("notifications_state").on("notifications").columns(["state", "created_at"]).execute();
  await db.schema.createIndex("push_browsers_session").on("pushBrowsers").column("session").execute();
}

/** Automations, what came of their triggers, and what was seen already. */
async function automations(db: Kysely<unknown>): Promise<void> {
  let table: CreateTableBuilder<"automations", string> = db.schema
    .createTable("automations")
    .addColumn("id", "text", (column) => column.primaryKey());
  for (const name of ["project", "name", "body"]) table = table.addColumn(name, "text", (column) => column.notNull());
  await table.addUniqueConstraint("automations_name", ["project", "name"]).execute();
  await db.schema
    .createTable("firings")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("sequence", "integer", (column) => column.notNull())
    .addColumn("automation", "text", (column) => column.notNull())
    .addColumn("project", "text", (column) => column.notNull())
    .addColumn("state", "text", (column) => column.notNull())
    .addColumn("open", "integer", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("firings_sequence").on("firings").column("sequence").execute();
  for (const column of ["automation", "project", "state", "open"])
    await db.schema.createIndex(`firings_${column}`).on("firings").columns([column, "sequence"]).execute();
  await db.schema
    .createTable("sightings")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("firing", "text", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("sightings_firing").on("sightings").column("firing").execute();
}

/** Files that a caller gave to an experiment were paths alone: without hashes of their content nothing can be said of them. */
async function hashesOfInputs(db: Kysely<unknown>): Promise<void> {
  const tables = db as Kysely<{ experiments: { id: string; body: string } }>;
  for (const { id, body } of await tables.selectFrom("experiments").select(["id", "body"]).execute()) {
    const { inputs, ...row } = JSON.parse(body) as { inputs?: readonly unknown[] };
    if (inputs?.some((input) => typeof input === "string") !== true) continue;
    await tables
      .updateTable("experiments")
      .set({ body: JSON.stringify(row) })
      .where("id", "=", id)
      .execute();
  }
}

export const MIGRATIONS: readonly Migration[] = [
  firstTables,
  experimentsAndPromotions,
  auditTrail,
  approvals,
  secretsUsageAndEffects,
  needs,
  projectsOfSecrets,
  bodiesOfProjects,
  sandboxesOfApprovals,
  runs,
  kindsOfSecrets,
  conversations,
  backlog,
  sessions,
  jobs,
  previews,
  notifications,
  automations,
  hashesOfInputs,
];
