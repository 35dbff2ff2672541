import type { Repair, StorageHealth, VolumeKeep } from "../health.ts";
import type { Subvolumes } from "./subvolumes.ts";

export class BtrfsHealth implements StorageHealth {
  readonly repair: Repair;
  readonly #subvolumes: Subvolumes;

  constructor(subvolumes: Subvolumes) {
    this.#subvolumes = subvolumes;
    this.repair = {
      due: () => subvolumes.pool.canBeMended(),
      run: async () => {
        await subvolumes.pool.mend();
        await subvolumes.prepare();
      },
    };
  }

  async free(): Promise<{ totalBytes: number; freeBytes: number }> {
    return this.#subvolumes.pool.free();
  }

  errors(): number | undefined {
    return this.#subvolumes.pool.errors();
  }

  async reconcile(keep: VolumeKeep): Promise<string[]> {
    const { folders, quotas, pool, creating } = this.#subvolumes;
    await this.#subvolumes.settleNursery();
    const removed = await folders.reconcile(keep);
    await quotas.removeOthers([...(await folders.charged()), ...creating]);
    pool.startGivingBack();
    return removed;
  }
}
