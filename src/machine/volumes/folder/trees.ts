/**
 * Whole trees copied, counted and removed by Node alone. No link is ever followed, names are bytes, and what vanishes
 * meanwhile is left out: processes may write while a tree is copied.
 */
import { constants, type Stats } from "node:fs";
import { chmod, copyFile, link, lstat, lutimes, mkdir, readdir, readlink, rm, symlink, utimes } from "node:fs/promises";
import { run } from "../../../base/host/run.ts";
import { VivError } from "../../../base/schema/errors.ts";

export interface CopyOptions {
  /** Paths below the root that are not entered, as text. */
  readonly skip?: ReadonlySet<string>;
  /** An earlier copy that does not change: a file that is still the same is linked from it instead of being copied. */
  readonly reuse?: string;
  /** Files that can't be read are reported, instead of being made readable during the copy. */
  readonly tolerant?: boolean;
  readonly mostBytes?: number;
  /**
   * When the source was complete, in milliseconds. A file that was changed since and bears an older time does not
   * pass that time on, or the time would not tell that the file is another one.
   */
  readonly since?: number;
}

export interface CopyReport {
  files: number;
  bytes: number;
  /** Files that were copied and not linked from an earlier copy. */
  fresh: number;
  /** Sockets, pipes and devices left out. */
  special: number;
  readonly unreadable: string[];
}

/** More at once only makes the threads of the file system wait for each other. */
const AT_ONCE = 4;
const HOUR_MS = 3_600_000;

export function within(folder: Buffer, name: Buffer): Buffer {
  return folder.length === 0 ? name : Buffer.concat([folder, Buffer.from("/"), name]);
}

export function isGone(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
}

/** Equal as far as a copy carries over: kind, mode, size and time. Folders are equal to each other. */
export function sameStatus(one: Stats, other: Stats): boolean {
  if (one.isDirectory() && other.isDirectory()) return true;
  return one.mode === other.mode && one.size === other.size && Math.abs(one.mtimeMs - other.mtimeMs) < 1;
}

/** The status of an entry itself; undefined when there is none. */
export async function statusOf(path: Buffer | string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/** Does work on every item, a few at once. */
export async function forEachConcurrently<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, lane));
}

/** Copies a folder to a place where nothing is yet: by reflink where the file system can, modes and times kept. */
export async function copyTree(from: string, to: string, options: CopyOptions = {}): Promise<CopyReport> {
  const copy = new Copy(options);
  try {
    await copy.folder(Buffer.from(from), Buffer.from(to), Buffer.alloc(0), await lstat(from));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOSPC" && code !== "EDQUOT") throw error;
    throw new VivError("disk_full", `There is not enough space for a copy of ${from}.`, { cause: error });
  }
  return copy.copied;
}

class Copy {
  readonly copied: CopyReport = { files: 0, bytes: 0, fresh: 0, special: 0, unreadable: [] };
  readonly #options: CopyOptions;
  readonly #reuse: Buffer | undefined;

  constructor(options: CopyOptions) {
    this.#options = options;
    this.#reuse = options.reuse === undefined ? undefined : Buffer.from(options.reuse);
  }

  /** A folder that its mode closes to its owner is opened for the time of its copy. */
  async folder(from: Buffer, to: Buffer, path: Buffer, status: Stats): Promise<void> {
    const closed = (status.mode & 0o500) !== 0o500 && this.#options.tolerant !== true;
    if (closed) await chmod(from, (status.mode & 0o7777) | 0o700);
    try {
      await this.#contents(from, to, path, status);
    } finally {
      if (closed) await chmod(from, status.mode & 0o7777);
    }
  }

