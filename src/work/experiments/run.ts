/** One experiment under way: its attempts and the baseline at once, then the choice, then what stays. */
import { errorText } from "../../base/host/log.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Verdict } from "../../base/schema/experiment.ts";
import type { Promotion } from "../../base/schema/promotion.ts";
import type { ExperimentRow } from "../../base/store/rows.ts";
import { AttemptRun, type ExperimentSignals, type ExperimentParts } from "./attempt.ts";
import { Decision } from "./decision.ts";
import { checkSettings } from "./input.ts";
import { Journal } from "./journal.ts";
import { makeOrigin } from "./origin.ts";
import type { Queue } from "./queue.ts";
import { obstacle } from "./ranking.ts";
import { SharedFolderWatch } from "./shared-folder-watch.ts";

/** Work that ends an experiment comes before attempts of others. */
const FINISHING = 1_000;

/** Called with a winner that is to be promoted; answers with the promotion, also with one that waits for a person or has failed. */
export type PromoteWinner = (row: ExperimentRow) => Promise<Pick<Promotion, "id" | "state" | "reason">>;

export const FINAL: ReadonlySet<string> = new Set(["done", "failed", "cancelled"]);

/** Attempts that got a turn and are not running yet: the baseline has time until they are. */
class StartedAttempts {
  readonly #all = Promise.withResolvers<void>();
  #expected = 0;

  get all(): Promise<void> {
    return this.#all.promise;
  }

  resolve(): void {
    this.#all.resolve();
  }

  /** To be called when the attempt runs, or never will. */
  expect(): () => void {
    this.#expected += 1;
    let isAwaited = true;
    return () => {
      if (isAwaited) this.#expected -= 1;
      isAwaited = false;
      if (this.#expected === 0) this.resolve();
    };
  }
}

export class Run {
  readonly journal: Journal;
  readonly #all: ExperimentParts;
  readonly #queue: Queue;
  readonly #promoteWinner: PromoteWinner;
  /** A promotion that waits needs the sandbox that it comes from. */
  #isPromotionWaiting = false;
  #isPromotionFailed = false;
  readonly #cancel = new AbortController();
  readonly #kill = new AbortController();
  #closed = false;
  #ended: Promise<void> = Promise.resolve();

  constructor(all: ExperimentParts, queue: Queue, promoteWinner: PromoteWinner, row: ExperimentRow) {
    this.#all = all;
    this.#queue = queue;
    this.#promoteWinner = promoteWinner;
    this.journal = new Journal(all.parts.store, all.parts.log, row);
  }

  get #ends(): ExperimentSignals {
    return { cancel: this.#cancel.signal, kill: this.#kill.signal };
  }

  /** Goes on by itself; `after` is called at its end. */
  begin(after: () => void): void {
    this.#ended = this.#go(() => this.#runAll())
      .finally(after)
      .catch((error: unknown) => this.#all.parts.log.warn("an experiment broke off", { error: errorText(error) }));
  }

  /** The choice of a person, or of an automation. */
  async pick(reference: number | string, by: string): Promise<void> {
    const { winner, reason, state } = await this.#decision().pick(reference, by);
    await this.#settle(winner, reason, state);
  }

  async #go(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (this.#closed) return;
      if (this.#cancel.signal.aborted) this.#cancelled();
      else this.journal.change({ state: "failed", reason: errorText(error), endedAt: new Date().toISOString() }, "experiment.ended");
    }
    await this.journal.written();
    await this.#settleRuns();
  }

  async #runAll(): Promise<void> {
    const { journal } = this;
    if (journal.row.origin === null) await this.makeOrigin(true);
    const shared = await this.#openShared();
    try {
      await this.#attempts(shared);
    } finally {
      await shared.close();
    }
    if (this.#closed) return;
    if (this.#cancel.signal.aborted) return this.#cancelled();
    const { winner, reason, state } = await this.#decision().choose();
    await this.#settle(winner, reason, state);
  }

  async #openShared(): Promise<SharedFolderWatch> {
    const { parts, sandboxes } = this.#all;
    const { origin, id } = this.journal.row;
    if (origin === null) throw new VivError("internal", "The experiment has no frozen reality to start from.");
    return SharedFolderWatch.open(parts, await sandboxes.find(origin.sandbox), id);
  }

