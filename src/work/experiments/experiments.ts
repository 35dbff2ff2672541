/** The face of this folder: experiments that run, that wait, that ended, and those an earlier server left. */
import { availableParallelism, totalmem } from "node:os";
import { errorText } from "../../base/host/log.ts";
import { Experiment, type ExperimentInput } from "../../base/schema/experiment.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { Promotion } from "../../base/schema/promotion.ts";
import type { ExperimentRow, RunRow } from "../../base/store/rows.ts";
import { newRun } from "../agents/new-run.ts";
import type { ExperimentParts } from "./attempt.ts";
import { newAttempt, newExperiment } from "./input.ts";
import { openOrigin } from "./origin.ts";
import { parallelByMachine, Queue } from "./queue.ts";
import { Resumption } from "./resumption.ts";
import { requireRunnable } from "./runnable-checks.ts";
import { FINAL, Run, type PromoteWinner } from "./run.ts";

const LISTED = 100;

/** Where a promotion stands that brought nothing into the project: its experiment may still choose another winner. */
const NOT_IN_PROJECT: ReadonlySet<Promotion["state"]> = new Set(["waiting", "failed", "discarded"]);

/** What promotions do for experiments. */
export interface Winners {
  /** Brings a winner into reality. */
  readonly promote: PromoteWinner;
  /** Takes back the promotion of a winner, which waits for a person. */
  readonly discard: (promotion: string) => Promise<unknown>;
}

export class Experiments {
  readonly #all: ExperimentParts;
  readonly #queue: Queue;
  readonly #runs = new Map<string, Run>();
  readonly #winners: Winners;

  constructor(all: ExperimentParts, winners: Winners) {
    this.#all = all;
    this.#winners = winners;
    this.#queue = new Queue(all.parts.user.parallel ?? parallelByMachine(availableParallelism(), totalmem()));
  }

  /**
   * Reality is frozen when this returns, unless there is no room: then it waits for some. A caller that must not start it twice
   * chooses the id, and looks for it before.
   */
  async start(input: ExperimentInput, id?: string): Promise<Experiment> {
    const { store, reach } = this.#all.parts;
    const chosen = input.attempts.flatMap(({ agent }) => (agent === undefined ? [] : [agent]));
    // A model API that is far away answers while the project is looked at.
    const [{ view, inside }] = await Promise.all([openOrigin(this.#all, input), this.#all.runs.requireModels(chosen)]);
    const takesOver = input.from === undefined ? undefined : await this.#all.runs.before(input.from);
    const { row, runs } = this.#withRuns({ ...newExperiment(input, view, inside), takesOver, ...(id === undefined ? {} : { id }) }, input);
    // A program that the set-up installs is not there yet.
    if (runs.length > 0 && row.setup === null) requireRunnable(row.checks, input.env?.["PATH"]);
    await store.change(async (change) => {
      await change.experiments.put(row);
      for (const run of runs) await this.#all.runs.put(change, run);
      await change.event("experiment.started", null, { experiment: row.id, project: row.project, attempts: row.attempts.length });
    });
    reach("experiment.row");
    const run = this.#take(row);
    try {
      await run.makeOrigin(false);
    } catch (error) {
      if (!(error instanceof VivError) || error.code !== "no_capacity") {
        await this.#forget(run, row.id);
        throw error;
      }
    }
    this.#begin(run);
    return shown(run.journal.row);
  }

  /** Each attempt that an agent does gets its run; refuses agents that could not begin. */
  #withRuns(row: ExperimentRow, { attempts: asked, env, timeoutMs, level }: ExperimentInput): { row: ExperimentRow; runs: RunRow[] } {
    const runs: RunRow[] = [];
    const attempts = row.attempts.map((attempt) => {
      const choice = asked[attempt.index - 1]?.agent;
      if (choice === undefined) return attempt;
      const around = { project: row.project, env, level };
      const { program } = this.#all.runs.check(choice, around);
      const companions = this.#all.runs.companions(choice, around);
      const { id: experiment, project, takesOver } = row;
      const run = newRun(choice, { project, experiment, attempt: attempt.index, program, with: companions, takesOver }, timeoutMs);
      runs.push(run);
      return { ...attempt, run: run.id };
    });
    return { row: { ...row, attempts }, runs };
  }

  #take(row: ExperimentRow): Run {
    const run = new Run(this.#all, this.#queue, (winner) => this.#winners.promote(winner), row);
    this.#runs.set(row.id, run);
    return run;
  }

  #begin(run: Run): void {
    run.begin(() => this.#runs.delete(run.journal.row.id));
  }

  /** Nothing stays of an experiment that could not begin, but the error that its caller gets. */
  async #forget(run: Run, id: string): Promise<void> {
    await run.journal.written().catch(() => undefined);
    this.#runs.delete(id);
    await this.#all.parts.store.change(async (change) => {
      await this.#all.runs.remove(change, id);
      await change.experiments.remove(id);
    });
    for (const { id: sandbox } of await this.#all.clones.of(id)) this.#all.clones.discard(sandbox);
  }

