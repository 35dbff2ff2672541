/** Space that is kept back for the moment when a disk is full: removing something writes a little first. */
import { randomBytes } from "node:crypto";
import { existsSync, statfsSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { VivError } from "../schema/errors.ts";

const BYTES = 4 * 1024 ** 2;
/** The space is not taken from a disk that is nearly full. */
const ROOM_BYTES = 16 * BYTES;

export class DiskReserve {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  /** Takes the space, if it is not taken and there is room. */
  async fill(): Promise<void> {
    if (existsSync(this.#file)) return;
    const { bavail, bsize } = statfsSync(dirname(this.#file));
    if (bavail * bsize < ROOM_BYTES) return;
    const aside = `${this.#file}.new`;
    // Some file systems keep no space for zeros.
    await writeFile(aside, randomBytes(BYTES), { mode: 0o600 });
    await rename(aside, this.#file);
  }

  /** For work that makes room in the end and can be done again from its start: it gets the space when the disk is full. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (VivError.from(error).code !== "disk_full") throw error;
      // It may be gone because other work got the space a moment ago: that is room for this work too.
      await rm(this.#file, { force: true });
      return work();
    }
  }
}
