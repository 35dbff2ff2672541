/** Which attempt is better, by stated rules, and why the winner won. */
import type { Attempt, Measure, Rule, Verdict } from "../schema/experiment.ts";
import { count } from "./side-changes.ts";

export interface RankingOptions {
  readonly rules: readonly Rule[];
  readonly goal: Measure["goal"];
  readonly ignoreExit: boolean;
}

/** What counts: less is better, and what is not known comes last. */
type Score = (attempt: Attempt, options: RankingOptions) => number;

/** Flag of an attempt whose change is empty once protected files are left out. */
export const ONLY_PROTECTED = "It changes nothing but protected files.";

/** Beginnings of flags of attempts that could pass by what runs their checks. */
export const ADDS_CONFIGURATION = "It adds test configuration: ";
export const STEERS_CHECKS = "It changes how commands are run: ";

const NEVER = Number.POSITIVE_INFINITY;

const SCORES: Readonly<Record<Rule, Score>> = {
  checks: ({ checked }) => (checked === null ? NEVER : failedChecks(checked)),
  protected: ({ protectedChanged, flags }) => protectedChanged.length + flags.filter(isSteering).length,
  tests: ({ checked }) => (checked === null ? NEVER : failedTests(checked)),
  measure: ({ checked }, { goal }) => (checked?.measure == null ? NEVER : goal === "min" ? checked.measure : -checked.measure),
  diff: ({ diff }) => (diff === null ? NEVER : diff.added + diff.removed + diff.files / 1e6),
  time: ({ wallMs }) => wallMs ?? NEVER,
  cpu: ({ cpuMs }) => cpuMs ?? NEVER,
  memory: ({ peakMemoryBytes }) => peakMemoryBytes ?? NEVER,
};

function isSteering(flag: string): boolean {
  return flag.startsWith(ADDS_CONFIGURATION) || flag.startsWith(STEERS_CHECKS);
}

function failedChecks({ checks, setup }: Verdict): number {
  return setup === null ? checks.filter(({ passed }) => !passed).length : NEVER;
}

export function failedTests({ checks }: Verdict): number {
  return checks.reduce((sum, { tests }) => sum + (tests?.failed ?? 0), 0);
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
  if (setup !== null) return `the setup \`${brief(setup.command)}\` ended with ${setup.exitCode}`;
  const failed = checks.filter(({ passed }) => !passed);
  const [first] = failed;
  if (first === undefined) return "no check failed";
  const tests = first.tests === null || first.tests.failed === 0 ? "" : `, ${count(first.tests.failed, "test")} failed`;
  const how = first.flaky
    ? "passes only at times"
    : first.cause === null
      ? `ended with ${first.exitCode}${tests}`
      : `ended by ${first.cause}`;
  return `the check \`${brief(first.command)}\` ${how}${failed.length > 1 ? `, and ${failed.length - 1} more failed` : ""}`;
}

export function brief(line: string): string {
  const [first = ""] = line.split("\n");
  return first.length > 60 ? `${first.slice(0, 57)}...` : first;
}

/** The best first: those that can win, then the others, each in the order of the rules. */
export function rank(attempts: readonly Attempt[], options: RankingOptions): Attempt[] {
  return attempts.toSorted((one, other) => {
    const able = Number(obstacle(one, options) !== null) - Number(obstacle(other, options) !== null);
    return able || compare(one, other, options)?.order || one.index - other.index;
  });
}

/** The first rule in which two differ, and which way. */
function compare(one: Attempt, other: Attempt, options: RankingOptions): { rule: Rule; order: number } | undefined {
  for (const rule of options.rules) {
    const [left, right] = [SCORES[rule](one, options), SCORES[rule](other, options)];
    if (left !== right) return { rule, order: left < right ? -1 : 1 };
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
  const difference = compare(winner, next, options);
  if (difference === undefined) return `${head}, and it comes first among equals.`;
  return `${head}, and of ${rivals.length + 1} that could win it ${ADVANTAGES[difference.rule](winner, next)}.`;
}

const ADVANTAGES: Readonly<Record<Rule, (winner: Attempt, next: Attempt) => string>> = {
  checks: () => "passes the most checks",
  protected: (winner, next) =>
    winner.protectedChanged.length < next.protectedChanged.length
      ? "leaves protected files untouched"
      : "leaves what runs the checks untouched",
  tests: (winner, next) => `has the fewest failing tests (${failing(winner)} against ${failing(next)})`,
  measure: (winner, next) => `measures best (${winner.checked?.measure ?? "?"} against ${next.checked?.measure ?? "?"})`,
  diff: (winner, next) => `has the smallest diff (${lines(winner)} against ${lines(next)})`,
  time: (winner, next) => `is the fastest (${seconds(winner.wallMs)} against ${seconds(next.wallMs)})`,
  cpu: (winner, next) => `takes the least CPU time (${seconds(winner.cpuMs)} against ${seconds(next.cpuMs)})`,
  memory: (winner, next) => `takes the least memory (${mebibytes(winner)} against ${mebibytes(next)})`,
};

export function title({ index, name }: Pick<Attempt, "index" | "name">): string {
  return name === String(index) ? `Attempt ${index}` : `Attempt ${index} (${name})`;
}

function failing({ checked }: Attempt): number {
  return checked === null ? 0 : failedTests(checked);
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
