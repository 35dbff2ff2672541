import { CellError } from "../../../base/host/helper.ts";
import { damaged } from "../damage.ts";
import type { Snapshots } from "../snapshots.ts";
import type { Subvolumes } from "./subvolumes.ts";

export class BtrfsSnapshots implements Snapshots {
  readonly #subvolumes: Subvolumes;

  constructor(subvolumes: Subvolumes) {
    this.#subvolumes = subvolumes;
  }

  async take(volume: string, snapshot: string): Promise<void> {
    const { pool, folders } = this.#subvolumes;
    await pool.requireSpace();
    const [from, to] = [folders.path("volume", volume), folders.snapshotPath(snapshot, volume)];
    await this.#subvolumes.copy(from, to, { readOnly: true, charged: volume });
    folders.add(snapshot, volume);
  }

  async seal(snapshot: string): Promise<string> {
    return (await this.#identity(snapshot)).uuid;
  }

  /** Contents and metadata have checksums of the kernel, which refuses to hand out what is damaged: nothing is read here. */
  async verify(snapshot: string, seal: string | undefined): Promise<void> {
    const found = await this.#identity(snapshot);
    if (!found.readOnly || found.changed) throw damaged(snapshot, "something has changed it since it was made");
    if (seal !== undefined && seal !== found.uuid) throw damaged(snapshot, "something else lies in its place");
  }

  async #identity(snapshot: string): Promise<{ uuid: string; readOnly: boolean; changed: boolean }> {
    const { folders, host } = this.#subvolumes;
    if (!folders.has("snapshot", snapshot)) throw damaged(snapshot, "it is gone from the storage");
    try {
      const reply = await host.request("btrfs.identity", [["path", folders.path("snapshot", snapshot)]]);
      return { uuid: reply.get("uuid") ?? "", readOnly: reply.flag("readonly"), changed: reply.flag("changed") };
    } catch (error) {
      if (!(error instanceof CellError)) throw error;
      throw damaged(snapshot, error.code === "bad-request" ? "something else lies in its place" : error.message, error);
    }
  }

  async restore(volume: string, snapshot: string, ended?: Promise<unknown>): Promise<void> {
    const { pool, folders } = this.#subvolumes;
    await pool.requireSpace();
    const source = folders.path("snapshot", snapshot);
    await folders.replaceVolume(volume, async (aside) => {
      // The processes of the sandbox are ended meanwhile.
      await this.#subvolumes.copy(source, aside, { readOnly: false, charged: volume });
      await ended;
    });
  }

  async remove(snapshot: string): Promise<void> {
    await this.#subvolumes.folders.remove("snapshot", snapshot);
  }
}
