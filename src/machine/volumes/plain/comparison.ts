import { existsSync } from "node:fs";
import { join } from "node:path";
import type { BaseSteps, Comparison, LiveSlot, FolderSides, SystemPart, VolumeOrSnapshot } from "../comparison.ts";
import { liveSides, systemParts } from "../sides.ts";
import { projectIn } from "../volumes.ts";
import type { VolumeFolders } from "../volume-folders.ts";
import { readLayers } from "./layers.ts";

export class PlainComparison implements Comparison {
  readonly #folders: VolumeFolders;

  constructor(folders: VolumeFolders) {
    this.#folders = folders;
  }

  live(of: VolumeOrSnapshot, folder: LiveSlot): FolderSides {
    return liveSides(this.#folders.pathOf(of), folder);
  }

  system(of: VolumeOrSnapshot): SystemPart[] {
    return systemParts(this.#folders.pathOf(of));
  }

  async sides(of: VolumeOrSnapshot, base: string): Promise<FolderSides> {
    const folder = this.#folders.pathOf(of);
    const layers = await readLayers(folder);
    const [own = base] = layers;
    const sides = { old: this.#layerFolders(layers), new: join(projectIn(folder), "upper"), overlay: true };
    if (own === base) return sides;
    const compared = this.#layerFolders(await readLayers(this.#folders.path("base", base)));
    return { ...sides, before: { base: compared, way: await this.between(base, own) } };
  }

  #layerFolders(layers: readonly string[]): string[] {
    return layers.map((layer) => projectIn(this.#folders.path("base", layer)));
  }

  /** Down the layers that only the first has, up those that only the second has. */
  async between(from: string, to: string): Promise<BaseSteps> {
    const [old, now] = await Promise.all([from, to].map((base) => readLayers(this.#folders.path("base", base))));
    let common = 0;
    while (old?.at(-1 - common) !== undefined && old.at(-1 - common) === now?.at(-1 - common)) common += 1;
    return { back: this.#steps(old ?? [], common), forth: this.#steps(now ?? [], common).toReversed() };
  }

  /** Each layer over those below it, topmost first, down to the common ones. */
  #steps(layers: readonly string[], common: number): FolderSides[] {
    const folders = this.#layerFolders(layers);
    return folders
      .slice(0, folders.length - common)
      .map((folder, index) => ({ old: folders.slice(index + 1), new: folder, overlay: true }))
      .filter((sides) => existsSync(sides.new))
      .map((sides) => (sides.old.length === 0 ? { ...sides, old: [join(this.#folders.folder, "nothing")] } : sides));
  }
}
