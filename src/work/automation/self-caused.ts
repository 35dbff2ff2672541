/** Whether what a trigger saw is the work of an automation's own promotion. */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { LIMITS } from "../../base/schema/limits.ts";
import type { FiringRow, PromotionRow } from "../../base/store/rows.ts";
import type { Store } from "../../base/store/store.ts";
import { repositoryOf } from "./triggers/git-folder.ts";

const LOOKED_AT = 20;
/** Times of files are those of the kernel's last tick. */
const TICK_MS = 20;

/** Automations whose promotions led to something, the first one first; undefined where a person did it, or another program. */
export type Causes = readonly string[] | undefined;

export class SelfCaused {
  readonly #store: Store;
  readonly #now: () => number;

  constructor(store: Store, now: () => number) {
    this.#store = store;
    this.#now = now;
  }

  /** A file counts as written by a promotion if that wrote its path, and it was changed last while that was under way. */
  async ofFiles(project: string, paths: readonly string[]): Promise<Causes> {
    return paths.length === 0 ? undefined : this.#first(project, (row) => wroteAll(row, paths));
  }

  /**
   * A commit counts as made by a promotion if a stage put it into a branch, or its object was written while the promotion was under
   * way: lines of a stage may commit. Only a commit that was made on this machine has such an object.
   */
  async ofCommit(project: string, commit: string): Promise<Causes> {
    const object = join(await repositoryOf(project), "objects", commit.slice(0, 2), commit.slice(2));
    const madeAt = (await stat(object).catch(() => undefined))?.mtimeMs;
    return this.#first(project, async (row) => row.branch?.commit === commit || (madeAt !== undefined && isWithin(row, madeAt, 0)));
  }

  /** A line of a log counts as caused by a promotion if it was written while that was under way, or shortly after. */
  async ofLog(project: string, file: string): Promise<Causes> {
    const writtenAt = (await stat(file).catch(() => undefined))?.mtimeMs;
    return writtenAt === undefined ? undefined : this.#first(project, async (row) => isWithin(row, writtenAt, LIMITS.ownLogMs));
  }

  /** Of the newest promotion that is one, and belongs to a firing. */
  async #first(project: string, isOne: (row: PromotionRow) => Promise<boolean>): Promise<Causes> {
    const rows = await this.#store.promotions.list({ project }, { limit: LOOKED_AT });
    const since = this.#now() - LIMITS.ownChangeMs;
    for (const row of rows) {
      if (row.experiment === null || Date.parse(row.createdAt) <= since || !(await isOne(row))) continue;
      const firing = await this.#firingOf(row);
      if (firing !== undefined) return [...(firing.causes ?? []), firing.automation];
    }
    return undefined;
  }

  async #firingOf({ experiment, project }: PromotionRow): Promise<FiringRow | undefined> {
    const rows = await this.#store.firings.list({ project }, { limit: LIMITS.listedFirings });
    return rows.find((row) => row.experiment === experiment);
  }
}

async function wroteAll(row: PromotionRow, paths: readonly string[]): Promise<boolean> {
  const written = new Set(row.plan?.changes.map(({ path }) => path));
  if (!paths.every((path) => written.has(path))) return false;
  for (const path of paths) {
    const stats = await stat(join(row.project, path)).catch(() => undefined);
    if (stats !== undefined && !isWithin(row, stats.ctimeMs, 0)) return false;
  }
  return true;
}

/** Whether a time lies between the beginning of a promotion and its end, or so long after it. */
function isWithin(row: PromotionRow, at: number, afterMs: number): boolean {
  return at >= Date.parse(row.createdAt) - TICK_MS && at <= lastWorkOf(row) + afterMs;
}

/** When a promotion did something last. One that waits before its first stage has done nothing yet. */
function lastWorkOf({ state, stages, endedAt }: PromotionRow): number {
  if (endedAt !== null) return Date.parse(endedAt);
  if (state === "applying" || (state === "applied" && stages.some((stage) => stage.state === "running"))) return Infinity;
  return state === "applied" ? Math.max(...stages.map((stage) => Date.parse(stage.endedAt ?? "1970-01-01"))) : -Infinity;
}
