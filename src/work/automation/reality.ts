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
  readonly setup: string | undefined;
  readonly env: Readonly<Record<string, string>>;
}

export async function lookAtReality(
  verification: Verification,
  { project }: Pick<AutomationRow, "project">,
  { lines, checks, setup, env }: RealityChecks,
  bounds: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<CheckResult[]> {
  if (lines.length === 0) {
    if (checks.length === 0) return [];
    const how = { checks, setup: setup ?? null, repeat: 1, checkTimeoutMs: LIMITS.attemptTimeoutMs, measure: null, folders: {} };
    const verdict = await verification.verifyOn({ project, env: { ...env } }, [], "", how, bounds.signal);
    return [...(verdict.setup === null ? [] : [verdict.setup]), ...verdict.checks];
  }
  const results: CheckResult[] = [];
  for (const line of lines) results.push(await runOutside(project, line, env, bounds));
  return results;
}

/** The first line that passed before and fails now. */
export function worseIn(before: readonly CheckResult[], after: readonly CheckResult[]): CheckResult | undefined {
  const passed = new Set(before.filter((check) => check.passed).map(({ command }) => command));
  return after.find((check) => !check.passed && passed.has(check.command));
}
