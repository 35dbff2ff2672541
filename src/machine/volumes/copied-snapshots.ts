/** Snapshots that are copies of folders. How a copy is made, sealed and verified is the storage's own. */
import type { Snapshots } from "./snapshots.ts";
import { requireHostSpace } from "./space.ts";
import type { VolumeFolders } from "./volume-folders.ts";

export type Seals = Pick<Snapshots, "seal" | "verify">;

export class CopiedSnapshots implements Snapshots {
  readonly #folders: VolumeFolders;
  readonly #copy: (from: string, to: string) => Promise<void>;
  readonly #seals: Seals;

  constructor(folders: VolumeFolders, copy: (from: string, to: string) => Promise<void>, seals: Seals) {
    this.#folders = folders;
    this.#copy = copy;
    this.#seals = seals;
  }

  async take(volume: string, snapshot: string): Promise<void> {
    requireHostSpace(this.#folders.folder);
    const target = this.#folders.snapshotPath(snapshot, volume);
    await this.#folders.make("snapshot", target, (aside) => this.#copy(this.#folders.path("volume", volume), aside));
    this.#folders.add(snapshot, volume);
  }

  seal(snapshot: string): Promise<string> {
    return this.#seals.seal(snapshot);
  }

  verify(snapshot: string, seal: string | undefined): Promise<void> {
    return this.#seals.verify(snapshot, seal);
  }

  async restore(volume: string, snapshot: string, ended?: Promise<unknown>): Promise<void> {
    requireHostSpace(this.#folders.folder);
    await this.#folders.replaceVolume(volume, async (aside) => {
      await this.#copy(this.#folders.path("snapshot", snapshot), aside);
      await ended;
    });
  }

  async remove(snapshot: string): Promise<void> {
    await this.#folders.remove("snapshot", snapshot);
  }
}
