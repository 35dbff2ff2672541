/** Records of promotions: how they begin, and what of them is shown. */
import { newId } from "../../base/schema/ids.ts";
import { Promotion, type PromoteInput, type PromotionPlan } from "../../base/schema/promotion.ts";
import type { PromotionRow } from "../../base/store/rows.ts";
import type { Origin } from "./source.ts";
import { startOf, type PlannedStage } from "./stages.ts";

export const EMPTY_PLAN: PromotionPlan = {
  hash: "",
  changes: [],
  files: 0,
  moved: false,
  movedPaths: 0,
  conflicts: [],
  risks: [],
  leftOut: [],
  notes: [],
};

export function newRow(source: Origin, input: Omit<PromoteInput, "env">, stages: readonly PlannedStage[]): PromotionRow {
  return {
    id: newId("promotion"),
    kind: "promotion",
    project: source.row.project,
    sandbox: source.row.id,
    sandboxName: source.row.name,
    experiment: source.experiment?.id ?? null,
    undoes: null,
    message: input.message ?? null,
    state: "planning",
    reason: null,
    plan: null,
    stages: startOf(stages),
    branch: null,
    pending: false,
    createdAt: new Date().toISOString(),
    endedAt: null,
    input,
    snapshot: source.snapshot,
    approved: [],
    verified: null,
    writing: false,
    written: false,
  };
}

export function newUndo(written: PromotionRow): PromotionRow {
  return {
    ...written,
    id: newId("promotion"),
    kind: "undo",
    undoes: written.id,
    state: "planning",
    plan: null,
    stages: [],
    createdAt: new Date().toISOString(),
    endedAt: null,
    input: null,
    approved: [],
    verified: null,
    writing: false,
    written: false,
  };
}

export function originalInput(row: PromotionRow): Pick<PromoteInput, "sandbox" | "experiment" | "only" | "include" | "branch"> {
  const { only, include, branch } = row.input ?? {};
  const from = row.experiment === null ? { sandbox: row.sandbox ?? "" } : { experiment: row.experiment };
  return {
    ...from,
    ...(only === undefined ? {} : { only }),
    ...(include === undefined ? {} : { include }),
    ...(branch === undefined ? {} : { branch }),
  };
}

/** What the API shows of a row. */
export function shown(row: PromotionRow): Promotion {
  return Promotion.parse({ ...row, pending: row.writing });
}
