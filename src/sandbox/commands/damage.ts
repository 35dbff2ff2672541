/** Storage that fails under a sandbox: the operation that met the error reports it, the sandbox is marked, and the rest goes on. */
import type { Driver, FileOperations } from "../../machine/drivers/drivers.ts";
import { errorText } from "../../base/host/log.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { StorageHealth } from "../../machine/volumes/health.ts";
import type { Parts } from "../shared/parts.ts";
import { isFinal } from "../shared/state.ts";

type DamageParts = Pick<Parts, "store" | "backends" | "log" | "locks">;

const REASON =
  "The storage under it gave an error: some of its files can't be read or written. What can be read can be taken out or forked.";

export class Damage {
  readonly #parts: DamageParts;
  /** The storage of each driver, and how many of its errors were reported already. */
  readonly #storages = new Map<Driver, { readonly health: StorageHealth; reported: number }>();

  constructor(parts: DamageParts) {
    this.#parts = parts;
    for (const { driver, storage } of parts.backends.all())
      this.#storages.set(driver, { health: storage.health, reported: storage.health.errors() ?? 0 });
  }

  /** How many errors the storage of a driver has met since this was last asked. */
  since(driver: Driver): number {
    const storage = this.#storages.get(driver);
    const now = storage?.health.errors();
    if (storage === undefined || now === undefined) return 0;
    const before = storage.reported;
    storage.reported = now;
    return Math.max(0, now - before);
  }

  /** Errors that no command and no request was hurt by, as far as is known. */
  async report(): Promise<void> {
    for (const driver of this.#storages.keys()) {
      const errors = this.since(driver);
      if (errors > 0) await this.#parts.store.change((change) => change.event("storage.damaged", null, { driver: driver.name, errors }));
    }
  }

  /** Marks a sandbox, once. The caller does not wait for it, since it has an answer to give. */
  mark(sandbox: string, what: string): void {
    const { locks, store, log } = this.#parts;
    const marking = locks.run(sandbox, () =>
      store.change(async (change) => {
        const row = await change.sandboxes.get(sandbox);
        if (row === undefined || isFinal(row.state) || row.reason === REASON) return;
        await change.sandboxes.put({ ...row, reason: REASON });
        await change.event("sandbox.damaged", sandbox, { name: row.name, what });
      }),
    );
    marking.catch((error: unknown) => log.warn("a damaged sandbox was not marked", { sandbox, error: errorText(error) }));
  }

  /** The same promise; if it ends in an error of the storage, the sandbox is marked. */
  async heardBy<T>(sandbox: string, work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      this.#heard(sandbox, error);
      throw error;
    }
  }

  #heard(sandbox: string, error: unknown): void {
    if (error instanceof VivError && error.code === "storage_damaged") this.mark(sandbox, error.message);
  }

  /** The same file operations; one that meets an error of the storage marks the sandbox. */
  watch(sandbox: string, files: FileOperations): FileOperations {
    const hear = <T>(work: Promise<T>): Promise<T> => this.heardBy(sandbox, work);
    return {
      stat: (...given) => hear(files.stat(...given)),
      list: (...given) => hear(files.list(...given)),
      read: async (...given) => {
        const found = await hear(files.read(...given));
        found.body.once("error", (error) => this.#heard(sandbox, error));
        return found;
      },
      write: (...given) => hear(files.write(...given)),
      move: (...given) => hear(files.move(...given)),
      remove: (...given) => hear(files.remove(...given)),
      mkdir: (...given) => hear(files.mkdir(...given)),
      apply: (...given) => hear(files.apply(...given)),
      watch: (...given) => files.watch(...given),
      ...(files.carry === undefined ? {} : { carry: (...given) => hear(files.carry?.(...given) ?? Promise.resolve()) }),
    };
  }
}
