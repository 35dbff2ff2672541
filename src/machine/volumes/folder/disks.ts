import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Disks, VolumePaths, VolumeSource } from "../disks.ts";
import { requireHostSpace } from "../space.ts";
import type { VolumeFolders } from "../volume-folders.ts";
import { projectIn } from "../volumes.ts";
import { compareTrees } from "./compare.ts";
import { copyBase, copyCopy, MARK } from "./copies.ts";

const BLOCK_BYTES = 512;
/** A walk is not repeated before this many times its own duration have passed. */
const USAGE_REST = 20;

interface Measured {
  readonly bytes: number;
  /** Monotonic time until which it is good enough. */
  readonly until: number;
}

export class FolderDisks implements Disks {
  readonly #folders: VolumeFolders;
  readonly #measured = new Map<string, Measured>();

  constructor(folders: VolumeFolders) {
    this.#folders = folders;
  }

  async create(volume: string, source: VolumeSource): Promise<VolumePaths> {
    requireHostSpace(this.#folders.folder);
    await this.#folders.makeVolume(volume, async (aside) => {
      if ("snapshot" in source) await copyCopy(this.#folders.path("snapshot", source.snapshot), aside);
      else if ("volume" in source) await copyCopy(this.#folders.path("volume", source.volume), aside);
      else await copyBase(this.#folders.path("base", source.base), aside, source.base);
    });
    return this.paths(volume);
  }

  async paths(volume: string): Promise<VolumePaths> {
    return { folder: this.#folders.volume(volume), layers: [] };
  }

  async remove(volume: string): Promise<void> {
    this.#measured.delete(volume);
    await this.#folders.remove("volume", volume);
  }

  /** Bytes that differ from the base: what every sandbox holds of the project is not charged to it. */
  async usage(volume: string): Promise<number> {
    const known = this.#measured.get(volume);
    if (known !== undefined && performance.now() < known.until) return known.bytes;
    const began = performance.now();
    let bytes = 0;
    for (const folder of this.#folders.chargedTo(volume)) bytes += existsSync(join(folder, MARK)) ? await this.#ownBytes(folder) : 0;
    const until = performance.now() + (performance.now() - began) * USAGE_REST;
    this.#measured.set(volume, { bytes, until });
    return bytes;
  }

  async #ownBytes(folder: string): Promise<number> {
    const base = projectIn(this.#folders.path("base", await readFile(join(folder, MARK), "utf8")));
    const found = await compareTrees(base, projectIn(folder));
    return found.reduce((sum, { status, stats }) => sum + (status === "deleted" ? 0 : stats.blocks * BLOCK_BYTES), 0);
  }

  /** A copy reads what is not yet on the disk just as well. */
  async writeBack(): Promise<void> {}
}
