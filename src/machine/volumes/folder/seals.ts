/** Copies of a folder without walls are only looked for, not read again: any process of the user could change both. */
import type { Seals } from "../copied-snapshots.ts";
import { damaged } from "../damage.ts";
import type { VolumeFolders } from "../volume-folders.ts";

export class PresenceSeals implements Seals {
  readonly #folders: VolumeFolders;

  constructor(folders: VolumeFolders) {
    this.#folders = folders;
  }

  async seal(snapshot: string): Promise<string> {
    return snapshot;
  }

  async verify(snapshot: string): Promise<void> {
    if (!this.#folders.has("snapshot", snapshot)) throw damaged(snapshot, "it is gone from the storage");
  }
}
