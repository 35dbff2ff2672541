/** A promotion on its way: from stage to stage, as far as it was asked to go. The caller holds the project's lock. */
import type { CheckSettings, Verification } from "../checks/verification.ts";
import type { CheckResult } from "../../base/schema/check.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { PromotionPlan, StageResult } from "../../base/schema/promotion.ts";
import type { PromotionRow } from "../../base/store/rows.ts";
import { runOutside } from "./outside.ts";
import { keptSentence } from "./kept-edits.ts";
import type { PreparedPlan } from "./plan.ts";
import type { PlannedStage } from "./stages.ts";
import type { LateEdit } from "./transaction.ts";
import { lateConflicts, type ProjectWriter } from "./project-writer.ts";

/** What came of carrying out a stage. */
interface StageOutcome {
  readonly row: PromotionRow;
  readonly checks: CheckResult[];
  readonly failure?: string;
  readonly note?: string;
}

/** What the stages need to know of the project, the plan and the config. */
export interface StageContext {
  readonly stages: readonly PlannedStage[];
  /** Index of the last stage to go to. */
  readonly target: number;
  readonly setup: string | undefined;
  /** Where the setup runs; in the project's folder if undefined. */
  readonly setupIn: string | undefined;
  /** Time for each check, as the experiment had it. */
  readonly checkTimeoutMs: number | undefined;
  /** Hash of a plan that was verified before, by an experiment with the same checks. */
  readonly known: (prepared: PreparedPlan) => boolean;
  readonly env: Readonly<Record<string, string>>;
  /** Why lines of the config may not run on this machine now; undefined if they may. */
  readonly distrust: () => Promise<string | undefined>;
  /** Plans anew, into the promotion's own folder. */
  readonly plan: () => Promise<PreparedPlan>;
  /** The way back of what was written, as an undo of its own. */
  readonly takeBack: (row: PromotionRow, reason: string) => Promise<{ readonly undone: boolean; readonly said: string }>;
  readonly branch: (row: PromotionRow, prepared: PreparedPlan, stage: PlannedStage) => Promise<StageOutcome>;
  readonly save: (
    row: PromotionRow,
    event: "promotion.planned" | "promotion.waiting" | "promotion.stage" | "promotion.applied" | "promotion.failed",
  ) => Promise<void>;
}

/** Reality moved between plan and write: there is another plan to be made. */
class ProjectMoved extends Error {
  /** The plan that can't be carried out, with what stands in its way. */
  readonly plan: PromotionPlan | null;
  readonly kept: readonly string[];

  constructor(plan: PromotionPlan | null, late: readonly LateEdit[], kept: readonly string[]) {
    super("reality moved");
    this.kept = kept;
    this.plan = plan === null ? null : { ...plan, conflicts: lateConflicts(late) };
  }

  /** `kept` is what was edited once it was in place, in any try, and stays. */
  reason(kept: readonly string[]): string {
    const { path, message } = this.plan?.conflicts[0] ?? { path: "The project", message: "It changes while it is written." };
    return `${path} can't be written: ${message.charAt(0).toLowerCase()}${message.slice(1)} ${keptSentence(kept)}Nothing ${kept.length === 0 ? "" : "else "}was applied.`;
  }
}

export class StageRun {
  readonly #verification: Verification;
  readonly #writer: ProjectWriter;
  readonly #signal: AbortSignal;

  constructor(verification: Verification, writer: ProjectWriter, signal: AbortSignal) {
    this.#verification = verification;
    this.#writer = writer;
    this.#signal = signal;
  }

