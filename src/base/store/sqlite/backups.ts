/**
 * Copies of the database beside it, made by SQLite's own means and checked before they count: one a day and one before each
 * migration, a few of them. And the way back: the newest whole one takes the place of a damaged database, which is kept.
 */
import { closeSync, copyFileSync, existsSync, fsyncSync, openSync, readdirSync, renameSync, rmSync, statfsSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { VivError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";

export interface Backup {
  readonly file: string;
  /** Version of the schema. */
  readonly version: number;
  readonly takenAt: string;
}

/** A database takes several files. */
const PARTS = ["", "-wal", "-shm"];
const NAME = /^(\d+)-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/;

/** Newest first. */
export function backupsOf(path: string): Backup[] {
  const folder = dirname(path);
  const prefix = `${basename(path)}.backup-`;
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.startsWith(prefix)) : [];
  const found = names.flatMap((name): Backup[] => {
    const [, version, ...time] = NAME.exec(name.slice(prefix.length)) ?? [];
    if (version === undefined) return [];
    const [year, month, day, hour, minute, second] = time;
    return [{ file: join(folder, name), version: Number(version), takenAt: `${year}-${month}-${day}T${hour}:${minute}:${second}Z` }];
  });
  return found.toSorted((left, right) => right.takenAt.localeCompare(left.takenAt));
}

/** Makes one if the newest is a day old. Works beside the event loop, with a connection of its own. */
export async function backUpDaily(path: string, now = new Date()): Promise<Backup | undefined> {
  const [newest] = backupsOf(path);
  if (newest !== undefined && now.getTime() - Date.parse(newest.takenAt) < LIMITS.backupEveryMs) return undefined;
  const bytes = statSync(path).size + (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0);
  if (bytes > LIMITS.backupsBytes || bytes > spareBytes(dirname(path))) return undefined;
  const source = new DatabaseSync(path, { readOnly: true });
  try {
    // In one step: what is written meanwhile would make it begin again.
    return await make(path, versionOf(source), now, async (aside) => void (await backup(source, aside, { rate: 2 ** 31 - 1 })));
  } finally {
    source.close();
  }
}

/** Before a migration: nothing else may happen until it is there. */
export async function backUpNow(db: DatabaseSync, path: string, now = new Date()): Promise<void> {
  await make(path, versionOf(db), now, async (aside) => void db.prepare("vacuum into ?").run(aside));
}

/** Puts the newest whole backup in the place of the database. Undefined where there is none. */
export function restoreBackup(
  path: string,
  now = new Date(),
  noted: (found: Backup & { readonly damaged: string }) => void = () => undefined,
): (Backup & { readonly damaged: string }) | undefined {
  const found = newestWhole(path);
  if (found === undefined) return undefined;
  const aside = `${path}.new`;
  copyFileSync(found.file, aside);
  sync(aside);
  const damaged = `${path}.damaged-${stamp(now)}`;
  noted({ ...found, damaged });
  for (const part of PARTS) if (existsSync(path + part)) renameSync(path + part, damaged + part);
  renameSync(aside, path);
  sync(dirname(path));
  return { ...found, damaged };
}

/** What to do about a damaged database, exactly. */
export function adviceFor(path: string): string {
  const found = newestWhole(path);
  if (found !== undefined)
    return `Run \`viv doctor --repair\`: it brings back the backup of ${found.takenAt} (${found.file}) and keeps the damaged files. Running sandboxes are left alone.`;
  const home = dirname(path);
  return `There is no backup of it. Running sandboxes are left alone; to begin anew beside them: mv ${home} ${home}.damaged`;
}

export function versionOf(db: DatabaseSync): number {
  return Number(db.prepare("pragma user_version").get()?.["user_version"] ?? 0);
}

export function sync(path: string): void {
  const descriptor = openSync(path, "r");
  fsyncSync(descriptor);
  closeSync(descriptor);
}

/** SQLite gives its own files the mode of the database. */
export function createPrivate(path: string): void {
  rmSync(path, { force: true });
  closeSync(openSync(path, "wx", 0o600));
}

async function make(path: string, version: number, now: Date, copy: (aside: string) => Promise<void>): Promise<Backup> {
  const file = `${path}.backup-${version}-${stamp(now)}`;
  const aside = `${file}.new`;
  createPrivate(aside);
  try {
    await copy(aside);
    makeOneFile(aside);
    if (!isWhole(aside)) throw new VivError("store_corrupt", `The database ${path} can't be copied: its copy is damaged.`);
    sync(aside);
    renameSync(aside, file);
  } finally {
    for (const part of PARTS) rmSync(aside + part, { force: true });
  }
  removeOld(path, version);
  return { file, version, takenAt: now.toISOString() };
}

/** Without a write-ahead log, of which a reader would leave files. */
function makeOneFile(file: string): void {
  const db = new DatabaseSync(file);
  try {
    db.exec("pragma journal_mode = delete");
  } finally {
    db.close();
  }
}

/** The newest few of this version, and the newest of the version before, as long as all together are small enough. */
function removeOld(path: string, version: number): void {
  const all = backupsOf(path);
  const kept = [
    ...all.filter((each) => each.version === version).slice(0, LIMITS.backups),
    ...all.filter((each) => each.version !== version).slice(0, 1),
  ];
  let bytes = 0;
  for (const each of all) {
    const size = statSync(each.file).size;
    if (kept.includes(each) && (bytes === 0 || bytes + size <= LIMITS.backupsBytes)) bytes += size;
    else rmSync(each.file, { force: true });
  }
}

function newestWhole(path: string): Backup | undefined {
  return backupsOf(path).find(({ file }) => isWhole(file));
}

function isWhole(file: string): boolean {
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(file, { readOnly: true });
    return db.prepare("pragma quick_check(1)").get()?.["quick_check"] === "ok" && versionOf(db) > 0;
  } catch {
    // Whatever is wrong with it, it is no backup.
    return false;
  } finally {
    db?.close();
  }
}

function stamp(time: Date): string {
  return time.toISOString().replace(/[-:]|\.\d+/g, "");
}

function spareBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return (bavail * bsize) / 4;
}
