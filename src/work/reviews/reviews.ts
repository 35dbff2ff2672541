/**
 * The face of this folder: reviews. The agent of a run asks a reviewer, which is another agent in a sandbox of its own that shows the
 * change and can't write; its last words are the answer. A review is a run with a row: it goes on when the server or the one that
 * asked is away, and the same question about the same change gets the same answer, so that asking again loses and repeats nothing.
 */
import { errorText } from "../../base/host/log.ts";
import { VivError } from "../../base/schema/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { VivEvent } from "../../base/schema/event.ts";
import type { RunOutcome } from "../../base/schema/run.ts";
import type { RunRow } from "../../base/store/rows.ts";
import type { Audit } from "../../rules/audit/audit.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import { newRun } from "../agents/new-run.ts";
import type { Runs } from "../agents/runs.ts";
import { openQuestion, type PlaceParts, type Question } from "./review-place.ts";
import type { ReviewRequest } from "./review-text.ts";

export interface ReviewsParts extends PlaceParts {
  readonly parts: PlaceParts["parts"] & Pick<Parts, "store" | "log" | "locks">;
  readonly runs: Runs;
  readonly audit: Audit;
}

export interface ReviewAnswer {
  /** The reviewer's run. */
  readonly run: string;
  readonly text: string;
}

interface OpenReview {
  readonly asker: string;
  readonly ended: Promise<void>;
  readonly cancel: AbortController;
  /** Callers that wait for its answer. */
  waiting: number;
}

type Companions = NonNullable<RunRow["with"]>;
type ReviewRow = RunRow & { readonly review: NonNullable<RunRow["review"]>; readonly askedBy: string };

/** The work of a run is over, whatever came of it. */
const ENDS: ReadonlySet<string> = new Set(["run.completing", "run.completed", "run.failed"]);
const ANSWER_CHARACTERS = 4_096;

export class Reviews {
  readonly #all: ReviewsParts;
  readonly #open = new Map<string, OpenReview>();
  readonly #stopListening: () => void;

  constructor(all: ReviewsParts) {
    this.#all = all;
    this.#stopListening = all.parts.store.onEvents((events) => this.#heard(events));
  }

  /** Agents that the run in a sandbox may ask, by their roles. */
  offered(sandbox: string): readonly string[] {
    return this.#companions(sandbox).map(({ role }) => role);
  }