  async go(row: PromotionRow, context: StageContext): Promise<PromotionRow> {
    const kept = new Set<string>();
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#attempt(row, context);
      } catch (error) {
        if (!(error instanceof ProjectMoved)) throw error;
        for (const path of error.kept) kept.add(path);
        if (tries === LIMITS.promotionTries)
          return this.#end({ ...row, plan: error.plan, kept: [...kept] }, context, error.reason([...kept]));
        row = {
          ...row,
          plan: null,
          verified: null,
          stages: row.stages.map((result, index) => (isRepeated(context.stages[index]) ? reset(result) : result)),
        };
      }
    }
  }

  async #attempt(start: PromotionRow, context: StageContext): Promise<PromotionRow> {
    let row = start;
    let prepared: PreparedPlan | undefined;
    if (!isWritten(row, context)) {
      prepared = await context.plan();
      row = { ...row, plan: prepared.plan };
      const hindrance = hindranceOf(row);
      if (hindrance !== undefined) return this.#end(row, context, hindrance);
      await context.save(row, "promotion.planned");
    }
    for (const [index, stage] of context.stages.slice(0, context.target + 1).entries()) {
      if (row.stages[index]?.state === "passed") continue;
      const question = questionOf(row, stage, index, context) ?? (runsFirst(stage) ? await context.distrust() : undefined);
      if (question !== undefined) return this.#wait(row, index, context, question);
      const [next, goesOn] = await this.#stage(row, index, stage, prepared, context);
      row = next;
      if (!goesOn) return row;
    }
    row = { ...row, state: "applied", reason: null, endedAt: new Date().toISOString() };
    await context.save(row, "promotion.applied");
    return row;
  }

  async #wait(row: PromotionRow, index: number, context: StageContext, question: string): Promise<PromotionRow> {
    const state = isWritten(row, context) ? "applied" : "waiting";
    const waiting: PromotionRow = { ...withStage(row, index, { state: "waiting", reason: question }), state, reason: question };
    await context.save(waiting, "promotion.waiting");
    return waiting;
  }

  /** The row after a stage, and whether the next one may follow. */
  async #stage(
    row: PromotionRow,
    index: number,
    stage: PlannedStage,
    prepared: PreparedPlan | undefined,
    context: StageContext,
  ): Promise<[PromotionRow, boolean]> {
    let now = withStage(row, index, { state: "running", reason: null, checks: [] });
    await context.save(now, "promotion.stage");
    const before = await this.#apply(now, stage, prepared, context);
    now = { ...before.row, stages: before.row.stages };
    // What was just written may be what the lines run.
    const distrust = before.failure === undefined && linesAfter(stage).length > 0 ? await context.distrust() : undefined;
    if (distrust !== undefined && now.written) return [await this.#wait(now, index, context, distrust), false];
    const checks = [...before.checks, ...(before.failure === undefined ? await this.#afterwards(now, stage, context) : [])];
    const failed = checks.find((check) => !check.passed);
    const failure = before.failure ?? (failed === undefined ? undefined : `\`${failed.command}\` ended with ${failed.exitCode}.`);
    const endedAt = new Date().toISOString();
    if (failure === undefined) {
      now = withStage(now, index, { state: "passed", reason: before.note ?? null, checks, endedAt });
      await context.save(now, "promotion.stage");
      return [now, true];
    }
    now = withStage(now, index, { state: "failed", reason: failure, checks, endedAt });
    return [await this.#backFrom(now, index, stage, context, failure), false];
  }

  async #apply(row: PromotionRow, stage: PlannedStage, prepared: PreparedPlan | undefined, context: StageContext): Promise<StageOutcome> {
    const { apply } = stage;
    if (apply === null || apply === "none") return { row, checks: [] };
    if (typeof apply === "object" && "run" in apply) {
      const check = await runOutside(row.project, apply.run, context.env, { variables: variables(row, stage) });
      return { row, checks: [check] };
    }
    if (apply === "folder" && row.written) return { row: { ...row, state: "applying" }, checks: [] };
    if (prepared === undefined && apply !== "verify") throw new VivError("internal", "There is no plan to carry out.");
    if (prepared === undefined) return { row, checks: [] };
    if (apply === "verify") return this.#verify(row, stage, prepared, context);
    if (apply === "folder") {
      const { late, kept } = await this.#writer.write(row, { ...prepared, changes: prepared.changes });
      if (late.length > 0) throw new ProjectMoved(row.plan, late, kept);
      return { row: { ...row, state: "applying", writing: false, written: true }, checks: [] };
    }
    return context.branch(row, prepared, stage);
  }

  async #verify(row: PromotionRow, stage: PlannedStage, prepared: PreparedPlan, context: StageContext): Promise<StageOutcome> {
    const verified = { ...row, verified: prepared.plan.hash };
    if (stage.checks.length === 0) return { row: verified, checks: [], note: "There are no checks." };
    if (context.known(prepared)) return { row: verified, checks: [], note: "The experiment verified exactly this." };
    const how = checkSettingsOf(stage, context);
    const place = { project: row.project, env: { ...context.env } };
    const verdict = await this.#verification.verifyOn(place, prepared.changes, prepared.contents, how, this.#signal);
    const failure = verdict.passed ? undefined : "The checks do not pass on the project as it is now with this change.";
    const checks = [...(verdict.setup === null ? [] : [verdict.setup]), ...verdict.checks];
    return { row: verified, checks, ...(failure === undefined ? {} : { failure }) };
  }

  /** What runs in reality once a stage is applied: its `after` lines, then its checks, until one fails. */
  async #afterwards(row: PromotionRow, stage: PlannedStage, context: StageContext): Promise<CheckResult[]> {
    const results: CheckResult[] = [];
    for (const { line, cwd } of linesAfter(stage)) {
      const result = await runOutside(row.project, line, context.env, { variables: variables(row, stage), cwd });
      results.push(result);
      if (!result.passed) break;
    }
    return results;
  }

  /** Undoes a stage that failed; earlier ones stand, but for a folder that this stage was the test of. */
  async #backFrom(row: PromotionRow, index: number, stage: PlannedStage, context: StageContext, failure: string): Promise<PromotionRow> {
    const said = [`Stage ${stage.name} failed: ${failure}`];
    let now = row;
    const distrust = stage.rollback === undefined ? undefined : await context.distrust();
    if (distrust !== undefined) said.push(`Its rollback did not run: ${distrust}`);
    else if (stage.rollback !== undefined && stage.apply !== "verify") {
      const check = await runOutside(row.project, stage.rollback, context.env, { variables: variables(row, stage) });
      now = withStage(now, index, {
        state: check.passed ? "rolled-back" : "failed",
        checks: [...(now.stages[index]?.checks ?? []), check],
      });
      said.push(check.passed ? "It was rolled back." : `Its rollback ended with ${check.exitCode}.`);
    }
    const written = writtenIndex(now, context, index);
    let stands = now.written || isWritten(now, context);
    if (written >= 0) {
      const back = await context.takeBack(now, failure);
      if (back.undone)
        now = { ...withStage(withStage(now, written, { state: "rolled-back" }), index, { state: "rolled-back" }), written: false };
      stands = !back.undone;
      said.push(back.said);
    }
    return this.#end(now, context, said.join(" "), stands);
  }

  async #end(row: PromotionRow, context: StageContext, reason: string, stands = false): Promise<PromotionRow> {
    const ended: PromotionRow = { ...row, writing: false, state: stands ? "applied" : "failed", reason, endedAt: new Date().toISOString() };
    await context.save(ended, "promotion.failed");
    return ended;
  }
}

