/**
 * Where btrfs volumes lie: in the state folder where that is btrfs itself, otherwise in a sparse file beside it that
 * grows. A sparse file promises space the host may not have, so nothing is made when the host runs low.
 */
import { mkdir, stat } from "node:fs/promises";
import { existsSync, realpathSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import {
  growPool,
  isPoolOf,
  makePoolFile,
  mountPool,
  poolMount,
  settlePool,
  trimPool,
  unmountPool,
  unusedBytes,
} from "../../../base/host/pool-file.ts";
import { errorText } from "../../../base/host/log.ts";
import { isReadOnly, mountOf, readMounts } from "../../../base/host/mounts.ts";
import { VivError } from "../../../base/schema/errors.ts";
import { requireHostSpace, spareHostBytes } from "../space.ts";
import { deviceErrors, systemOf } from "./kernel.ts";

const GIB = 1024 ** 3;
const FIRST_BYTES = 8 * GIB;
const SMALLEST_BYTES = 256 * 1024 ** 2;
/** The share of the pool that is kept free by growing it. */
const FREE_SHARE = 0.25;
/** Less than this is not worth the work of giving it back. */
const UNUSED_BYTES = 32 * 1024 ** 2;
const MEND_MS = 10_000;
const MEND_AGAIN_MS = 50;

export interface PoolOptions {
  /** The state folder. */
  readonly home: string;
  /** Bytes the pool file may grow to; the host's space alone decides if left out. */
  readonly limitBytes?: number;
}

export class Pool {
  /** The folder on btrfs. */
  readonly path: string;
  readonly #home: string;
  /** The sparse file; undefined where the state folder is btrfs itself. */
  readonly #file: string | undefined;
  readonly #limit: number;
  #growing: Promise<void> | undefined;
  #givingBack: Promise<void> | undefined;
  /** What stayed unused although it was given back: the file system keeps some for itself. */
  #stuckBytes = 0;
  /** Where the kernel tells about it; its name stays the same over mounts. */
  #system: string | undefined;

  private constructor(options: PoolOptions, path: string, file: string | undefined) {
    this.path = path;
    this.#home = options.home;
    this.#file = file;
    this.#limit = options.limitBytes ?? Number.POSITIVE_INFINITY;
  }

  static async open(given: PoolOptions): Promise<Pool> {
    const options = { ...given, home: realpathSync(given.home) };
    const path = join(options.home, "pool");
    await mkdir(path, { recursive: true, mode: 0o700 });
    const file = join(options.home, "pool.img");
    if (!existsSync(file) && hasRoomForFolders(options.home)) return new Pool(options, path, undefined);
    const pool = new Pool(options, path, file);
    // A pool of a folder that was removed from under its server lies below, untouched.
    if (!(await isPoolOf(file, path))) await pool.#mount(file);
    return pool;
  }

  async #mount(file: string): Promise<void> {
    if (!existsSync(file)) {
      requireHostSpace(this.#home);
      const bytes = Math.min(FIRST_BYTES, this.#limit, spareHostBytes(this.#home));
      if (bytes < SMALLEST_BYTES)
        throw new VivError("disk_full", `${this.#home} has no room for a pool of ${SMALLEST_BYTES / 1024 ** 2} MiB.`);
      await makePoolFile(file, Math.floor(bytes / 4096) * 4096);
    }
    await this.#attach(file);
  }

  async #attach(file: string): Promise<void> {
    try {
      await mountPool(file, this.path);
    } catch (cause) {
      throw new VivError("storage_damaged", `The storage of sandboxes in ${file} can't be mounted: ${errorText(cause)}.`, {
        cause,
        remedy: "Look at it with `btrfs check`, or move it aside: the next server makes a new one.",
      });
    }
  }

  /** Whether the kernel has set it read-only, or it could not be mounted anew after that. */
  isStopped(): boolean {
    // The kernel's table of mounts says the same, and takes a quarter of a millisecond to read.
    if (this.#file !== undefined && statSync(this.path).dev === statSync(dirname(this.path)).dev) return true;
    return isReadOnly(this.path);
  }

  /** Errors of the disk that the file system has met. */
  errors(): number | undefined {
    this.#system ??= systemOf(this.path);
    return this.#system === undefined ? undefined : deviceErrors(this.#system);
  }

  /** A broken pool is whole again when it is mounted anew, once the host has space for what it writes then. */
  canBeMended(): boolean {
    return this.#file !== undefined && this.isStopped() && spareHostBytes(this.#home) > 0;
  }

  async mend(): Promise<void> {
    if (this.#file === undefined) return;
    const deadline = performance.now() + MEND_MS;
    writeFileSync(mendingNote(this.#file), "");
    for (;;) {
      if (poolMount(this.path) !== undefined) await unmountPool(this.path);
      await this.#attach(this.#file);
      if (poolMount(this.path)?.readOnly !== true) return;
      // The kernel gives the same broken file system again until the last mount namespace that knew it is gone.
      if (performance.now() > deadline)
        throw new VivError("busy", `The storage of sandboxes in ${this.path} is still in use and can't be mended.`);
      await wait(MEND_AGAIN_MS);
    }
  }

  /** Whether it was mounted anew, and may lack what was written before, in a way that has not been looked at yet. */
  isMended(): boolean {
    return this.#file !== undefined && existsSync(mendingNote(this.#file));
  }

  forgetMending(): void {
    if (this.#file !== undefined) rmSync(mendingNote(this.#file), { force: true });
  }

  /** Refuses when the host is low on space; grows the pool when that is low on it. Undefined where there is nothing to wait for. */
  requireSpace(): Promise<void> | undefined {
    requireHostSpace(this.#home);
    if (this.isStopped())
      throw new VivError(
        "storage_stopped",
        `The storage of sandboxes in ${this.path} takes no writes, because the disk under it was full or failed.`,
      );
    const { totalBytes, freeBytes } = this.#space();
    if (freeBytes > totalBytes * FREE_SHARE) return undefined;
    const growing = this.#startGrowing();
    return freeBytes > totalBytes * FREE_SHARE * 0.5 ? undefined : this.#requireGrown(growing);
  }

  async #requireGrown(growing: Promise<void>): Promise<void> {
    await growing;
    if (this.#space().freeBytes < SMALLEST_BYTES / 4) throw new VivError("disk_full", `The pool of volumes in ${this.path} is full.`);
  }

  async free(): Promise<{ totalBytes: number; freeBytes: number }> {
    const { totalBytes, freeBytes } = this.#space();
    if (freeBytes < totalBytes * FREE_SHARE) await this.#startGrowing();
    const now = this.#space();
    return {
      totalBytes: now.totalBytes,
      freeBytes: this.#file === undefined ? now.freeBytes : Math.max(0, Math.min(now.freeBytes, spareHostBytes(this.#home))),
    };
  }

  /** Never rejects, because there may be no caller that waits: the space that is left tells that a pool could not grow. */
  #startGrowing(): Promise<void> {
    this.#growing ??= this.#grow()
      .catch(() => undefined)
      .finally(() => (this.#growing = undefined));
    return this.#growing;
  }

  #space(): { totalBytes: number; freeBytes: number } {
    const found = statfsSync(this.path);
    return { totalBytes: found.blocks * found.bsize, freeBytes: found.bavail * found.bsize };
  }

  /** Doubles the file, as far as the limit and the host's space reach. */
  async #grow(): Promise<void> {
    if (this.#file === undefined) return;
    const found = await stat(this.#file);
    const backed = found.blocks * 512 + spareHostBytes(this.#home);
    const bytes = Math.floor(Math.min(found.size * 2, this.#limit, backed) / 4096) * 4096;
    if (bytes >= found.size + 64 * 1024 ** 2) await growPool(this.#file, this.path, bytes);
  }

  /** Gives the host back what removals left in the file, if that is much. Never rejects: no caller waits for it, and it is tried again. */
  startGivingBack(): void {
    this.#givingBack ??= this.#giveBack()
      .catch(() => undefined)
      .finally(() => (this.#givingBack = undefined));
  }

  async #giveBack(): Promise<void> {
    if (this.#file === undefined || this.isStopped()) return;
    const unused = unusedBytes(this.#file, this.path);
    this.#stuckBytes = Math.min(this.#stuckBytes, Math.max(0, unused));
    if (unused - this.#stuckBytes < UNUSED_BYTES) return;
    await trimPool(this.path);
    this.#stuckBytes = Math.max(0, unusedBytes(this.#file, this.path));
  }

  /** Waits for what is under way; the pool stays mounted because sandboxes outlive the server. */
  async close(): Promise<void> {
    await this.#growing;
    await this.#givingBack;
  }

  /** Nothing may be in use. */
  async unmount(): Promise<void> {
    await this.close();
    if (this.#file === undefined || poolMount(this.path) === undefined) return;
    await this.#shrink(this.#file).catch(() => undefined);
    await unmountPool(this.path);
  }

  /** A small one is left as it is: a caller that waits for the end of the server would wait for this, too. */
  async #shrink(file: string): Promise<void> {
    if (this.isStopped() || (await stat(file)).blocks * 512 < UNUSED_BYTES) return;
    await settlePool(this.path);
    await this.#giveBack();
  }
}

/** Outside of the pool: it stands before that is mounted. */
function mendingNote(file: string): string {
  return `${file}.mending`;
}

const BTRFS_MAGIC = 0x9123683e;

/**
 * Whether volumes can be subvolumes of the state folder's own file system. Not if that is the file system of `/`:
 * an overlay whose lower and upper are subvolumes of one btrfs shows equal inode numbers for different files.
 */
function hasRoomForFolders(home: string): boolean {
  if (statfsSync(home).type !== BTRFS_MAGIC) return false;
  const mounts = readMounts();
  return mountOf(home, mounts)?.source !== mountOf("/", mounts)?.source;
}