  #companions(sandbox: string): Companions {
    return this.#all.runs.in(sandbox)?.journal.row.with ?? [];
  }

  /** Waits for the answer until the signal; the review goes on without its caller. */
  async ask(sandbox: string, role: string, asked: ReviewRequest, signal: AbortSignal): Promise<ReviewAnswer> {
    const companion = this.#companions(sandbox).find((each) => each.role === role);
    const asker = this.#all.runs.in(sandbox)?.journal.row;
    if (companion === undefined || asker === undefined) throw new VivError("not_found", `There is no sibling ${role}.`);
    const run = await this.#all.parts.locks.run(`review:${asker.id}`, () => this.#take(asker, companion, asked));
    await this.#wait(run, signal);
    const { outcome, reason } = await this.#all.runs.row(run);
    if (outcome !== "done")
      throw new VivError("not_running", `The ${role} came to no answer. ${reason ?? ""}`.trim(), {
        remedy: "Ask again, or go on without.",
      });
    return { run, ...(await this.#all.runs.lastWords(run)) };
  }

  async #wait(run: string, signal: AbortSignal): Promise<void> {
    const open = this.#open.get(run);
    if (open === undefined) return;
    open.waiting += 1;
    const { promise: gone, resolve } = Promise.withResolvers<void>();
    const leave = (): void => resolve();
    signal.addEventListener("abort", leave, { once: true });
    try {
      await Promise.race([open.ended, gone]);
      signal.throwIfAborted();
    } finally {
      open.waiting -= 1;
      signal.removeEventListener("abort", leave);
    }
  }

  /** The review of this question: one that there is, or a new one. */
  async #take(asker: RunRow, companion: Companions[number], asked: ReviewRequest): Promise<string> {
    const experiment = await this.#all.parts.store.experiments.get(asker.experiment ?? "");
    if (experiment === undefined) throw new VivError("not_found", `The experiment of run ${asker.id} is gone.`);
    const question = await openQuestion(this.#all, asker, experiment, companion.role, asked);
    try {
      const earlier = await this.#of(asker);
      const same = earlier.find(({ review, outcome }) => review.key === question.key && (outcome === null || outcome === "done"));
      if (same !== undefined) return same.id;
      if (earlier.length >= LIMITS.reviewsOfRun)
        throw new VivError("no_capacity", `This run has had ${LIMITS.reviewsOfRun} reviews, which is the most.`, {
          remedy: "Go on without another one.",
        });
      for (const { id } of earlier) await this.#giveWay(id);
      return await this.#begin(asker, companion, question);
    } finally {
      question.close();
    }
  }

  async #of({ id, experiment }: RunRow): Promise<ReviewRow[]> {
    const rows = await this.#all.parts.store.runs.list({ experiment: experiment ?? "" });
    return rows.filter(isReview).filter(({ askedBy }) => askedBy === id);
  }

  /** A review of an earlier state, which no caller waits for any more, ends for the next one. */
  async #giveWay(id: string): Promise<void> {
    const open = this.#open.get(id);
    if (open === undefined) return;
    if (open.waiting > 0)
      throw new VivError("busy", "The reviewer works on another request of this run.", { remedy: "Ask again when that is answered." });
    open.cancel.abort();
    await open.ended;
  }

  async #begin(asker: RunRow, { role, agent, model, program }: Companions[number], question: Question): Promise<string> {
    const { store, reach } = this.#all.parts;
    const { project, experiment, budget, guardian = "full", timeoutMs } = asker;
    const place = { project, experiment, attempt: null, program };
    const choice = {
      agent: agent ?? asker.agent,
      task: question.text,
      guardian,
      ...(model === undefined ? {} : { model }),
      ...(budget === null ? {} : { budget }),
    };
    const run = newRun(choice, place, Math.min(timeoutMs, LIMITS.reviewTimeoutMs));
    const sandbox = await question.place(`${role}-${newId("run").slice(-6).toLowerCase()}`, program);
    const row: ReviewRow = { ...run, askedBy: asker.id, review: { key: question.key, sandbox: sandbox.id } };
    await store.change((change) => this.#all.runs.put(change, row));
    reach("review.row");
    this.#start(row);
    return row.id;
  }

  #start(row: ReviewRow): void {
    const cancel = new AbortController();
    const ended = this.#work(row, cancel.signal)
      .catch((error: unknown) => this.#all.parts.log.warn("a review broke off", { run: row.id, error: errorText(error) }))
      .finally(() => this.#open.delete(row.id));
    this.#open.set(row.id, { asker: row.askedBy, ended, cancel, waiting: 0 });
  }

  async #work(row: ReviewRow, cancel: AbortSignal): Promise<void> {
    const { runs, sandboxes, clones } = this.#all;
    try {
      const end = await runs.work(row.id, await sandboxes.find(row.review.sandbox), null, { cancel, kill: new AbortController().signal });
      await this.#settle(row, end.outcome, end.reason);
    } catch (error) {
      // The agent goes on without this server.
      if (runs.isClosed) return;
      await this.#settle(row, "failed", errorText(error));
    }
    clones.discard(row.review.sandbox);
  }

  /** The end of the review and the record of its answer are one. */
  async #settle({ id, review, askedBy }: ReviewRow, outcome: RunOutcome, reason: string | null): Promise<void> {
    const { runs, audit, parts } = this.#all;
    const state = outcome === "done" ? "completed" : "failed";
    const [row, { text }, asker] = await Promise.all([runs.row(id), runs.lastWords(id), parts.store.runs.get(askedBy)]);
    const [own, other] = await Promise.all([review.sandbox, asker?.sandbox ?? ""].map((each) => parts.store.sandboxes.get(each)));
    await audit.recordWith(async (writing) => {
      await writing.runs.put({ ...row, state, outcome, reason, activity: "ended", endedAt: new Date().toISOString() });
      await writing.event(`run.${state}`, row.sandbox, { run: id, state, outcome, reason, agent: row.agent });
      const entry = {
        actor: { kind: "agent", name: own?.name ?? review.sandbox },
        action: "coordinate_sibling.answer",
        target: other?.name ?? askedBy,
        arguments: { run: id, outcome, answer: text.slice(0, ANSWER_CHARACTERS) },
        label: "AUTONOMOUS",
        rule: null,
        reason,
        sandbox: review.sandbox,
        snapshot: null,
      } as const;
      return { entry, result: undefined };
    });
    parts.reach("review.settled");
    runs.wake(id);
  }

  /** No agent waits for a review of a run that has ended. */
  #heard(events: readonly VivEvent[]): void {
    const over = new Set(events.filter(({ type }) => ENDS.has(type)).map(({ data }) => data["run"]));
    if (over.size > 0) for (const { asker, cancel } of this.#open.values()) if (over.has(asker)) cancel.abort();
  }

  /** After a start of the server: reviews go on whose runs do. */
  async resume(): Promise<void> {
    const { parts, clones } = this.#all;
    for (const row of (await parts.store.runs.list({ open: true })).filter(isReview)) {
      const asker = await parts.store.runs.get(row.askedBy);
      if (asker !== undefined && asker.outcome === null) this.#start(row);
      else {
        await this.#settle(row, "cancelled", "The run that asked for it has ended.");
        clones.discard(row.review.sandbox);
      }
    }
  }

  /** Reviews go on without this server. To be called once runs are closed. */
  async close(): Promise<void> {
    this.#stopListening();
    await this.#all.runs.close();
    await Promise.all([...this.#open.values()].map(({ ended }) => ended));
  }
}

function isReview(row: RunRow): row is ReviewRow {
  return row.review !== undefined && row.askedBy != null;
}
