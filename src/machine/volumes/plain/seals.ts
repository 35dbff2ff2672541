/** A seal is a digest of the whole snapshot: a file system without checksums hands out what is on the disk, right or wrong. */
import { VivError } from "../../../base/schema/errors.ts";
import type { Seals } from "../copied-snapshots.ts";
import { damaged } from "../damage.ts";
import type { VolumeFolders } from "../volume-folders.ts";
import { digestOf } from "./digest.ts";
import { readLayers } from "./layers.ts";

export class DigestSeals implements Seals {
  readonly #folders: VolumeFolders;

  constructor(folders: VolumeFolders) {
    this.#folders = folders;
  }

  async seal(snapshot: string): Promise<string> {
    return digestOf(this.#folders.path("snapshot", snapshot));
  }

  async verify(snapshot: string, seal: string | undefined): Promise<void> {
    if (!this.#folders.has("snapshot", snapshot)) throw damaged(snapshot, "it is gone from the storage");
    try {
      const layers = await readLayers(this.#folders.path("snapshot", snapshot));
      const lost = layers.find((layer) => !this.#folders.has("base", layer));
      if (lost !== undefined) throw damaged(snapshot, `the base ${lost} under it is gone`);
      if (seal === undefined || seal === (await this.seal(snapshot))) return;
    } catch (error) {
      if (error instanceof VivError && error.code === "snapshot_damaged") throw error;
      throw damaged(snapshot, `it can't be read (${error instanceof Error ? error.message : String(error)})`, error);
    }
    throw damaged(snapshot, "its content is not what was saved");
  }
}
