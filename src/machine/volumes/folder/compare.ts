/** Two trees compared entry by entry, no link followed. */
import { constants, type Stats } from "node:fs";
import { open, readdir, readlink } from "node:fs/promises";
import { VivError } from "../../../base/schema/errors.ts";
import { forEachConcurrently, isGone, sameStatus, statusOf, within } from "./trees.ts";

export interface Difference {
  /** Below the roots. */
  readonly path: Buffer;
  readonly status: "added" | "changed" | "deleted";
  /** The entry as it is now, or as it was in the base if it is gone. */
  readonly stats: Stats;
}

export interface CompareOptions {
  /** Whether an entry is left out, with everything in it. */
  readonly leaveOut?: (path: Buffer, name: Buffer) => boolean;
  /** Milliseconds; a file whose change time is later is not taken to be the same by its size and time alone. */
  readonly since?: number;
  /**
   * Compares the content of what may differ; of the mode only the executable bit counts then. What can't be read is an
   * error, because calling it deleted could delete it in reality; otherwise it counts as absent.
   */
  readonly content?: boolean;
}

const BLOCK_BYTES = 256 * 1024;

/** Everything that differs, in no order; sockets, pipes and devices count as absent. */
export async function compareTrees(before: string, now: string, options: CompareOptions = {}): Promise<Difference[]> {
  const comparison = new Comparison(Buffer.from(before), Buffer.from(now), options);
  await comparison.folder(Buffer.alloc(0), true, true);
  return comparison.found;
}

class Comparison {
  readonly found: Difference[] = [];
  readonly #before: Buffer;
  readonly #now: Buffer;
  readonly #options: CompareOptions;

  constructor(before: Buffer, now: Buffer, options: CompareOptions) {
    this.#before = before;
    this.#now = now;
    this.#options = options;
  }

  /** Compares what is in a folder that exists on one side or on both. */
  async folder(path: Buffer, was: boolean, is: boolean): Promise<void> {
    const names = new Map<string, Buffer>();
    for (const [there, root] of [
      [was, this.#before],
      [is, this.#now],
    ] as const) {
      for (const name of there ? await this.#names(within(root, path)) : []) names.set(name.toString("latin1"), name);
    }
    const folders: { path: Buffer; was: boolean; is: boolean }[] = [];
    await forEachConcurrently([...names.values()], async (name) => {
      const below = within(path, name);
      if (this.#options.leaveOut?.(below, name) === true) return;
      const old = was ? await this.#status(this.#before, below) : undefined;
      const young = is ? await this.#status(this.#now, below) : undefined;
      await this.#entry(below, old, young);
      const both = { path: below, was: old?.isDirectory() === true, is: young?.isDirectory() === true };
      if (both.was || both.is) folders.push(both);
    });
    for (const next of folders) await this.folder(next.path, next.was, next.is);
  }

  async #names(folder: Buffer): Promise<Buffer[]> {
    return (await this.#looking(folder, () => readdir(folder, { encoding: "buffer" }))) ?? [];
  }

  async #status(root: Buffer, path: Buffer): Promise<Stats | undefined> {
    const place = within(root, path);
    const found = await this.#looking(place, () => statusOf(place));
    return found?.isFile() === true || found?.isDirectory() === true || found?.isSymbolicLink() === true ? found : undefined;
  }

  async #looking<T>(place: Buffer, look: () => Promise<T>): Promise<T | undefined> {
    try {
      return await look();
    } catch (error) {
      if (isGone(error)) return undefined;
      if ((error as NodeJS.ErrnoException).code !== "EACCES") throw error;
      if (this.#options.content !== true) return undefined;
      throw new VivError("denied", `${place.toString()} can't be read.`, {
        cause: error,
        remedy: "Open its folder with chmod in the sandbox.",
      });
    }
  }

  async #entry(path: Buffer, old: Stats | undefined, young: Stats | undefined): Promise<void> {
    if (young === undefined) {
      if (old !== undefined) this.found.push({ path, status: "deleted", stats: old });
    } else if (old === undefined) this.found.push({ path, status: "added", stats: young });
    else if (!(await this.#same(path, old, young))) this.found.push({ path, status: "changed", stats: young });
  }

  async #same(path: Buffer, old: Stats, young: Stats): Promise<boolean> {
    const untouched = this.#options.since === undefined || young.ctimeMs <= this.#options.since;
    if (sameStatus(old, young) && (untouched || old.isDirectory())) return true;
    if (((old.mode ^ young.mode) & constants.S_IFMT) !== 0) return false;
    if (old.isDirectory()) return true;
    const places = [within(this.#before, path), within(this.#now, path)] as const;
    if (old.isSymbolicLink()) return sameTarget(...places);
    if (this.#options.content !== true) return false;
    return old.size === young.size && ((old.mode ^ young.mode) & constants.S_IXUSR) === 0 && sameContent(...places);
  }
}

async function sameTarget(one: Buffer, other: Buffer): Promise<boolean> {
  const [first, second] = await Promise.all([one, other].map(async (path) => readlink(path, { encoding: "buffer" })));
  return first !== undefined && second !== undefined && first.equals(second);
}

/** A file that can't be read is taken to be another one. */
async function sameContent(one: Buffer, other: Buffer): Promise<boolean> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const opened = await Promise.allSettled([open(one, flags), open(other, flags)]);
  const files = opened.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  try {
    const [first, second] = files;
    if (first === undefined || second === undefined) return false;
    const blocks = [Buffer.alloc(BLOCK_BYTES), Buffer.alloc(BLOCK_BYTES)] as const;
    for (let at = 0; ;) {
      const [left, right] = await Promise.all([first.read(blocks[0], 0, BLOCK_BYTES, at), second.read(blocks[1], 0, BLOCK_BYTES, at)]);
      if (left.bytesRead !== right.bytesRead || !blocks[0].subarray(0, left.bytesRead).equals(blocks[1].subarray(0, right.bytesRead)))
        return false;
      if (left.bytesRead === 0) return true;
      at += left.bytesRead;
    }
  } finally {
    for (const file of files) await file.close();
  }
}