/** How the checks of a stage judge a clone. */
export function checkSettingsOf(
  { checks, cwd }: Pick<PlannedStage, "checks" | "cwd">,
  { setup, setupIn, checkTimeoutMs = LIMITS.attemptTimeoutMs }: Pick<StageContext, "setup" | "setupIn" | "checkTimeoutMs">,
): CheckSettings {
  return {
    checks,
    setup: setup ?? null,
    repeat: 1,
    checkTimeoutMs,
    measure: null,
    folders: { checks: cwd, setup: setupIn },
  };
}

/** The stage whose writing into the folder fails with the stage at `index`: itself, or the one that it only tests. */
function writtenIndex(row: PromotionRow, context: StageContext, index: number): number {
  if (context.stages[index]?.apply === "folder") return row.state === "applying" ? index : -1;
  if (context.stages[index]?.apply !== "none") return -1;
  const before = context.stages.slice(0, index).findLastIndex(({ apply }) => apply !== "none");
  return context.stages[before]?.apply === "folder" && row.stages[before]?.state === "passed" ? before : -1;
}

/** What runs in reality once a stage is applied, and where. */
function linesAfter({ apply, after, checks, cwd }: PlannedStage): { readonly line: string; readonly cwd: string | undefined }[] {
  const judged = apply === "verify" || apply === "branch" ? [] : checks;
  return [...after.map((line) => ({ line, cwd: undefined })), ...judged.map((line) => ({ line, cwd }))];
}

