/** A promotion on its way: from stage to stage, as far as it was asked to go. Whoever calls holds the project's lock. */
import type { Judging, Verification } from "../checks/verification.ts";
import type { CheckResult } from "../../base/schema/check.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { PromotionPlan, StageResult } from "../../base/schema/promotion.ts";
import type { PromotionRow } from "../../base/store/rows.ts";
import { runOutside } from "./outside.ts";
import { keptSentence } from "./kept-edits.ts";
import type { Prepared } from "./plan.ts";
import type { Station } from "./stages.ts";
import type { LateEdit } from "./transaction.ts";
import { lateConflicts, type Writing } from "./writing.ts";

/** What came of carrying out a stage. */
interface Applied {
  readonly row: PromotionRow;
  readonly checks: CheckResult[];
  readonly failure?: string;
  readonly note?: string;
}

/** What a journey needs to know of the world. */
export interface Road {
  readonly stations: readonly Station[];
  /** Index of the last stage to go to. */
  readonly target: number;
  readonly setup: string | undefined;
  /** Where the setup runs; in the project's folder if undefined. */
  readonly setupIn: string | undefined;
  /** Hash of a plan that was verified before, by an experiment with the same checks. */
  readonly known: (prepared: Prepared) => boolean;
  readonly env: Readonly<Record<string, string>>;
  /** Why lines of the config may not run on this machine now; undefined if they may. */
  readonly distrust: () => Promise<string | undefined>;
  /** Plans anew, into the promotion's own folder. */
  readonly plan: () => Promise<Prepared>;
  /** The way back of what was written, as an undo of its own. */
  readonly takeBack: (row: PromotionRow, reason: string) => Promise<{ readonly undone: boolean; readonly said: string }>;
  readonly branch: (row: PromotionRow, prepared: Prepared, station: Station) => Promise<Applied>;
  readonly save: (
    row: PromotionRow,
    event: "promotion.planned" | "promotion.waiting" | "promotion.stage" | "promotion.applied" | "promotion.failed",
  ) => Promise<void>;
}

/** Reality moved between plan and write: there is another plan to be made. */
class Moved extends Error {
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

export class Journey {
  readonly #verification: Verification;
  readonly #writing: Writing;
  readonly #signal: AbortSignal;

  constructor(verification: Verification, writing: Writing, signal: AbortSignal) {
    this.#verification = verification;
    this.#writing = writing;
    this.#signal = signal;
  }

