/** The schema's history. Only ever appended to: the number of entries is the schema's version. */
import { sql, type Kysely } from "kysely";

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

export const MIGRATIONS: readonly Migration[] = [firstTables, experimentsAndPromotions, auditTrail, approvals];
