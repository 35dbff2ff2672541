/** Which attempt wins. Before one is called winner, its promotable change alone passes on a fresh clone. */
import type { Attempt, Verdict } from "../../base/schema/experiment.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { ExperimentRow } from "../../base/store/rows.ts";
import type { ExperimentSignals, ExperimentParts } from "./attempt.ts";
import { openChange } from "./change.ts";
import { checkSettings } from "./input.ts";
import type { Journal } from "./journal.ts";
import { splitChange } from "../checks/manifest.ts";
import { failureOf, obstacle, rank, testsRun, title, whyItWon, type RankingOptions } from "./ranking.ts";
import { needsOf } from "./side-changes.ts";

export interface Choice {
  readonly state: "done" | "choosing";
  readonly winner: number | null;
  readonly reason: string;
}

/** Takes a turn for work that ends an experiment. */
export type RunInTurn = <T>(work: () => Promise<T>) => Promise<T>;

const MOST_NAMED = 3;

export class Decision {
  readonly #all: ExperimentParts;
  readonly #journal: Journal;
  readonly #ends: ExperimentSignals;
  readonly #turn: RunInTurn;

  constructor(all: ExperimentParts, journal: Journal, ends: ExperimentSignals, turn: RunInTurn) {
    this.#all = all;
    this.#journal = journal;
    this.#ends = ends;
    this.#turn = turn;
  }

