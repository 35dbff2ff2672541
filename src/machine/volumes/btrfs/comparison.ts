import type { BaseSteps, Comparison, LiveSlot, FolderSides, SystemPart, VolumeOrSnapshot } from "../comparison.ts";
import { readShared } from "../shared.ts";
import { directBetween, directSides, liveSides, systemParts } from "../sides.ts";
import type { VolumeFolders } from "../volume-folders.ts";

export class BtrfsComparison implements Comparison {
  readonly #folders: VolumeFolders;

  constructor(folders: VolumeFolders) {
    this.#folders = folders;
  }

  async sides(of: VolumeOrSnapshot, base: string): Promise<FolderSides> {
    const folder = this.#folders.pathOf(of);
    const shared = readShared(folder);
    return { ...directSides(this.#folders, folder, base), ...(shared === undefined ? {} : { shared }) };
  }

  live(of: VolumeOrSnapshot, folder: LiveSlot): FolderSides {
    return liveSides(this.#folders.pathOf(of), folder);
  }

  system(of: VolumeOrSnapshot): SystemPart[] {
    return systemParts(this.#folders.pathOf(of));
  }

  async between(from: string, to: string): Promise<BaseSteps> {
    return directBetween(this.#folders, from, to);
  }
}