  async list(project: string | undefined, all: boolean): Promise<Experiment[]> {
    const rows = await this.#all.parts.store.experiments.list({ project }, { limit: all ? undefined : LISTED });
    return rows.map((row) => shown(this.#runs.get(row.id)?.journal.row ?? row));
  }

  /** As it is now, with what is the server's own. */
  async row(id: string): Promise<ExperimentRow> {
    const row = this.#runs.get(id)?.journal.row ?? (await this.#all.parts.store.experiments.get(id));
    if (row !== undefined) return row;
    throw new VivError("not_found", `There is no experiment ${id}.`, { remedy: "Look at `viv experiments`." });
  }

  async inspect(id: string): Promise<Experiment> {
    return shown(await this.row(id));
  }

  async cancel(id: string, now: boolean): Promise<Experiment> {
    const run = this.#runs.get(id);
    if (run !== undefined) {
      await run.cancel(now);
      return shown(run.journal.row);
    }
    const row = await this.row(id);
    if (row.state !== "choosing") return shown(row);
    const cancelled = {
      ...row,
      state: "cancelled" as const,
      reason: "It was cancelled before a winner was chosen.",
      endedAt: new Date().toISOString(),
    };
    await this.#all.parts.store.change(async (change) => {
      await change.experiments.put(cancelled);
      await change.event("experiment.ended", null, { experiment: id, state: "cancelled", winner: null, reason: cancelled.reason });
    });
    return shown(cancelled);
  }

  async retry(id: string, all: boolean): Promise<Experiment> {
    const row = await this.#resting(id);
    const { clones, parts } = this.#all;
    if (row.origin === null || (await parts.store.snapshots.get(row.origin.snapshot)) === undefined)
      throw new VivError("not_found", "The frozen reality that its attempts start from is gone.", {
        remedy: "Start it anew with `viv try`; it then begins from the project as it is now.",
      });
    const again = row.attempts.filter(({ state }) => all || state !== "done");
    if (again.length === 0) throw new VivError("illegal_transition", "Every attempt ended well.", { remedy: "Run all of them again." });
    for (const { sandbox } of again) if (sandbox !== null) clones.discard(sandbox);
    const fresh = row.attempts.map((attempt) =>
      again.includes(attempt) ? newAttempt(attempt.index, attempt.name, attempt.command) : { ...attempt, verified: null, needs: [] },
    );
    const { row: ready, runs } = this.#withRuns({ ...row, attempts: fresh }, { ...row.input, attempts: row.input.attempts });
    await parts.store.change(async (change) => {
      for (const each of runs) await this.#all.runs.put(change, each);
    });
    const { attempts } = ready;
    const run = this.#take(row);
    run.journal.change({ attempts, state: "running", winner: null, reason: null, endedAt: null }, "experiment.started");
    await run.journal.written();
    this.#begin(run);
    return shown(run.journal.row);
  }

  /** An experiment that no part of the server works on. */
  async #resting(id: string): Promise<ExperimentRow> {
    const row = await this.row(id);
    if (this.#runs.has(id) || row.state === "queued" || row.state === "running")
      throw new VivError("busy", `Experiment ${id} is under way.`);
    if (row.promotion === null) return row;
    const promotion = await this.#all.parts.store.promotions.get(row.promotion);
    if (promotion !== undefined && !NOT_IN_PROJECT.has(promotion.state))
      throw new VivError("illegal_transition", `Experiment ${id} led to the promotion ${row.promotion} already.`);
    // Its question is about a winner that is not the winner any more.
    if (promotion?.state === "waiting") await this.#winners.discard(promotion.id);
    return { ...row, promotion: null };
  }

  /** `by` names in the reason who chose. */
  async pick(id: string, attempt: number | string, by = "a person"): Promise<Experiment> {
    const run = this.#take(await this.#resting(id));
    try {
      await run.pick(attempt, by);
      return shown(run.journal.row);
    } finally {
      await run.journal
        .written()
        .catch((error: unknown) => this.#all.parts.log.warn("a choice was not written", { error: errorText(error) }));
      this.#runs.delete(id);
    }
  }

  async remove(id: string): Promise<void> {
    await this.row(id);
    await this.#runs.get(id)?.cancel(true);
    for (const { id: sandbox } of await this.#all.clones.of(id)) await this.#all.clones.remove(sandbox);
    await this.#all.parts.store.change(async (change) => {
      await this.#all.runs.remove(change, id);
      await change.experiments.remove(id);
      await change.event("experiment.removed", null, { experiment: id });
    });
  }

  /** After a start of the server: what was under way goes on. */
  async resume(): Promise<void> {
    const resumption = new Resumption(this.#all);
    for (const row of await resumption.prepare()) this.#begin(this.#take(row));
    for (const { experiment } of await this.#all.parts.store.runs.list({ open: true })) {
      const ended = experiment === null ? undefined : await this.#all.parts.store.experiments.get(experiment);
      if (ended !== undefined && FINAL.has(ended.state))
        await this.#all.runs.settle(ended, ended.input.promote && ended.promotion === null);
    }
  }

  /** What is under way is left as it is, for the next server. */
  async close(): Promise<void> {
    await Promise.all([...this.#runs.values()].map((run) => run.close()));
    await this.#all.clones.close();
  }
}

/** What the API shows of a row: the schema drops what is the server's own. */
function shown(row: ExperimentRow): Experiment {
  return Experiment.parse(row);
}