/** Whether the first that a stage does is to run a line in reality. */
function runsFirst(stage: PlannedStage): boolean {
  // What a stage of the folder writes is looked at once it is there; the lines of every other stage are known before it.
  return kindOf(stage) === "run" || (kindOf(stage) !== "folder" && linesAfter(stage).length > 0);
}

/** Whether the change lies in the folder, or in a branch. */
function isWritten(row: PromotionRow, { stages }: StageContext): boolean {
  return row.written || row.stages.some(({ state }, index) => state === "passed" && ["folder", "branch"].includes(kindOf(stages[index])));
}

function kindOf(stage: PlannedStage | undefined): string {
  const apply = stage?.apply ?? "none";
  return typeof apply === "string" ? apply : "push" in apply ? "branch" : "run";
}

function hindranceOf({ plan, input }: PromotionRow): string | undefined {
  if (plan === null) return undefined;
  if (plan.files === 0 && plan.conflicts.length === 0) return "There is nothing to promote.";
  const [first] = plan.conflicts;
  if (first !== undefined) {
    const more = plan.conflicts.length > 1 ? ` and ${plan.conflicts.length - 1} more` : "";
    return `${first.path}${more} can't be merged with what reality holds now; nothing was applied.`;
  }
  if (input?.hash !== undefined && input.hash !== plan.hash) return "The plan is not the one that was looked at; nothing was applied.";
  return undefined;
}

/** An approval is bound to the plan that the person saw; a new plan needs a new approval. */
export function approvalOf(stageName: string, { plan }: PromotionRow): string {
  return `stage:${stageName}:${plan?.hash ?? ""}`;
}

/** What a person has to answer before a stage. */
function questionOf(row: PromotionRow, stage: PlannedStage, index: number, context: StageContext): string | undefined {
  const touches = !["none", "verify"].includes(kindOf(stage));
  const risks = row.plan?.risks.length ?? 0;
  const accepted = row.input?.allowRisky === true || row.approved.includes(`risks:${row.plan?.hash ?? ""}`);
  if (touches && risks > 0 && !accepted && !isWritten(row, context))
    return `The change holds ${risks === 1 ? "something" : `${risks} things`} that a person should look at first.`;
  const isApproved = row.approved.includes(approvalOf(stage.name, row));
  if (touches && row.input?.ask === true && !isApproved && !isWritten(row, context)) return "A person decides whether it is written.";
  const asked = stage.approval === "ask" && !isApproved;
  return asked ? `Stage ${context.stages[index]?.name ?? ""} waits for an approval.` : undefined;
}

function withStage(row: PromotionRow, index: number, change: Partial<StageResult>): PromotionRow {
  return { ...row, stages: row.stages.map((result, at) => (at === index ? { ...result, ...change } : result)) };
}

/** A stage that ran a line in reality is not run again when reality moves. */
function isRepeated(stage: PlannedStage | undefined): boolean {
  return kindOf(stage) !== "run";
}

function reset(result: StageResult): StageResult {
  return { ...result, state: "pending", reason: null, checks: [], endedAt: null };
}

function variables(row: PromotionRow, stage: PlannedStage): Record<string, string> {
  return {
    VIV_PROMOTION: row.id,
    VIV_STAGE: stage.name,
    VIV_HASH: row.plan?.hash ?? "",
    VIV_BRANCH: row.branch?.name ?? "",
    VIV_COMMIT: row.branch?.commit ?? "",
  };
}
