/** Files of an unwalled sandbox: of the copy alone, with the server's own rights. */
import { randomBytes } from "node:crypto";
import { constants, type Stats, watch as watchFolder } from "node:fs";
import { chmod, lstat, mkdir, open, readdir, readlink, rename, rm, rmdir, stat, unlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { Readable } from "node:stream";
import { VivError } from "../../../base/schema/errors.ts";
import type { FileChange, FileEntry } from "../../../base/schema/files.ts";
import type { FileOperations, FileStep } from "../drivers.ts";
import { isoTime, safeSize } from "../file-numbers.ts";
import { applyStep } from "./applying.ts";
import { type CopyPaths, fileError } from "./paths.ts";
import { watchChanges } from "./watching.ts";

export class FolderFiles implements FileOperations {
  readonly #paths: CopyPaths;
  readonly #requireUser: (user: string) => void;

  constructor(paths: CopyPaths, requireUser: (user: string) => void) {
    this.#paths = paths;
    this.#requireUser = requireUser;
  }

  stat(path: string, user: string): Promise<FileEntry> {
    return this.#doing(path, user, async () => entryOf(await this.#paths.resolve(path, { follow: false }), "."));
  }

  list(path: string, user: string, depth: number, limit: number): Promise<FileEntry[]> {
    return this.#doing(path, user, async () => {
      const place = await this.#paths.resolve(path, { follow: true });
      if (!(await lstat(place)).isDirectory()) return [await entryOf(place, ".")].slice(0, limit);
      const entries: FileEntry[] = [];
      await listInto(entries, place, "", depth, limit);
      return entries;
    });
  }

  read(path: string, user: string, range?: { offset: number; length: number }): Promise<{ entry: FileEntry; body: Readable }> {
    return this.#doing(path, user, async () => {
      const place = await this.#paths.resolve(path, { follow: true });
      const file = await open(place, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      const status = await file.stat();
      if (!status.isFile()) {
        await file.close();
        throw new VivError("invalid_input", `${path}: not a regular file`);
      }
      if (range?.length === 0) {
        await file.close();
        return { entry: fieldsOf(status, ".", null), body: Readable.from([]) };
      }
      const body = file.createReadStream(range === undefined ? {} : { start: range.offset, end: range.offset + range.length - 1 });
      return { entry: fieldsOf(status, ".", null), body };
    });
  }

  write(path: string, user: string, body: AsyncIterable<Uint8Array>, options: { mode?: number; parents?: boolean }): Promise<void> {
    return this.#doing(path, user, async () => {
      const place = await this.#paths.resolve(path, { follow: true, missing: options.parents === true });
      if (options.parents === true) await mkdir(dirname(place), { recursive: true });
      const existing = await lstat(place).catch(() => undefined);
      if (existing?.isDirectory() === true) throw new VivError("invalid_input", `${path}: is a folder`);
      const aside = join(dirname(place), `.viv-${randomBytes(8).toString("hex")}`);
      try {
        await writeAside(aside, body, options.mode ?? (existing === undefined ? 0o644 : existing.mode & 0o777));
        await rename(aside, place);
      } catch (error) {
        await rm(aside, { force: true });
        throw error;
      }
    });
  }

  move(path: string, to: string, user: string, replace: boolean): Promise<void> {
    return this.#doing(path, user, async () => {
      const from = await this.#inner(path);
      const target = await this.#inner(to);
      await lstat(from);
      if (!replace && (await lstat(target).catch(() => undefined)) !== undefined) throw new VivError("exists", `${to}: is there already`);
      await rename(from, target);
    });
  }

  remove(path: string, user: string, recursive: boolean): Promise<void> {
    return this.#doing(path, user, async () => {
      const place = await this.#inner(path);
      if (recursive) await rm(place, { recursive: true });
      else if ((await lstat(place)).isDirectory()) await rmdir(place);
      else await unlink(place);
    });
  }

  mkdir(path: string, user: string, parents: boolean): Promise<void> {
    return this.#doing(path, user, async () => {
      const place = await this.#paths.resolve(path, { follow: true, missing: parents });
      await mkdir(place, { recursive: parents });
    });
  }

  apply(folder: string, user: string, steps: AsyncIterable<FileStep>, since = Number.POSITIVE_INFINITY): Promise<string[]> {
    return this.#doing(folder, user, async () => {
      const root = await this.#paths.resolve(folder, { follow: true });
      const late: string[] = [];
      for await (const step of steps) if (!(await applyStep(root, step, since))) late.push(step.path);
      return late;
    });
  }

  async *watch(path: string, user: string, recursive: boolean, signal: AbortSignal): AsyncGenerator<FileChange, void, void> {
    const place = await this.#doing(path, user, async () => {
      const found = await this.#paths.resolve(path, { follow: true });
      await stat(found);
      return found;
    });
    yield* watchChanges((options, listener) => watchFolder(place, options, listener), place, recursive, signal);
  }

  /** A place that can be moved or removed: not the copy itself. */
  async #inner(path: string): Promise<string> {
    const place = await this.#paths.resolve(path, { follow: false });
    if (relative(this.#paths.root, place) === "") throw new VivError("invalid_input", `${path}: is the project itself`);
    return place;
  }

  async #doing<T>(path: string, user: string, work: () => Promise<T>): Promise<T> {
    this.#requireUser(user);
    try {
      return await work();
    } catch (error) {
      throw fileError(error, path);
    }
  }
}

async function writeAside(aside: string, body: AsyncIterable<Uint8Array>, mode: number): Promise<void> {
  const file = await open(aside, "wx", 0o600);
  try {
    for await (const part of body) await file.writeFile(part);
  } finally {
    await file.close();
  }
  await chmod(aside, mode);
}

async function listInto(entries: FileEntry[], folder: string, path: string, depth: number, limit: number): Promise<void> {
  for (const name of (await readdir(folder)).toSorted()) {
    if (entries.length >= limit) return;
    const place = join(folder, name);
    const entry = await entryOf(place, join(path, name)).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    });
    if (entry === undefined) continue;
    entries.push(entry);
    if (entry.type === "dir" && depth > 1) await listInto(entries, place, entry.path, depth - 1, limit);
  }
}

async function entryOf(place: string, path: string): Promise<FileEntry> {
  const status = await lstat(place);
  return fieldsOf(status, path, status.isSymbolicLink() ? await readlink(place) : null);
}

function fieldsOf(status: Stats, path: string, target: string | null): FileEntry {
  return {
    path,
    type: typeOf(status),
    size: safeSize(status.size),
    mode: (status.mode & 0o7777).toString(8),
    modifiedAt: isoTime(status.mtimeMs),
    uid: status.uid,
    gid: status.gid,
    target,
  };
}

function typeOf(status: Stats): FileEntry["type"] {
  if (status.isDirectory()) return "dir";
  if (status.isSymbolicLink()) return "link";
  if (status.isFIFO()) return "fifo";
  if (status.isSocket()) return "socket";
  if (status.isCharacterDevice()) return "char";
  return status.isBlockDevice() ? "block" : "file";
}