  /** Puts the attempts in order and chooses, or says why not. */
  async choose(): Promise<Choice> {
    const row = this.#journal.row;
    const options = rankingOptions(row);
    for (const attempt of row.attempts)
      this.#journal.changeAttempt(attempt.index, { fewerTests: fewerTests(attempt, row.baseline), needs: needsWithoutChange(attempt) });
    const order = rank(this.#journal.row.attempts, options);
    for (const [place, { index }] of order.entries()) this.#journal.changeAttempt(index, { rank: place + 1 });
    const able = order.filter((attempt) => obstacle(attempt, options) === null).map(({ index }) => this.#journal.attempt(index));
    if (row.pick === "none") return { state: "done", winner: null, reason: `${able.length} of ${order.length} attempts can be picked.` };
    return row.pick === "ask" ? this.#ask(able) : this.#pick(able, options);
  }

  /** A person chooses among those that pass alone, too. */
  async #ask(able: readonly Attempt[]): Promise<Choice> {
    await Promise.all(able.map(({ index }) => this.verify(index)));
    const passing = able.map(({ index }) => this.#journal.attempt(index)).filter(({ verified }) => verified?.passed === true);
    if (passing.length === 0) return this.#noWinner("No attempt can win");
    const already = this.#alreadyPasses() ? " The checks pass on the untouched project, too." : "";
    return { state: "choosing", winner: null, reason: `A person chooses: ${passing.map(title).join(", ")} can win.${already}` };
  }

  async #pick(able: readonly Attempt[], options: RankingOptions): Promise<Choice> {
    const { baseline, input } = this.#journal.row;
    const isMeasured = input.measure !== undefined;
    if (this.#alreadyPasses() && !isMeasured)
      return {
        state: "done",
        winner: null,
        reason: "The checks pass on the untouched project already, so they can't tell which attempt is best: measure, or pick one.",
      };
    const limit = baseline?.passed === true ? baseline.measure : null;
    const candidates = limit === null ? able : able.filter(({ checked }) => isBetter(checked, limit, options.goal));
    if (candidates.length === 0 && able.length > 0)
      return { state: "done", winner: null, reason: `No attempt measures better than the untouched project (${limit}).` };
    for (const { index } of candidates) {
      const verified = await this.verify(index);
      if (!verified.passed || (limit !== null && !isBetter(verified, limit, options.goal))) continue;
      const rivals = candidates.filter((other) => other.index !== index && this.#journal.attempt(other.index).verified?.passed !== false);
      const winner = this.#journal.attempt(index);
      return { state: "done", winner: index, reason: whyItWon(winner, rivals, this.#journal.row.attempts.length, options) };
    }
    return this.#noWinner("No attempt won");
  }

  /** Whether the checks say nothing about the attempts. */
  #alreadyPasses(): boolean {
    const { baseline, checks } = this.#journal.row;
    return checks.length > 0 && baseline?.passed === true;
  }

  #noWinner(head: string): Choice {
    const { attempts } = this.#journal.row;
    const named = attempts.slice(0, MOST_NAMED).map((attempt) => `${title(attempt)}: ${this.#why(attempt)}`);
    const more = attempts.length > MOST_NAMED ? `; and ${attempts.length - MOST_NAMED} more` : "";
    return { state: "done", winner: null, reason: `${head}. ${named.join("; ")}${more}.` };
  }

  #why(attempt: Attempt): string {
    const { verified, needs } = attempt;
    if (verified === null || verified.passed) return (obstacle(attempt, this.#journal.row.input) ?? "it was not tried").replace(/\.$/, "");
    const lack = needs.length === 0 ? "" : `; it needs ${needs.join(", ")}`;
    return `its change alone does not pass, ${failureOf(verified)}${lack}`;
  }

  /** Chosen from outside, by a person or an automation: the same is asked of it as of any winner. */
  async pick(reference: number | string, by: string): Promise<Choice> {
    const { attempts, input } = this.#journal.row;
    const attempt = attempts.find(({ index, name }) => index === reference || name === reference);
    if (attempt === undefined) throw new VivError("not_found", `The experiment has no attempt ${reference}.`);
    const against = obstacle(attempt, input);
    if (against !== null) throw cannotWin(attempt, against);
    const verified = attempt.verified ?? (await this.verify(attempt.index));
    if (!verified.passed) throw cannotWin(attempt, this.#why(this.#journal.attempt(attempt.index)));
    return { state: "done", winner: attempt.index, reason: `${title(attempt)} was chosen by ${by}.` };
  }

  /** The promotable change alone on a fresh fork of the frozen reality, with protected files as they were. */
  async verify(index: number): Promise<Verdict> {
    const { state } = this.#journal.attempt(index);
    this.#journal.changeAttempt(index, { state: "verifying" });
    try {
      const verified = await this.#turn(() => this.#verifyAlone(index));
      this.#journal.changeAttempt(index, { state: state === "verifying" ? "done" : state });
      this.#all.parts.reach("experiment.verified");
      return verified;
    } catch (error) {
      this.#journal.changeAttempt(index, { state: state === "verifying" ? "done" : state });
      throw error;
    }
  }

  async #verifyAlone(index: number): Promise<Verdict> {
    const { parts, sandboxes, clones, verification, temporary } = this.#all;
    const { origin, id, protect } = this.#journal.row;
    const { sandbox, snapshot, sideChanges } = this.#journal.attempt(index);
    if (origin === null || sandbox === null || snapshot === null)
      throw new VivError("not_found", `What attempt ${index} left, or the frozen reality it started from, is gone.`);
    const signal = AbortSignal.any([this.#ends.kill, this.#ends.cancel]);
    const opening = openChange(parts, await sandboxes.find(sandbox), snapshot, this.#journal.row, temporary);
    try {
      const alone = opening.change.then(async (change) => {
        const { free } = await splitChange(change, protect);
        return { free, contents: await change.contents(free) };
      });
      alone.catch(() => undefined);
      const verified = await verification.passes(
        () => clones.fork(origin.sandbox, origin.snapshot, clones.labels(id, `verify-${index}`), signal),
        async (fork) => {
          const { free, contents } = await alone;
          await verification.apply(fork, free, contents);
        },
        checkSettings(this.#journal.row, "fresh"),
        signal,
      );
      const { free } = await alone;
      this.#journal.changeAttempt(index, { verified, needs: verified.passed ? [] : needsOf(free, sideChanges) });
      return verified;
    } finally {
      opening.close();
    }
  }
}

function cannotWin(attempt: Attempt, why: string): VivError {
  return new VivError("illegal_transition", `${title(attempt)} can't win: ${why}.`, {
    remedy: "Pick another one, or promote its sandbox by itself with `viv promote SANDBOX`.",
  });
}

export function rankingOptions({ rules, input, baseline }: ExperimentRow): RankingOptions {
  return { rules, goal: input.measure?.goal ?? "min", ignoreExit: input.ignoreExit, baseline };
}

function isBetter(verdict: Verdict | null, limit: number, goal: "min" | "max"): boolean {
  if (verdict === null || verdict.measure === null) return false;
  return goal === "min" ? verdict.measure < limit : verdict.measure > limit;
}

/** What passes and changes nothing that can be promoted passes by its side changes alone. */
function needsWithoutChange({ checked, diff, sideChanges, needs }: Attempt): string[] {
  return checked?.passed === true && diff?.files === 0 ? [...sideChanges] : needs;
}

/** Said when fewer tests ran than on the untouched project. */
function fewerTests({ checked }: Attempt, baseline: Verdict | null): string | null {
  const before = testsRun(baseline);
  const now = testsRun(checked);
  const index = now.findIndex((number, at) => number < (before[at] ?? 0));
  return index < 0 ? null : `Only ${now[index]} of the ${before[index]} tests of \`${checked?.checks[index]?.command ?? ""}\` ran.`;
}
