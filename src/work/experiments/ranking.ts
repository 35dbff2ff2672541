/** Which attempt is better, by stated rules, and why the winner won. */
import type { Attempt, Measure, Rule, Verdict } from "../../base/schema/experiment.ts";
import { count } from "./side-changes.ts";

export interface RankingOptions {
  readonly rules: readonly Rule[];
  readonly goal: Measure["goal"];
  readonly ignoreExit: boolean;
  /** What the checks said of the untouched project; null where they did not run. */
  readonly baseline: Verdict | null;
}

/** What counts: less is better, and what is not known comes last. `most` is how many tests each check ran at most. */
type Score = (attempt: Attempt, options: RankingOptions, most: readonly number[]) => number;

/** Flag of an attempt whose change is empty once protected files are left out. */
export const ONLY_PROTECTED = "It changes nothing but protected files.";

/** Beginnings of flags of attempts that could pass by what runs their checks. */
export const ADDS_CONFIGURATION = "It adds test configuration: ";
export const STEERS_CHECKS = "It changes how commands are run: ";

const NEVER = Number.POSITIVE_INFINITY;

const SCORES: Readonly<Record<Rule, Score>> = {
  checks: ({ checked }) => (checked === null ? NEVER : failedChecks(checked)),
  protected: ({ protectedChanged, flags }) => protectedChanged.length + flags.filter(isSteering).length,
  tests: ({ checked }, { baseline }, most) => (checked === null ? NEVER : notPassing(checked, baseline, most)),
  measure: ({ checked }, { goal }) => (checked?.measure == null ? NEVER : goal === "min" ? checked.measure : -checked.measure),
  // A change that is not there is no small change.
  diff: ({ diff }) => (diff === null || diff.files === 0 ? NEVER : diff.added + diff.removed + diff.files / 1e6),
  time: ({ wallMs }) => wallMs ?? NEVER,
  cpu: ({ cpuMs }) => cpuMs ?? NEVER,
  memory: ({ peakMemoryBytes }) => peakMemoryBytes ?? NEVER,
  cost: ({ cost }) => cost ?? 0,
};

function isSteering(flag: string): boolean {
  return flag.startsWith(ADDS_CONFIGURATION) || flag.startsWith(STEERS_CHECKS);
}

function failedChecks({ checks, setup }: Verdict): number {
  return setup === null ? checks.filter(({ passed }) => !passed).length : NEVER;
}

/** How many tests each check ran. */
export function testsRun(verdict: Verdict | null): number[] {
  return (verdict?.checks ?? []).map(({ tests }) => (tests?.passed ?? 0) + (tests?.failed ?? 0));
}

/**
 * Tests that fail, and those that should have run and did not: a runner that breaks has no failing test. How many should
 * have run, the untouched project says; where nothing ran there, the attempt that ran most, unless all checks pass.
 */
function notPassing(verdict: Verdict, baseline: Verdict | null, most: readonly number[]): number {
  const [ran, before] = [testsRun(verdict), testsRun(baseline)];
  return verdict.checks.reduce((sum, { tests }, index) => {
    const expected = before[index] || (verdict.passed ? 0 : (most[index] ?? 0));
    return sum + (tests?.failed ?? 0) + Math.max(0, expected - (ran[index] ?? 0));
  }, 0);
}

function mostTests(attempts: readonly Attempt[]): number[] {
  const all = attempts.map(({ checked }) => testsRun(checked));
  const checks = Math.max(0, ...all.map(({ length }) => length));
  return Array.from({ length: checks }, (_, index) => Math.max(...all.map((ran) => ran[index] ?? 0)));
}

/** Why an attempt can't win, or null if it can: the rules only put those that can in order. */
export function obstacle(attempt: Attempt, { ignoreExit }: Pick<RankingOptions, "ignoreExit">): string | null {
  if (attempt.state === "cancelled") return "it was cancelled";
  if (attempt.exitCode === null) return attempt.reason ?? "it did not come to its end";
  if (attempt.exitCode !== 0 && !ignoreExit) return `its command ended with ${attempt.exitCode}`;
  if (attempt.checked === null) return attempt.reason ?? "its checks did not come to their end";
  if (!attempt.checked.passed) return failureOf(attempt.checked);
  if (attempt.diff === null || attempt.diff.files === 0) return "it changes nothing that can be promoted";
  if (attempt.flags.includes(ONLY_PROTECTED)) return "it changes nothing but protected files";
  if (attempt.snapshot === null) return "what it left is gone";
  return null;
}

