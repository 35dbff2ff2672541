import type { Disks, VolumePaths, VolumeSource } from "../disks.ts";
import type { VolumeFolders } from "../volume-folders.ts";
import type { Subvolumes } from "./subvolumes.ts";

export class BtrfsDisks implements Disks {
  readonly #subvolumes: Subvolumes;

  constructor(subvolumes: Subvolumes) {
    this.#subvolumes = subvolumes;
  }

  async create(volume: string, source: VolumeSource, diskBytes: number): Promise<VolumePaths> {
    const { pool, folders, creating, freezes } = this.#subvolumes;
    // Without a pause where none is needed: the kernel is at work on the volume while the caller does the rest of a launch.
    const growing = pool.requireSpace();
    if (growing !== undefined) await growing;
    const freezing = "base" in source ? freezes.of(source.base) : undefined;
    if (freezing !== undefined) await freezing;
    const from = pathOf(folders, source);
    const folder = folders.newVolume(volume);
    const besideOthers = creating.size > 0;
    creating.add(volume);
    try {
      await this.#subvolumes.copy(from, folder, { readOnly: false, charged: volume, limitBytes: diskBytes, besideOthers });
      return { folder, layers: [] };
    } catch (error) {
      await this.remove(volume);
      throw error;
    } finally {
      creating.delete(volume);
    }
  }

  async paths(volume: string): Promise<VolumePaths> {
    return { folder: this.#subvolumes.folders.volume(volume), layers: [] };
  }

  async remove(volume: string): Promise<void> {
    await this.#subvolumes.folders.remove("volume", volume);
  }

  async usage(volume: string): Promise<number> {
    return this.#subvolumes.quotas.usage(volume);
  }

  async writeBack(volume: string): Promise<void> {
    await this.#subvolumes.host.request("btrfs.sync", [["path", this.#subvolumes.folders.path("volume", volume)]]);
  }
}

function pathOf(folders: VolumeFolders, source: VolumeSource): string {
  if ("base" in source) return folders.path("base", source.base);
  return "snapshot" in source ? folders.path("snapshot", source.snapshot) : folders.path("volume", source.volume);
}