  async go(row: PromotionRow, road: Road): Promise<PromotionRow> {
    const kept = new Set<string>();
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#attempt(row, road);
      } catch (error) {
        if (!(error instanceof Moved)) throw error;
        for (const path of error.kept) kept.add(path);
        if (tries === LIMITS.promotionTries) return this.#end({ ...row, plan: error.plan, kept: [...kept] }, road, error.reason([...kept]));
        row = {
          ...row,
          plan: null,
          verified: null,
          stages: row.stages.map((result, index) => (isRepeated(road.stations[index]) ? reset(result) : result)),
        };
      }
    }
  }

  async #attempt(start: PromotionRow, road: Road): Promise<PromotionRow> {
    let row = start;
    let prepared: Prepared | undefined;
    if (!isWritten(row, road)) {
      prepared = await road.plan();
      row = { ...row, plan: prepared.plan };
      const hindrance = hindranceOf(row);
      if (hindrance !== undefined) return this.#end(row, road, hindrance);
      await road.save(row, "promotion.planned");
    }
    for (const [index, station] of road.stations.slice(0, road.target + 1).entries()) {
      if (row.stages[index]?.state === "passed") continue;
      const question = questionOf(row, station, index, road) ?? (runsFirst(station) ? await road.distrust() : undefined);
      if (question !== undefined) return this.#wait(row, index, road, question);
      const [next, goesOn] = await this.#station(row, index, station, prepared, road);
      row = next;
      if (!goesOn) return row;
    }
    row = { ...row, state: "applied", reason: null, endedAt: new Date().toISOString() };
    await road.save(row, "promotion.applied");
    return row;
  }

  async #wait(row: PromotionRow, index: number, road: Road, question: string): Promise<PromotionRow> {
    const state = isWritten(row, road) ? "applied" : "waiting";
    const waiting: PromotionRow = { ...stage(row, index, { state: "waiting", reason: question }), state, reason: question };
    await road.save(waiting, "promotion.waiting");
    return waiting;
  }

  /** The row after a stage, and whether the next one may follow. */
  async #station(
    row: PromotionRow,
    index: number,
    station: Station,
    prepared: Prepared | undefined,
    road: Road,
  ): Promise<[PromotionRow, boolean]> {
    let now = stage(row, index, { state: "running", reason: null, checks: [] });
    await road.save(now, "promotion.stage");
    const before = await this.#apply(now, station, prepared, road);
    now = { ...before.row, stages: before.row.stages };
    // What was just written may be what the lines run.
    const distrust = before.failure === undefined && linesAfter(station).length > 0 ? await road.distrust() : undefined;
    if (distrust !== undefined && now.written) return [await this.#wait(now, index, road, distrust), false];
    const checks = [...before.checks, ...(before.failure === undefined ? await this.#afterwards(now, station, road) : [])];
    const failed = checks.find((check) => !check.passed);
    const failure = before.failure ?? (failed === undefined ? undefined : `\`${failed.command}\` ended with ${failed.exitCode}.`);
    const endedAt = new Date().toISOString();
    if (failure === undefined) {
      now = stage(now, index, { state: "passed", reason: before.note ?? null, checks, endedAt });
      await road.save(now, "promotion.stage");
      return [now, true];
    }
    now = stage(now, index, { state: "failed", reason: failure, checks, endedAt });
    return [await this.#backFrom(now, index, station, road, failure), false];
  }

  async #apply(row: PromotionRow, station: Station, prepared: Prepared | undefined, road: Road): Promise<Applied> {
    const { apply } = station;
    if (apply === null || apply === "none") return { row, checks: [] };
    if (typeof apply === "object" && "run" in apply) {
      const check = await runOutside(row.project, apply.run, road.env, { variables: variables(row, station) });
      return { row, checks: [check] };
    }
    if (apply === "folder" && row.written) return { row: { ...row, state: "applying" }, checks: [] };
    if (prepared === undefined && apply !== "verify") throw new VivError("internal", "There is no plan to carry out.");
    if (prepared === undefined) return { row, checks: [] };
    if (apply === "verify") return this.#verify(row, station, prepared, road);
    if (apply === "folder") {
      const { late, kept } = await this.#writing.write(row, { ...prepared, changes: prepared.changes });
      if (late.length > 0) throw new Moved(row.plan, late, kept);
      return { row: { ...row, state: "applying", writing: false, written: true }, checks: [] };
    }
    return road.branch(row, prepared, station);
  }

  async #verify(row: PromotionRow, station: Station, prepared: Prepared, road: Road): Promise<Applied> {
    const verified = { ...row, verified: prepared.plan.hash };
    if (station.checks.length === 0) return { row: verified, checks: [], note: "There are no checks." };
    if (road.known(prepared)) return { row: verified, checks: [], note: "The experiment verified exactly this." };
    const how = judgingAt(station, road);
    const place = { project: row.project, env: { ...road.env } };
    const verdict = await this.#verification.verifyOn(place, prepared.changes, prepared.contents, how, this.#signal);
    const failure = verdict.passed ? undefined : "The checks do not pass on today's reality with this change.";
    const checks = [...(verdict.setup === null ? [] : [verdict.setup]), ...verdict.checks];
    return { row: verified, checks, ...(failure === undefined ? {} : { failure }) };
  }

  /** What runs in reality once a stage is applied: its `after` lines, then its checks, until one fails. */
  async #afterwards(row: PromotionRow, station: Station, road: Road): Promise<CheckResult[]> {
    const results: CheckResult[] = [];
    for (const { line, cwd } of linesAfter(station)) {
      const result = await runOutside(row.project, line, road.env, { variables: variables(row, station), cwd });
      results.push(result);
      if (!result.passed) break;
    }
    return results;
  }

  /** Undoes a stage that failed; earlier ones stand, but for a folder that this stage was the test of. */
  async #backFrom(row: PromotionRow, index: number, station: Station, road: Road, failure: string): Promise<PromotionRow> {
    const said = [`Stage ${station.name} failed: ${failure}`];
    let now = row;
    const distrust = station.rollback === undefined ? undefined : await road.distrust();
    if (distrust !== undefined) said.push(`Its rollback did not run: ${distrust}`);
    else if (station.rollback !== undefined && station.apply !== "verify") {
      const check = await runOutside(row.project, station.rollback, road.env, { variables: variables(row, station) });
      now = stage(now, index, { state: check.passed ? "rolled-back" : "failed", checks: [...(now.stages[index]?.checks ?? []), check] });
      said.push(check.passed ? "It was rolled back." : `Its rollback ended with ${check.exitCode}.`);
    }
    const written = writtenIndex(now, road, index);
    let stands = now.written || isWritten(now, road);
    if (written >= 0) {
      const back = await road.takeBack(now, failure);
      if (back.undone) now = { ...stage(stage(now, written, { state: "rolled-back" }), index, { state: "rolled-back" }), written: false };
      stands = !back.undone;
      said.push(back.said);
    }
    return this.#end(now, road, said.join(" "), stands);
  }

  async #end(row: PromotionRow, road: Road, reason: string, stands = false): Promise<PromotionRow> {
    const ended: PromotionRow = { ...row, writing: false, state: stands ? "applied" : "failed", reason, endedAt: new Date().toISOString() };
    await road.save(ended, "promotion.failed");
    return ended;
  }
}

