/** What is known of an attempt, in words: its checks, its tests, and what it does now. */
import type { Attempt, Experiment, Verdict } from "../../../src/base/schema/experiment.ts";
import { type Tone, toneOf } from "../parts/state.tsx";
import { plural } from "../parts/words.ts";

export function verdictWords(verdict: Verdict | null): { tone: Tone; text: string } | undefined {
  if (verdict === null) return undefined;
  const passed = verdict.checks.filter((check) => check.passed).length;
  if (verdict.setup !== null && !verdict.setup.passed) return { tone: "failed", text: "setup failed" };
  return { tone: verdict.passed ? "passed" : "failed", text: `${passed} of ${plural(verdict.checks.length, "check")}` };
}

/** The check that says most about a verdict: the first that failed. */
export function firstFailure(verdict: Verdict | null): string | undefined {
  return verdict?.checks.find((check) => !check.passed)?.command;
}

export function testWords(verdict: Verdict | null): string | undefined {
  const tests = (verdict?.checks ?? []).flatMap((check) => (check.tests === null ? [] : [check.tests]));
  if (tests.length === 0) return undefined;
  const sum = (pick: (one: (typeof tests)[number]) => number): number => tests.reduce((total, one) => total + pick(one), 0);
  const failed = sum((one) => one.failed);
  return failed === 0 ? `${sum((one) => one.passed)} pass` : `${failed} fail, ${sum((one) => one.passed)} pass`;
}

const DOING: Readonly<Partial<Record<Attempt["state"], string>>> = {
  queued: "waits for its turn",
  cloning: "is being cloned",
  running: "works",
  freezing: "is being frozen",
  checking: "is being checked",
  verifying: "its change is checked alone",
};

export function isOver({ state }: Attempt): boolean {
  return state === "done" || state === "failed" || state === "cancelled";
}

export function attemptTone(experiment: Experiment, attempt: Attempt): Tone {
  if (experiment.winner === attempt.index) return "passed";
  return attempt.state === "done" ? "stopped" : toneOf(attempt.state);
}

/** "winner", "place 2", "is being checked", "failed: it took too long". */
export function attemptLine(experiment: Experiment, attempt: Attempt): string {
  const doing = DOING[attempt.state];
  if (doing !== undefined) return doing;
  const place = attempt.rank === null ? undefined : `place ${attempt.rank}`;
  const first = experiment.winner === attempt.index ? "winner" : attempt.state === "done" ? place : attempt.state;
  return [first ?? attempt.state, attempt.reason ?? undefined].filter((part) => part !== undefined).join(": ");
}

/** The best first; those without a place as they were given. */
export function byRank({ attempts }: Experiment): readonly Attempt[] {
  const place = ({ rank }: Attempt): number => rank ?? Number.MAX_SAFE_INTEGER;
  return attempts.toSorted((one, other) => place(one) - place(other) || one.index - other.index);
}