/** What went wrong in a verdict that is not good. */
export function failureOf({ checks, setup }: Verdict): string {
  if (setup !== null) return `the setup \`${shortLine(setup.command)}\` ended with ${setup.exitCode}`;
  const failed = checks.filter(({ passed }) => !passed);
  const [first] = failed;
  if (first === undefined) return "no check failed";
  const tests = first.tests === null || first.tests.failed === 0 ? "" : `, ${count(first.tests.failed, "test")} failed`;
  const how = first.flaky
    ? "passes only at times"
    : first.cause === null
      ? `ended with ${first.exitCode}${tests}`
      : `ended by ${first.cause}`;
  return `the check \`${shortLine(first.command)}\` ${how}${failed.length > 1 ? `, and ${failed.length - 1} more failed` : ""}`;
}

export function shortLine(line: string): string {
  const [first = ""] = line.split("\n");
  return first.length > 60 ? `${first.slice(0, 57)}...` : first;
}

/** The best first: those that can win, those that came to their end, those that failed; each in the order of the rules. */
export function rank(attempts: readonly Attempt[], options: RankingOptions): Attempt[] {
  const most = mostTests(attempts);
  return attempts.toSorted(
    (one, other) =>
      standing(one, options) - standing(other, options) || compare(one, other, options, most)?.order || one.index - other.index,
  );
}

/** From 0, which can win, to 3, which was not judged. */
function standing(attempt: Attempt, options: RankingOptions): number {
  if (obstacle(attempt, options) === null) return 0;
  if (attempt.state === "cancelled" || attempt.exitCode === null || attempt.checked === null) return 3;
  return attempt.exitCode === 0 || options.ignoreExit ? 1 : 2;
}

/** The first rule in which two differ, and which way. */
function compare(
  one: Attempt,
  other: Attempt,
  options: RankingOptions,
  most: readonly number[],
): { rule: Rule; left: number; right: number; order: number } | undefined {
  for (const rule of options.rules) {
    const [left, right] = [SCORES[rule](one, options, most), SCORES[rule](other, options, most)];
    if (left !== right) return { rule, left, right, order: left < right ? -1 : 1 };
  }
  return undefined;
}

/** The choice in one sentence; `rivals` are the others that could have won. */
export function whyItWon(winner: Attempt, rivals: readonly Attempt[], attempts: number, options: RankingOptions): string {
  const checks = winner.checked?.checks.length ?? 0;
  const passes = checks === 0 ? "it came to its end" : checks === 1 ? "its check passes" : `all ${checks} checks pass`;
  const head = `${title(winner)} won: ${passes}, also with its change alone on a fresh clone`;
  const [next] = rank(rivals, options);
  if (next === undefined) return attempts === 1 ? `${head}.` : `${head}, and no other attempt can win.`;
  const difference = compare(winner, next, options, mostTests([winner, next]));
  if (difference === undefined) return `${head}, and it comes first among equals.`;
  return `${head}, and of ${rivals.length + 1} that could win it ${ADVANTAGES[difference.rule](winner, next, difference)}.`;
}

const ADVANTAGES: Readonly<Record<Rule, (winner: Attempt, next: Attempt, by: { left: number; right: number }) => string>> = {
  checks: () => "passes the most checks",
  protected: (winner, next) =>
    winner.protectedChanged.length < next.protectedChanged.length
      ? "leaves protected files untouched"
      : "leaves what runs the checks untouched",
  tests: (_winner, _next, { left, right }) => `has the fewest tests that fail or do not run (${left} against ${right})`,
  measure: (winner, next) => `measures best (${winner.checked?.measure ?? "?"} against ${next.checked?.measure ?? "?"})`,
  diff: (winner, next) => `has the smallest diff (${lines(winner)} against ${lines(next)})`,
  time: (winner, next) => `is the fastest (${seconds(winner.wallMs)} against ${seconds(next.wallMs)})`,
  cpu: (winner, next) => `takes the least CPU time (${seconds(winner.cpuMs)} against ${seconds(next.cpuMs)})`,
  memory: (winner, next) => `takes the least memory (${mebibytes(winner)} against ${mebibytes(next)})`,
  cost: (winner, next) => `costs the least (${dollars(winner)} against ${dollars(next)})`,
};

export function title({ index, name }: Pick<Attempt, "index" | "name">): string {
  return name === String(index) ? `Attempt ${index}` : `Attempt ${index} (${name})`;
}

function dollars({ cost }: Attempt): string {
  return `$${(cost ?? 0).toFixed(4)}`;
}

function lines({ diff }: Attempt): string {
  return diff === null ? "?" : count(diff.added + diff.removed, "line");
}

function seconds(ms: number | null): string {
  return ms === null ? "?" : `${(ms / 1000).toFixed(2)} s`;
}

function mebibytes({ peakMemoryBytes }: Attempt): string {
  return peakMemoryBytes === null ? "?" : `${Math.round(peakMemoryBytes / 1024 ** 2)} MiB`;
}
