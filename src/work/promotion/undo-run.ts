/** Taking promotions back, asked for or after a crash. The caller holds the project's lock. */
import { openProject } from "../../sandbox/projects/projects.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { PromotionRow } from "../../base/store/rows.ts";
import { runOutside } from "./outside.ts";
import { describeChange } from "./plan.ts";
import type { PromotionParts } from "./promotions.ts";
import type { Records } from "./record.ts";
import { EMPTY_PLAN, newUndo } from "./rows.ts";
import { plannedStages } from "./stages.ts";
import { keptSentence } from "./kept-edits.ts";
import type { ProjectWriter } from "./project-writer.ts";

export class UndoRun {
  readonly #all: PromotionParts;
  readonly #records: Records;
  readonly #writer: ProjectWriter;

  constructor(all: PromotionParts, records: Records, writer: ProjectWriter) {
    this.#all = all;
    this.#records = records;
    this.#writer = writer;
  }

  /** Later stages that know how to go back do so first, the last one first. */
  async stages(row: PromotionRow): Promise<string | null> {
    const { parts } = this.#all;
    const view = await openProject(parts.store, row.project, parts.state);
    const stages = plannedStages(view.config, { checks: [], folders: {} });
    const said: string[] = [];
    for (const result of row.stages.toReversed()) {
      const stage = stages.find(({ name }) => name === result.name);
      if (result.state !== "passed" || stage === undefined || typeof stage.apply !== "object") continue;
      if (stage.rollback === undefined) {
        said.push(`Stage ${stage.name} has no rollback and stands.`);
        continue;
      }
      if (!view.trusted) {
        said.push(`Stage ${stage.name} stands: what its rollback runs is not what was trusted.`);
        continue;
      }
      const check = await runOutside(row.project, stage.rollback, {}, { variables: { VIV_PROMOTION: row.id, VIV_STAGE: stage.name } });
      said.push(
        check.passed ? `Stage ${stage.name} was rolled back.` : `The rollback of stage ${stage.name} ended with ${check.exitCode}.`,
      );
    }
    return said.length === 0 ? null : said.join(" ");
  }

  /** In the name of a promotion of its own. */
  async takeBack(written: PromotionRow, reason: string | null): Promise<PromotionRow> {
    const { parts } = this.#all;
    const row: PromotionRow = { ...newUndo(written), reason };
    await parts.store.change((change) => change.promotions.put(row));
    parts.reach("promotion.undo");
    await this.#records.fresh(row.id);
    const { changes, conflicts } = await this.#writer.takeBack(row, written);
    const undone = conflicts.length === 0;
    const [first] = conflicts;
    const ended: PromotionRow = {
      ...row,
      writing: false,
      state: undone ? "applied" : "failed",
      reason: undone ? reason : `${first?.path ?? ""} was edited since and can't be merged; nothing was taken back.`,
      plan: { ...EMPTY_PLAN, changes: changes.slice(0, LIMITS.listedChanges).map(describeChange), files: changes.length, conflicts },
      endedAt: new Date().toISOString(),
    };
    await parts.store.change(async (change) => {
      await change.promotions.put(ended);
      const now = await change.promotions.get(written.id);
      if (undone && now !== undefined) await change.promotions.put(takenBack(now));
      await change.event(undone ? "promotion.undone" : "promotion.failed", written.sandbox, {
        promotion: written.id,
        undo: row.id,
        project: row.project,
      });
    });
    return ended;
  }

  /** Brings what was cut short to its end; the record says which. */
  async settle(found: PromotionRow): Promise<void> {
    const row = await this.#all.parts.store.promotions.get(found.id);
    // The undo of a promotion is newer, comes first, and may have ended it.
    if (row === undefined || row.state === "undone") return;
    const { end, kept } = row.writing ? await this.#writer.recover(row) : { end: "before" as const, kept: [] };
    const endedAt = new Date().toISOString();
    const open = row.stages.findIndex(({ state }) => state === "running");
    const interrupted = "The server ended while it was under way";
    const stages = row.stages.map((result, index) =>
      index === open
        ? { ...result, state: end === "after" ? ("passed" as const) : ("failed" as const), reason: `${interrupted}.`, endedAt }
        : result,
    );
    const written = row.written || (row.kind === "promotion" && end === "after");
    const stands = written || end === "after" || row.branch !== null || row.state === "applied";
    const reason = `${interrupted}; ${whatStays(row, written || end === "after", kept)}`;
    await this.#all.parts.store.change(async (change) => {
      await change.promotions.put({ ...row, stages, writing: false, written, kept, state: stands ? "applied" : "failed", reason, endedAt });
      const undone = row.undoes === null || end === "before" ? undefined : await change.promotions.get(row.undoes);
      if (undone !== undefined) await change.promotions.put(takenBack(undone));
      await change.event(stands ? "promotion.applied" : "promotion.failed", row.sandbox, {
        promotion: row.id,
        project: row.project,
        reason,
        kept: [...kept],
      });
    });
  }
}

/** A promotion whose files are as before; one that goes on to fail for its own reason says so itself. */
function takenBack(row: PromotionRow): PromotionRow {
  return { ...row, written: false, state: row.state === "applied" ? "undone" : row.state };
}

function whatStays({ branch }: PromotionRow, inFolder: boolean, kept: readonly string[]): string {
  if (inFolder) return "the change is in the folder, its checks did not come to their end.";
  if (kept.length > 0) return `${keptSentence(kept)}Nothing else stays of it.`;
  return branch === null ? "nothing stays of it." : `the branch ${branch.name} is there.`;
}