  async #attempts(shared: SharedFolderWatch): Promise<void> {
    const begun = new StartedAttempts();
    const waiting = this.journal.row.attempts.filter(({ state }) => !FINAL.has(state));
    const baseline = begun.all.then(() => this.#baseline());
    await Promise.all(waiting.map(({ index }) => this.#attempt(index, shared, begun)));
    begun.resolve();
    await baseline;
  }

  /** Freezes reality; `patiently` waits for room. */
  async makeOrigin(patiently: boolean): Promise<void> {
    const { journal } = this;
    const { env: _, ...input } = journal.row.input;
    const origin = await makeOrigin(this.#all, journal.row, patiently ? this.#cancel.signal : undefined, (reason) =>
      journal.change({ reason }),
    );
    journal.change({ origin, state: "running", reason: null, input });
    await journal.written();
    this.#all.parts.reach("experiment.origin");
  }

  async #turn<T>(order: string, priority: number, groupMost: number, work: () => Promise<T>, beyond = 0): Promise<T> {
    const { id, createdAt } = this.journal.row;
    const group = priority === FINISHING ? `${id}-end` : id;
    const leave = await this.#queue.take({ priority, order: `${createdAt} ${id} ${order}`, group, groupMost, beyond }, this.#cancel.signal);
    try {
      return await work();
    } finally {
      leave();
    }
  }

  async #attempt(index: number, shared: SharedFolderWatch, begun: StartedAttempts): Promise<void> {
    const { priority, maxParallel } = this.journal.row.input;
    try {
      await this.#turn(String(index).padStart(3, "0"), priority, maxParallel ?? this.#queue.most, () => {
        const start = { hasBegun: begun.expect(), allBegun: begun.all };
        return new AttemptRun(this.#all, this.journal, index, this.#ends, shared, start).run().finally(start.hasBegun);
      });
      if (!this.#closed) this.#letGo(index);
    } catch (error) {
      if (!(error instanceof VivError) || error.code !== "cancelled") throw error;
      if (!this.#closed)
        this.journal.changeAttempt(index, {
          state: "cancelled",
          reason: "It was cancelled before it began.",
          endedAt: new Date().toISOString(),
        });
    }
  }

  /** One that can't win and is not to be kept goes at once: it may be in the way of one that waits. */
  #letGo(index: number): void {
    const { input, attempts } = this.journal.row;
    const attempt = attempts.find((each) => each.index === index);
    if (input.keep === "all" || this.#cancel.signal.aborted || attempt?.sandbox == null || obstacle(attempt, input) === null) return;
    this.#all.clones.discard(attempt.sandbox);
    this.journal.changeAttempt(index, { sandbox: null, snapshot: null });
  }

  /** The same checks on the untouched clone: was it broken before? */
  async #baseline(): Promise<void> {
    const { verification, clones, parts } = this.#all;
    const { row } = this.journal;
    const how = checkSettings(row, "fresh");
    const { origin } = row;
    if (row.baseline !== null || origin === null || (how.checks.length === 0 && how.measure === null)) return;
    const signal = this.#cancel.signal;
    const make = (): ReturnType<typeof clones.fork> =>
      clones.fork(origin.sandbox, origin.snapshot, clones.labels(row.id, "baseline"), signal);
    const { priority, maxParallel } = row.input;
    try {
      // It does not wait for an attempt to end, unless a person has said how many run at once, or how fast it is counts.
      const beyond = maxParallel === undefined && parts.user.parallel === undefined && how.measure === null ? 1 : 0;
      const most = maxParallel ?? this.#queue.most + beyond;
      const judge = (): Promise<Verdict> => verification.passes(make, async () => undefined, how, signal);
      const baseline = await this.#turn("baseline", priority, most, judge, beyond);
      this.journal.change({ baseline });
      parts.reach("experiment.baseline");
    } catch (error) {
      if (!signal.aborted)
        parts.log.warn("the baseline of an experiment could not be judged", { experiment: row.id, error: errorText(error) });
    }
  }

