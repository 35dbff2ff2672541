/** The state of a run's clone: a hash of what a promotion would take of it, so that caches and build output are no change. */
import { errorText } from "../../base/host/log.ts";
import { decodePath } from "../../base/schema/path-bytes.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { promotable } from "../../machine/merge/promotable.ts";
import { GitStore } from "../../machine/merge/store.ts";
import { sidesOf } from "../../sandbox/changes/diff.ts";
import { sortingOf } from "../../sandbox/changes/promotable-of.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import type { Observation } from "../guardian/observation.ts";
import { THRESHOLDS } from "../guardian/thresholds.ts";
import { countFiles } from "./project-size.ts";

/** After a look comes a rest that is so many times as long. */
const REST = 20;

export interface CloneLook {
  readonly hash: string;
  readonly files: NonNullable<Observation["files"]>;
}

export class CloneState {
  readonly #parts: Pick<Parts, "backends" | "log">;
  readonly #temporary: string;
  readonly #rest: number;
  #state: CloneLook | undefined;
  /** Files of the project, counted once they are asked for. */
  #projectFiles: Promise<number> | undefined;
  /** Paths of the base that are changed or gone. */
  #ofBase: ReadonlySet<string> = new Set();
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

  /** Whether a path that was changed, or is gone, is one of the base, as the last look saw it. */
  isOfBase(path: string): boolean {
    return this.#ofBase.has(path);
  }

  /** undefined where it is not known now: files changed, and the next look comes later. */
  async look(row: SandboxRow): Promise<CloneLook | undefined> {
    if (!this.#isChanged) return this.#state;
    const began = performance.now();
    if (began < this.#nextAt) return undefined;
    this.#isChanged = false;
    this.#state = await this.#read(row).catch((error: unknown) => {
      this.#parts.log.info("the clone of a run could not be compared", { sandbox: row.id, error: errorText(error) });
      this.#isChanged = true;
      return undefined;
    });
    this.#nextAt = performance.now() + this.#rest * (performance.now() - began);
    // What changed while it was read belongs to the next look.
    return this.#isChanged ? undefined : this.#state;
  }

  async #read(row: SandboxRow): Promise<CloneLook> {
    const backend = this.#parts.backends.of(row);
    const store = await GitStore.open(this.#temporary, backend);
    try {
      const sides = await sidesOf(backend, row);
      const { trees, changes } = await promotable(store, { gather: backend.gather, ...sortingOf(this.#parts, row, sides) });
      const all = [...changes.changes.values()];
      const added = all.filter((change) => change.old === null).length;
      const deleted = all.filter((change) => change.new === null).length;
      this.#ofBase = new Set(all.flatMap(({ path, old }) => (old === null ? [] : [decodePath(path)])));
      if (deleted - added >= THRESHOLDS.lostFiles) this.#projectFiles ??= countFiles(sides.before?.base ?? sides.old);
      const project = (await this.#projectFiles) ?? null;
      return { hash: trees === undefined ? "unchanged" : `${trees.old} ${trees.new}`, files: { added, deleted, project } };
    } finally {
      store.discard();
    }
  }
}