/** How the checks of a stage judge a clone. */
export function judgingAt({ checks, cwd }: Pick<Station, "checks" | "cwd">, { setup, setupIn }: Pick<Road, "setup" | "setupIn">): Judging {
  return {
    checks,
    setup: setup ?? null,
    repeat: 1,
    checkTimeoutMs: LIMITS.attemptTimeoutMs,
    measure: null,
    folders: { checks: cwd, setup: setupIn },
  };
}

/** The stage whose writing into the folder fails with the stage at `index`: itself, or the one that it only tests. */
function writtenIndex(row: PromotionRow, road: Road, index: number): number {
  if (road.stations[index]?.apply === "folder") return row.state === "applying" ? index : -1;
  if (road.stations[index]?.apply !== "none") return -1;
  const before = road.stations.slice(0, index).findLastIndex(({ apply }) => apply !== "none");
  return road.stations[before]?.apply === "folder" && row.stages[before]?.state === "passed" ? before : -1;
}

/** What runs in reality once a stage is applied, and where. */
function linesAfter({ apply, after, checks, cwd }: Station): { readonly line: string; readonly cwd: string | undefined }[] {
  const judged = apply === "verify" || apply === "branch" ? [] : checks;
  return [...after.map((line) => ({ line, cwd: undefined })), ...judged.map((line) => ({ line, cwd }))];
}

/** Whether the first that a stage does is to run a line in reality. */
function runsFirst(station: Station): boolean {
  // What a stage of the folder writes is looked at once it is there; the lines of every other stage are known before it.
  return kindOf(station) === "run" || (kindOf(station) !== "folder" && linesAfter(station).length > 0);
}

/** Whether the change lies in the folder, or in a branch. */
function isWritten(row: PromotionRow, { stations }: Road): boolean {
  return row.written || row.stages.some(({ state }, index) => state === "passed" && ["folder", "branch"].includes(kindOf(stations[index])));
}

function kindOf(station: Station | undefined): string {
  const apply = station?.apply ?? "none";
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

/** What was looked at is approved, and nothing that a new plan makes of it. */
export function approvalOf(stageName: string, { plan }: PromotionRow): string {
  return `stage:${stageName}:${plan?.hash ?? ""}`;
}

/** What a person has to answer before a stage. */
function questionOf(row: PromotionRow, station: Station, index: number, road: Road): string | undefined {
  const touches = !["none", "verify"].includes(kindOf(station));
  const risks = row.plan?.risks.length ?? 0;
  const accepted = row.input?.allowRisky === true || row.approved.includes(`risks:${row.plan?.hash ?? ""}`);
  if (touches && risks > 0 && !accepted && !isWritten(row, road))
    return `The change holds ${risks === 1 ? "something" : `${risks} things`} that a person should look at first.`;
  const asked = station.approval === "ask" && !row.approved.includes(approvalOf(station.name, row));
  return asked ? `Stage ${road.stations[index]?.name ?? ""} waits for an approval.` : undefined;
}

function stage(row: PromotionRow, index: number, change: Partial<StageResult>): PromotionRow {
  return { ...row, stages: row.stages.map((result, at) => (at === index ? { ...result, ...change } : result)) };
}

/** What was run in reality is not run again because files moved. */
function isRepeated(station: Station | undefined): boolean {
  return kindOf(station) !== "run";
}

function reset(result: StageResult): StageResult {
  return { ...result, state: "pending", reason: null, checks: [], endedAt: null };
}

function variables(row: PromotionRow, station: Station): Record<string, string> {
  return {
    VIV_PROMOTION: row.id,
    VIV_STAGE: station.name,
    VIV_HASH: row.plan?.hash ?? "",
    VIV_BRANCH: row.branch?.name ?? "",
    VIV_COMMIT: row.branch?.commit ?? "",
  };
}
