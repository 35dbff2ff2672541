import type { BaseSteps, Comparison, LiveSlot, FolderSides, SystemPart, VolumeOrSnapshot } from "../comparison.ts";
import { readShared } from "../shared.ts";
import { directBetween, directSides, liveSides, systemParts } from "../sides.ts";
import type { VolumeFolders } from "../volume-folders.ts";
import type { Freezes } from "./freezes.ts";
import { originOf } from "./origin.ts";
import type { Subvolumes } from "./subvolumes.ts";

export class BtrfsComparison implements Comparison {
  readonly #folders: VolumeFolders;
  readonly #freezes: Freezes;

  constructor({ folders, freezes }: Subvolumes) {
    this.#folders = folders;
    this.#freezes = freezes;
  }

  async sides(of: VolumeOrSnapshot, base: string): Promise<FolderSides> {
    await this.#freezes.of(base);
    const folder = this.#folders.pathOf(of);
    const shared = readShared(folder);
    const origin = originOf(folder);
    return {
      ...directSides(this.#folders, folder, base),
      ...(shared === undefined ? {} : { shared }),
      ...(origin === undefined ? {} : { origin }),
    };
  }

  live(of: VolumeOrSnapshot, folder: LiveSlot): FolderSides {
    return liveSides(this.#folders.pathOf(of), folder);
  }

  system(of: VolumeOrSnapshot): SystemPart[] {
    return systemParts(this.#folders.pathOf(of));
  }

  async between(from: string, to: string): Promise<BaseSteps> {
    await Promise.all([this.#freezes.of(from), this.#freezes.of(to)]);
    return directBetween(this.#folders, from, to);
  }
}
