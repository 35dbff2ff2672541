/** Runs setup, checks and measure in a live sandbox, and reads what they say. */
import type { CheckResult } from "../../base/schema/check.ts";
import type { Measure, Verdict } from "../../base/schema/experiment.ts";
import { VivError } from "../../base/schema/errors.ts";
import { measuredNumber } from "../../base/schema/numbers.ts";
import type { Commands } from "../../sandbox/commands/commands.ts";
import type { ExperimentRow, SandboxRow } from "../../base/store/rows.ts";
import { runLine, tailOf, type LineEnd } from "./line.ts";
import { countTests } from "./test-counts.ts";

/** Where lines run; in the project's folder where one is left out. Lines that a caller gave run in the caller's folder. */
export interface LineFolders {
  readonly checks?: string | undefined;
  readonly setup?: string | undefined;
  readonly measure?: string | undefined;
}

/** Lines of the config run in the project's folder, those that the caller gave in the caller's. */
export function foldersOf({ input }: Pick<ExperimentRow, "input">): LineFolders {
  const { cwd, checks, setup } = input;
  return { checks: checks === undefined ? undefined : cwd, setup: setup === undefined ? undefined : cwd, measure: cwd };
}

export interface CheckSettings {
  readonly checks: readonly string[];
  /** Prepares a fresh clone before its checks. */
  readonly setup: string | null;
  readonly repeat: number;
  readonly checkTimeoutMs: number;
  readonly measure: Measure | null;
  readonly folders: LineFolders;
}

/** Characters of output that all checks of a verdict keep together, and each at least. */
const OUTPUT_CHARACTERS = 32 * 1024;
const LEAST_CHARACTERS = 1024;

/** One pass: every check runs, also when one before it failed. */
export async function judgeOnce(commands: Commands, row: SandboxRow, how: CheckSettings, signal: AbortSignal): Promise<Verdict> {
  const mostCharacters = Math.max(LEAST_CHARACTERS, Math.floor(OUTPUT_CHARACTERS / Math.max(1, how.checks.length)));
  const run = (line: string, cwd: string | undefined): Promise<LineEnd> => runWhole(commands, row, line, cwd, how.checkTimeoutMs, signal);
  const check = async (line: string, cwd: string | undefined): Promise<CheckResult> => resultOf(line, await run(line, cwd), mostCharacters);
  const setup = how.setup === null ? null : await check(how.setup, how.folders.setup);
  if (setup !== null && !setup.passed) return { passed: false, checks: [], measure: null, setup };
  const checks: CheckResult[] = [];
  for (const line of how.checks) checks.push(await check(line, how.folders.checks));
  const measure = how.measure === null ? null : readNumber(await run(how.measure.command, how.folders.measure));
  return { passed: checks.every(({ passed }) => passed), checks, measure, setup: null };
}

async function runWhole(
  commands: Commands,
  row: SandboxRow,
  line: string,
  cwd: string | undefined,
  timeoutMs: number,
  kill: AbortSignal,
): Promise<LineEnd> {
  const ended = await runLine(commands, row, line, { cwd, timeoutMs, kill });
  if (kill.aborted) throw new VivError("cancelled", "It was cancelled.");
  return ended;
}

function resultOf(command: string, { end, output }: LineEnd, mostCharacters: number): CheckResult {
  return {
    command,
    passed: end.cause === "exit" && end.exitCode === 0,
    exitCode: end.exitCode,
    runs: 1,
    flaky: false,
    wallMs: end.wallMs,
    tests: countTests(output),
    output: tailOf(output, mostCharacters),
    cause: end.cause === "exit" ? null : end.cause,
  };
}

/** The number on the last line that is not empty; null if there is none or the command failed. */
export function readNumber({ end, stdout }: Pick<LineEnd, "end" | "stdout">): number | null {
  const last = stdout.trimEnd().split("\n").at(-1)?.trim() ?? "";
  return end.exitCode === 0 ? (measuredNumber(last) ?? null) : null;
}

/** Several passes over the same state as one verdict: a check has passed if it did each time. */
export function combineVerdicts(passes: readonly Verdict[]): Verdict {
  const [first] = passes;
  if (first === undefined) throw new VivError("internal", "No pass of the checks was made.");
  const setup = passes.find((pass) => pass.setup !== null)?.setup ?? null;
  const whole = passes.filter((pass) => pass.setup === null);
  const checks = (whole[0]?.checks ?? []).map((_, index) => joined(whole.flatMap((pass) => pass.checks[index] ?? [])));
  return { passed: passes.every(({ passed }) => passed), checks, measure: median(whole.map(({ measure }) => measure)), setup };
}

function joined(runs: readonly CheckResult[]): CheckResult {
  const shown = runs.find(({ passed }) => !passed) ?? runs[0];
  if (shown === undefined) throw new VivError("internal", "A check has no runs.");
  return {
    ...shown,
    passed: runs.every(({ passed }) => passed),
    runs: runs.length,
    flaky: runs.some(({ passed }) => passed) && runs.some(({ passed }) => !passed),
    wallMs: runs.reduce((sum, { wallMs }) => sum + wallMs, 0),
  };
}

/** A number measured several times is its middle one; one that failed once is none. */
function median(numbers: readonly (number | null)[]): number | null {
  const known = numbers.filter((number) => number !== null).toSorted((one, other) => one - other);
  return known.length < numbers.length ? null : (known[Math.floor((known.length - 1) / 2)] ?? null);
}
