/** Storage that a full or failing disk has stopped comes back by itself once that takes writes, without a restart of the server. */
import { errorText } from "../base/host/log.ts";
import type { Parts } from "./shared/parts.ts";
import type { Backend } from "../machine/backends.ts";
import { isLost } from "./projects/bases.ts";
import type { Repair } from "../machine/volumes/health.ts";
import type { Sandboxes } from "./sandboxes.ts";

type StorageReopeningParts = Pick<Parts, "store" | "backends" | "log" | "locks" | "live">;

const REASON =
  "The disk under the storage of sandboxes was full or failed, and the storage stopped; its files as they were before are kept and can be forked.";

export class StorageReopening {
  readonly #parts: StorageReopeningParts;
  readonly #sandboxes: Sandboxes;

  constructor(parts: StorageReopeningParts, sandboxes: Sandboxes) {
    this.#parts = parts;
    this.#sandboxes = sandboxes;
  }

  /** One look; the server calls it every few seconds. */
  async look(): Promise<void> {
    await this.#sandboxes.damage.report();
    for (const backend of this.#parts.backends.all()) {
      const { repair } = backend.storage.health;
      if (repair?.due() === true) await this.#mend(backend, repair);
    }
  }

  /** Sandboxes whose disk takes no writes any more are over: they end, and their storage is opened again. */
  async #mend(backend: Backend, repair: Repair): Promise<void> {
    const { backends, live, locks, log, store } = this.#parts;
    log.warn("the storage was stopped by a full or failing disk and is opened again", { driver: backend.driver.name });
    for (const [id] of live.entries()) {
      await locks.run(id, async () => {
        const row = await store.sandboxes.get(id);
        if (row !== undefined && backends.of(row) === backend)
          await this.#sandboxes.sandboxEnd.fail(row, { outcome: "lost", reason: REASON });
      });
    }
    await this.#sandboxes.creation.spares.clear();
    await backend.capture.close();
    await repair.run().catch((error: unknown) => {
      throw new Error(`the storage could not be opened again: ${errorText(error)}`, { cause: error });
    });
    await this.#removeLost(backend);
    await store.change((change) => change.event("storage.mended", null, { driver: backend.driver.name }));
  }

  /** The storage is as it was at its last write to the disk. */
  async #removeLost(backend: Backend): Promise<void> {
    const { backends, locks, store } = this.#parts;
    for (const { id } of await store.sandboxes.list()) {
      await locks.run(id, async () => {
        const row = await store.sandboxes.get(id);
        if (row === undefined || !backends.has(row) || backends.of(row) !== backend) return;
        if (await isLost(store, backend.storage, row)) await this.#sandboxes.sandboxEnd.remove(row);
      });
    }
  }
}
