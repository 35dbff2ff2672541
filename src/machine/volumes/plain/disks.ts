import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Disks, VolumePaths, VolumeSource } from "../disks.ts";
import { requireHostSpace } from "../space.ts";
import type { VolumeFolders } from "../volume-folders.ts";
import { LIVE_SLOTS } from "../volumes.ts";
import { copyVolume } from "./copies.ts";
import { copyAttributes, readLayers, rootsOf, writeLayers } from "./layers.ts";
import { diskUsage } from "./trees.ts";

export class PlainDisks implements Disks {
  readonly #folders: VolumeFolders;

  constructor(folders: VolumeFolders) {
    this.#folders = folders;
  }

  async create(volume: string, source: VolumeSource): Promise<VolumePaths> {
    requireHostSpace(this.#folders.folder);
    await this.#folders.makeVolume(volume, async (aside) => {
      if ("snapshot" in source) await copyVolume(this.#folders.path("snapshot", source.snapshot), aside);
      else if ("volume" in source) await copyVolume(this.#folders.path("volume", source.volume), aside);
      else await this.#start(this.#folders.path("base", source.base), aside);
    });
    return this.paths(volume);
  }

  /** An empty volume over a base. The top folder of every overlay takes owner and mode from its upper side. */
  async #start(base: string, folder: string): Promise<void> {
    const layers = await readLayers(base);
    for (const side of ["upper", "work"]) await mkdir(join(folder, "system", side), { recursive: true, mode: 0o755 });
    for (let slot = 0; slot < LIVE_SLOTS; slot += 1) {
      for (const side of ["upper", "work"]) await mkdir(join(folder, `live/${slot}`, side), { recursive: true, mode: 0o755 });
      const like = join(base, `live/${slot}/upper`);
      if (existsSync(like)) await copyAttributes(like, join(folder, `live/${slot}/upper`));
    }
    for (const [slot, like] of await rootsOf(layers.map((layer) => this.#folders.path("base", layer)))) {
      for (const side of ["upper", "work"]) await mkdir(join(folder, "roots", slot, side), { recursive: true, mode: 0o755 });
      await copyAttributes(like, join(folder, "roots", slot, "upper"));
    }
    await writeLayers(folder, layers);
  }

  async paths(volume: string): Promise<VolumePaths> {
    const folder = this.#folders.volume(volume);
    return { folder, layers: (await readLayers(folder)).map((layer) => this.#folders.path("base", layer)) };
  }

  async remove(volume: string): Promise<void> {
    await this.#folders.remove("volume", volume);
  }

  async usage(volume: string): Promise<number> {
    return diskUsage(this.#folders.chargedTo(volume));
  }

  /** A copy reads what is not yet on the disk just as well. */
  async writeBack(): Promise<void> {}
}
