/** Writing a change into a project's folder, and taking it back. The caller holds the project's lock. */
import type { MergedChange } from "../../machine/merge/three-way.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import { VivError } from "../../base/schema/errors.ts";
import { decodePath } from "../../base/schema/path-bytes.ts";
import type { PlanConflict } from "../../base/schema/promotion.ts";
import type { PromotionRow } from "../../base/store/rows.ts";
import { describeConflict } from "./plan.ts";
import type { PromotionRecord, Records } from "./record.ts";
import type { EarlierFiles, LateEdit, Transactions } from "./transaction.ts";
import { mergeBack, reversed } from "./undo.ts";

type ProjectWriterParts = Pick<Parts, "store">;

interface WayBack {
  readonly changes: readonly MergedChange[];
  readonly conflicts: readonly PlanConflict[];
}

interface Written {
  /** Where reality is not as expected; then nothing is written, but for what was edited once it was. */
  readonly late: readonly LateEdit[];
  readonly kept: readonly string[];
}

export class ProjectWriter {
  readonly #parts: ProjectWriterParts;
  readonly #transactions: Transactions;
  readonly #records: Records;
  readonly #temporary: string;

  constructor(parts: ProjectWriterParts, transactions: Transactions, records: Records, temporary: string) {
    this.#parts = parts;
    this.#transactions = transactions;
    this.#records = records;
    this.#temporary = temporary;
  }

  /** Applied and durable, or the places where reality is not as expected and nothing done; the row names what was edited meanwhile. */
  async write(row: PromotionRow, { changes, contents }: PromotionRecord, restore?: EarlierFiles): Promise<Written> {
    await this.#mark(row, true);
    const kept: string[] = [];
    const heard = ({ path }: LateEdit): void => void kept.push(decodePath(path));
    const request = { id: row.id, project: row.project, changes, contents };
    try {
      const { conflicts } = await this.#transactions.apply(restore === undefined ? request : { ...request, restore }, heard);
      if (conflicts.length > 0) await this.#mark(row, false, false, kept);
      else if (row.kind === "promotion") await this.#mark(row, true, true);
      return { late: conflicts, kept };
    } catch (error) {
      // Where everything could be brought back, nothing is pending; else a recovery goes on with it.
      if (!(await this.#transactions.pending()).includes(row.id)) await this.#mark(row, false, false, kept);
      throw error;
    }
  }

  /** Takes back what `written` wrote, in the name of `row`. Exactly, or merged with later edits, or not at all. */
  async takeBack(row: PromotionRow, written: PromotionRow): Promise<{ changes: readonly MergedChange[]; conflicts: PlanConflict[] }> {
    const recorded = await this.#records.load(written.id);
    if (recorded === undefined)
      throw new VivError("not_found", `What ${written.id} replaced is no longer kept.`, { remedy: "Take it back by hand, or with git." });
    const restore = await this.#transactions.before(written.id);
    let way: WayBack = { changes: reversed(recorded.changes), conflicts: [] };
    const touched = new Set<string>();
    for (let tries = 0; tries < TRIES; tries += 1) {
      if (way.conflicts.length > 0) return { changes: [], conflicts: [...way.conflicts] };
      const { late } = await this.write(row, { ...recorded, changes: way.changes }, restore);
      if (late.length === 0) return { changes: way.changes, conflicts: [] };
      for (const { path } of late) touched.add(path.toString("latin1"));
      way = await this.#around(row.project, recorded, touched);
    }
    throw new VivError("busy", `Files of ${row.project} change while they are written.`, {
      remedy: "Let the other program end, then try again.",
    });
  }

  /** Files that were edited since are merged; the others are written back as they were. */
  async #around(project: string, { changes, contents }: PromotionRecord, touched: ReadonlySet<string>): Promise<WayBack> {
    const isTouched = ({ path }: MergedChange): boolean => touched.has(path.toString("latin1"));
    const merged = await mergeBack(this.#temporary, project, changes.filter(isTouched), contents);
    const rest = reversed(changes.filter((change) => !isTouched(change)));
    return { changes: [...rest, ...merged.changes], conflicts: merged.conflicts.map(describeConflict) };
  }

  /** Brings a write that was cut short to its end: before or after. */
  async recover(row: PromotionRow): Promise<{ readonly end: "before" | "after"; readonly kept: readonly string[] }> {
    const kept: string[] = [];
    const end = await this.#transactions.recover(row.id, ({ path }) => kept.push(decodePath(path)));
    return { end, kept };
  }

  async forget(id: string): Promise<void> {
    await this.#transactions.forget(id);
    await this.#records.remove(id);
  }

  async #mark(row: PromotionRow, writing: boolean, written = false, kept: readonly string[] = []): Promise<void> {
    await this.#parts.store.change(async (change) => {
      const now = (await change.promotions.get(row.id)) ?? row;
      await change.promotions.put({ ...now, writing, written: now.written || written, state: writing ? "applying" : now.state, kept });
    });
  }
}

const TRIES = 3;

export function lateConflicts(late: readonly LateEdit[]): PlanConflict[] {
  return late.map(({ path, what }) => ({ path: decodePath(path), kind: "late edit", message: `It ${what}.` }));
}
