/** The state of a run's clone: a hash of what a promotion would take of it, so that caches and build output are no change. */
import { errorText } from "../../base/host/log.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { promotable } from "../../machine/merge/promotable.ts";
import { GitStore } from "../../machine/merge/store.ts";
import { sidesOf } from "../../sandbox/changes/diff.ts";
import { sortingOf } from "../../sandbox/changes/promotable-of.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";

/** After a look comes a rest that is so many times as long. */
const REST = 20;

export class CloneState {
  readonly #parts: Pick<Parts, "backends" | "log">;
  readonly #temporary: string;
  readonly #rest: number;
  #hash: string | undefined;
  #isChanged = true;
  #nextAt = 0;

  /** `patience` as in the guardian's config. */
  constructor(parts: Pick<Parts, "backends" | "log">, temporary: string, patience: number) {
    this.#parts = parts;
    this.#temporary = temporary;
    this.#rest = REST * Math.min(1, patience);
  }

  /** Files inside changed, as far as the server knows. */
  changed(): void {
    this.#isChanged = true;
  }

  /** undefined where it is not known now: files changed, and the next look comes later. */
  async look(row: SandboxRow): Promise<string | undefined> {
    if (!this.#isChanged) return this.#hash;
    const began = performance.now();
    if (began < this.#nextAt) return undefined;
    this.#isChanged = false;
    this.#hash = await this.#read(row).catch((error: unknown) => {
      this.#parts.log.info("the clone of a run could not be compared", { sandbox: row.id, error: errorText(error) });
      this.#isChanged = true;
      return undefined;
    });
    this.#nextAt = performance.now() + this.#rest * (performance.now() - began);
    // What changed while it was read belongs to the next look.
    return this.#isChanged ? undefined : this.#hash;
  }

  async #read(row: SandboxRow): Promise<string> {
    const backend = this.#parts.backends.of(row);
    const store = await GitStore.open(this.#temporary, backend);
    try {
      const { trees } = await promotable(store, { gather: backend.gather, ...sortingOf(this.#parts, row, await sidesOf(backend, row)) });
      return trees === undefined ? "unchanged" : `${trees.old} ${trees.new}`;
    } finally {
      store.discard();
    }
  }
}