  #decision(): Decision {
    return new Decision(this.#all, this.journal, this.#ends, (work) => this.#turn("end", FINISHING, this.#queue.most, work));
  }

  async #settle(winner: number | null, reason: string, state: "done" | "choosing"): Promise<void> {
    this.journal.change({ winner, reason });
    await this.journal.written();
    this.#all.parts.reach("experiment.chosen");
    if (winner !== null && this.journal.row.input.promote && this.journal.row.promotion === null) await this.#promote();
    if (state === "done") this.#keep();
    const endedAt = state === "done" ? new Date().toISOString() : null;
    this.journal.change({ state, endedAt }, "experiment.ended");
    await this.journal.written();
    this.#all.parts.reach("experiment.ended");
    await this.#settleRuns();
  }

  /** Runs end with their experiment: what waits for a person waits without them. */
  async #settleRuns(): Promise<void> {
    const { row } = this.journal;
    if (!this.#closed && (FINAL.has(row.state) || row.state === "choosing")) await this.#all.runs.settle(row, this.#isPromotionFailed);
  }

  async #promote(): Promise<void> {
    try {
      const { id, state, reason } = await this.#promoteWinner(await this.#withEnvironment());
      this.journal.change({ promotion: id });
      this.#isPromotionWaiting = state === "waiting";
      this.#isPromotionFailed = state !== "waiting" && state !== "applied";
      if (state === "waiting") this.#addReason(`Its promotion waits: ${reason ?? "a person has to approve it."}`);
      else if (state !== "applied") this.#addReason(`It could not be promoted: ${reason ?? `its promotion is ${state}.`}`);
    } catch (error) {
      this.#isPromotionFailed = true;
      this.#addReason(`It could not be promoted: ${errorText(error)}`);
    }
  }

  #addReason(sentence: string): void {
    this.journal.change({ reason: `${this.journal.row.reason ?? ""} ${sentence}` });
  }

  /** The caller's environment, as far as it may be kept, is with the origin. */
  async #withEnvironment(): Promise<ExperimentRow> {
    const { row } = this.journal;
    const origin = row.origin === null ? undefined : await this.#all.parts.store.sandboxes.get(row.origin.sandbox);
    return origin === undefined ? row : { ...row, input: { ...row.input, env: origin.env } };
  }

  /** Sandboxes that the caller asked to keep stay, and end like any idle sandbox; the others are removed. */
  #keep(): void {
    const { clones } = this.#all;
    const { attempts, winner, input, origin } = this.journal.row;
    for (const { index, sandbox } of attempts) {
      if (sandbox === null) continue;
      const stays = input.keep === "all" || (index === winner && (input.keep === "winner" || this.#isPromotionWaiting));
      if (stays) void clones.release(sandbox, LIMITS.defaultIdleMs);
      else {
        clones.discard(sandbox);
        this.journal.changeAttempt(index, { sandbox: null, snapshot: null });
      }
    }
    if (origin === null) return;
    if (input.keep === "all") return clones.rest(origin.sandbox);
    clones.discard(origin.sandbox);
    this.journal.change({ origin: null });
  }

  #cancelled(): void {
    const { attempts, origin } = this.journal.row;
    const ended = attempts.filter(({ state }) => state === "done" || state === "failed").length;
    for (const { sandbox } of attempts) if (sandbox !== null) void this.#all.clones.release(sandbox, LIMITS.defaultIdleMs);
    if (origin !== null) this.#all.clones.rest(origin.sandbox);
    const reason = `It was cancelled when ${ended} of ${attempts.length} attempts had ended.`;
    this.journal.change({ state: "cancelled", reason, endedAt: new Date().toISOString() }, "experiment.ended");
  }

  /** Ends what runs: politely, or at once. Resolves when it has ended. */
  async cancel(now: boolean): Promise<void> {
    if (now) this.#kill.abort();
    this.#cancel.abort();
    await this.#ended;
  }

  /** Lets go of everything as it is; the next server goes on from what is written. */
  async close(): Promise<void> {
    this.#closed = true;
    this.journal.close();
    // Agents go on, and must not hear that this server lets go of them.
    await this.#all.runs.close();
    this.#cancel.abort();
    this.#kill.abort();
    await this.#ended;
  }
}
