import { VivError } from "../../../base/schema/errors.ts";
import type { BaseSteps, Comparison, FolderSides, SystemPart, VolumeOrSnapshot } from "../comparison.ts";
import { directBetween, directSides } from "../sides.ts";
import type { VolumeFolders } from "../volume-folders.ts";

export class FolderComparison implements Comparison {
  readonly #folders: VolumeFolders;

  constructor(folders: VolumeFolders) {
    this.#folders = folders;
  }

  async sides(of: VolumeOrSnapshot, base: string): Promise<FolderSides> {
    return directSides(this.#folders, this.#folders.pathOf(of), base);
  }

  live(): FolderSides {
    throw new VivError("unsupported", "A sandbox without walls shares nothing live.");
  }

  system(): SystemPart[] {
    throw new VivError("unsupported", "A sandbox without walls has no system of its own.");
  }

  async between(from: string, to: string): Promise<BaseSteps> {
    return directBetween(this.#folders, from, to);
  }
}
