/** Opens a database file, or refuses it with the reason. */
import { chmodSync, existsSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { Kysely } from "kysely";
import { VivError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { Migration } from "../migrations.ts";
import { adviceFor, backupsOf, backUpNow, createPrivate, sync, versionOf } from "./backups.ts";
import { sqliteDialect } from "./dialect.ts";
import { isBusy, storeError } from "./errors.ts";

/** node:sqlite waits for a lock on the event loop, so it waits briefly and `retryBusy` the rest. */
const LOCK_WAIT_MS = 20;
const RETRY_EVERY_MS = 25;

/** Tries until the monotonic time `until`, and once at least. */
export async function retryBusy<T>(work: () => T | Promise<T>, until = performance.now() + LIMITS.storeBusyMs): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isBusy(error) || performance.now() > until) throw storeError(error);
      await delay(RETRY_EVERY_MS);
    }
  }
}

/** Of each of the two connections. The system keeps the file in memory, too, and the rows that are asked for again and again are kept above this. */
const CACHE_KIB = 512;

function connect(path: string, readOnly: boolean): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: LOCK_WAIT_MS, readOnly });
  try {
    db.exec(`pragma cache_size = -${CACHE_KIB}`);
    db.exec(
      readOnly ? "pragma query_only = on" : "pragma journal_mode = wal; pragma synchronous = normal; pragma wal_autocheckpoint = 4000",
    );
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Each step and its version number are one transaction, so a killed migration starts again where it was. */
async function migrate(db: DatabaseSync, migrations: readonly Migration[]): Promise<void> {
  const kysely = new Kysely<unknown>({ dialect: sqliteDialect(db) });
  for (const [index, step] of migrations.entries()) {
    if (index < versionOf(db)) continue;
    await kysely.transaction().execute(async (transaction) => {
      await step(transaction);
      db.exec(`pragma user_version = ${index + 1}`);
    });
  }
}

/** A new database is made aside and renamed, so an empty file of this name is always damage. */
async function create(path: string, migrations: readonly Migration[]): Promise<void> {
  const aside = `${path}.new`;
  for (const leftover of [aside, `${aside}-wal`, `${aside}-shm`]) rmSync(leftover, { force: true });
  createPrivate(aside);
  const db = connect(aside, false);
  try {
    await migrate(db, migrations);
  } finally {
    db.close();
  }
  sync(aside);
  renameSync(aside, path);
  sync(dirname(path));
}

function refuse(path: string, what: string): never {
  throw new VivError("store_corrupt", `The database ${path} ${what}.`, { remedy: adviceFor(path) });
}

/** Damage that SQLite itself would take for an empty or an older database. */
function checkFiles(path: string): void {
  const present = existsSync(path);
  const log = existsSync(`${path}-wal`);
  if (!present && log) refuse(path, "is gone, but its write-ahead log is there");
  if (!present && backupsOf(path).length > 0) refuse(path, "is gone, but a backup is there");
  if (present && statSync(path).size === 0) refuse(path, "is empty");
  if (present && !log && existsSync(`${path}-shm`)) {
    throw new VivError("store_corrupt", `The write-ahead log of the database ${path} was removed, and the last changes with it.`, {
      remedy: `Put the log back; to go on without the last changes, remove ${path}-shm.`,
    });
  }
}

function checkContent(db: DatabaseSync, path: string, known: number): void {
  const first = db.prepare("pragma quick_check(1)").get();
  if (first?.["quick_check"] !== "ok") refuse(path, `is damaged (${String(first?.["quick_check"])})`);
  const version = versionOf(db);
  if (version === 0) refuse(path, "is not one of Vivarium's");
  if (version > known) {
    throw new VivError("store_newer", `The database ${path} has version ${version}; this program knows up to ${known}.`);
  }
}

export interface SqliteConnections {
  readonly writer: DatabaseSync;
  readonly reader: DatabaseSync;
}

/** What SQLite says of a damaged file does not say which. */
function named(path: string, error: unknown): unknown {
  if (!(error instanceof VivError) || error.code !== "store_corrupt" || error.message.includes(path)) return error;
  const said = error.cause instanceof Error ? error.cause.message : error.message;
  return new VivError("store_corrupt", `The database ${path} cannot be read: ${said}.`, { cause: error, remedy: adviceFor(path) });
}

async function openExisting(path: string, migrations: readonly Migration[]): Promise<DatabaseSync> {
  const db = await retryBusy(() => connect(path, false)).catch((error: unknown) => {
    throw named(path, error);
  });
  try {
    await retryBusy(() => checkContent(db, path, migrations.length));
    if (versionOf(db) < migrations.length) {
      await backUpNow(db, path);
      await retryBusy(() => migrate(db, migrations));
    }
    return db;
  } catch (error) {
    db.close();
    throw named(path, error);
  }
}

export async function openDatabase(path: string, migrations: readonly Migration[]): Promise<SqliteConnections> {
  checkFiles(path);
  if (!existsSync(path)) await create(path, migrations);
  chmodSync(path, 0o600);
  const writer = await openExisting(path, migrations);
  return { writer, reader: await retryBusy(() => connect(path, true)) };
}