  async #contents(from: Buffer, to: Buffer, path: Buffer, status: Stats): Promise<void> {
    const names = await this.#reading(from, path, status, () => readdir(from, { encoding: "buffer" }));
    if (names === undefined) return;
    await mkdir(to, { mode: 0o700 });
    const folders: { name: Buffer; status: Stats }[] = [];
    await forEachConcurrently(names, async (name) => {
      const below = within(path, name);
      if (this.#options.skip?.has(below.toString()) === true) return;
      const found = await this.#reading(from, below, status, () => statusOf(within(from, name)));
      if (found?.isDirectory() === true) folders.push({ name, status: found });
      else if (found !== undefined) await this.#entry(within(from, name), within(to, name), below, found);
    });
    for (const { name, status: found } of folders) await this.folder(within(from, name), within(to, name), within(path, name), found);
    await chmod(to, status.mode & 0o7777);
    await utimes(to, status.atime, status.mtime);
  }

  async #entry(from: Buffer, to: Buffer, path: Buffer, status: Stats): Promise<void> {
    if (status.isFile()) await this.#file(from, to, path, status);
    else if (status.isSymbolicLink()) await this.#reading(from, path, status, () => copyLink(from, to, status));
    else this.copied.special += 1;
  }

  async #file(from: Buffer, to: Buffer, path: Buffer, status: Stats): Promise<void> {
    this.#count(status);
    if (await this.#linked(to, path, status)) return;
    const done = await this.#reading(from, path, status, async () => {
      await copyFile(from, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
      return true;
    });
    if (done !== true) return;
    this.copied.fresh += 1;
    if ((status.mode & 0o400) === 0) await chmod(to, status.mode & 0o7777); // it was opened for the copy
    const since = this.#options.since;
    const disguised = since !== undefined && status.ctimeMs > since && status.mtimeMs <= since;
    if (!disguised) await utimes(to, status.atime, status.mtime);
  }

  #count(status: Stats): void {
    this.copied.files += 1;
    this.copied.bytes += status.size;
    const { mostBytes } = this.#options;
    if (mostBytes === undefined || this.copied.bytes <= mostBytes) return;
    throw new VivError("invalid_input", `The project holds more than the ${mostBytes} bytes that may be captured.`, {
      remedy: "Raise capture.limit in vivarium.json, or leave folders out with capture.exclude.",
    });
  }

  async #linked(to: Buffer, path: Buffer, status: Stats): Promise<boolean> {
    if (this.#reuse === undefined) return false;
    const earlier = within(this.#reuse, path);
    const found = await statusOf(earlier);
    if (found === undefined || !sameStatus(found, status)) return false;
    try {
      await link(earlier, to);
      return true;
    } catch (error) {
      if (["EMLINK", "EPERM", "ENOTSUP"].includes((error as NodeJS.ErrnoException).code ?? "")) return false;
      throw error;
    }
  }

  /** Does what reads an entry: what is gone gives undefined, and what its mode closes is opened for that moment. */
  async #reading<T>(from: Buffer, path: Buffer, status: Stats, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (isGone(error)) return undefined;
      if ((error as NodeJS.ErrnoException).code !== "EACCES") throw error;
      if (this.#options.tolerant === true) {
        this.copied.unreadable.push(path.toString());
        return undefined;
      }
    }
    await chmod(from, (status.mode & 0o7777) | 0o700);
    try {
      return await work();
    } finally {
      await chmod(from, status.mode & 0o7777);
    }
  }
}

async function copyLink(from: Buffer, to: Buffer, status: Stats): Promise<void> {
  await symlink(await readlink(from, { encoding: "buffer" }), to);
  await lutimes(to, status.atime, status.mtime);
}

/** Node removes ordinary trees quickly; very deep ones and folders closed by their mode are left to the system's tools. */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch {
    await run("chmod", ["-R", "u+rwx", "--", path], { timeoutMs: HOUR_MS });
    const { code, stderr } = await run("rm", ["-rf", "--", path], { timeoutMs: HOUR_MS });
    if (code !== 0) throw new VivError("internal", `${path} could not be removed: ${stderr.split("\n").at(-1) ?? ""}`);
  }
}
