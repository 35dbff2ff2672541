/** The checks of reality around a promotion, and whether they are worse after it. */
import type { CheckResult } from "../../base/schema/check.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { AutomationRow } from "../../base/store/rows.ts";
import type { Verification } from "../checks/verification.ts";
import { runOutside } from "../promotion/outside.ts";

export interface RealityChecks {
  /** Lines that run on the real machine. */
  readonly lines: readonly string[];
  /** Without such lines: checks that run in a clone of reality. */
  readonly checks: readonly string[];
  /** Time for each of these checks, as the experiment had it. */
  readonly checkTimeoutMs: number | undefined;
  readonly setup: string | undefined;
  readonly env: Readonly<Record<string, string>>;
}

/** What was asked of reality, and what came of it. */
export interface RealityLook {
  readonly asked: readonly string[];
  /** Without those that were not come to, since the setup failed. */
  readonly results: CheckResult[];
}

export async function lookAtReality(
  verification: Verification,
  { project }: Pick<AutomationRow, "project">,
  { lines, checks, checkTimeoutMs = LIMITS.attemptTimeoutMs, setup, env }: RealityChecks,
  bounds: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<RealityLook> {
  if (lines.length === 0) {
    if (checks.length === 0) return { asked: [], results: [] };
    const how = { checks, setup: setup ?? null, repeat: 1, checkTimeoutMs, measure: null, folders: {} };
    const verdict = await verification.verifyOn({ project, env: { ...env } }, [], "", how, bounds.signal);
    return { asked: checks, results: [...(verdict.setup === null ? [] : [verdict.setup]), ...verdict.checks] };
  }
  const results: CheckResult[] = [];
  for (const line of lines) results.push(await runOutside(project, line, env, bounds));
  return { asked: lines, results };
}

/** Why reality is worse: a line that passed before, was asked again, and did not pass. Undefined where it is not. */
export function worseIn(before: readonly CheckResult[], { asked, results }: RealityLook): string | undefined {
  const passes = new Set(results.filter(({ passed }) => passed).map(({ command }) => command));
  const worse = before.find(({ command, passed }) => passed && asked.includes(command) && !passes.has(command));
  if (worse === undefined) return undefined;
  const after = results.find(({ command }) => command === worse.command);
  if (after !== undefined) return `\`${worse.command}\` passed before the promotion and ended with ${after.exitCode} after it.`;
  const first = results.find(({ passed }) => !passed);
  const why = first === undefined ? "" : `: \`${first.command}\` ended with ${first.exitCode}`;
  return `\`${worse.command}\` passed before the promotion and did not run after it${why}.`;
}
