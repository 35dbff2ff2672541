/** What the guardian is told about a run. */
import type { GUARDIAN_MODES } from "../../base/schema/choices.ts";
import type { AutonomyLevel } from "../../base/schema/policy.ts";
import type { DetectorName } from "./finding.ts";

export type GuardianMode = (typeof GUARDIAN_MODES)[number];

export interface GuardianSettings {
  readonly mode: GuardianMode;
  /** Detectors that are switched off. */
  readonly off: readonly DetectorName[];
  readonly run: string;
  /** Factor of the times that its steps get, and of those after which silence and full memory are found. */
  readonly patience?: number;
  readonly task: string;
  /** A reviewer changes no files, and is not asked to. */
  readonly readOnly: boolean;
  /** Files that the agent must leave alone, as paths within the project. */
  readonly protects: (path: string) => boolean;
}

/** POL-10: what a run at full autonomy lacks, one sentence; null if it may start. */
export function missingForFullAutonomy(run: {
  readonly level: AutonomyLevel | null;
  readonly guardian: GuardianMode;
  readonly timeoutMs: number | null;
  readonly budget: number | null;
}): string | null {
  if (run.level !== 3) return null;
  const missing = [
    ...(run.guardian === "off" ? ["the guardian"] : []),
    ...(run.timeoutMs === null ? ["a timeout"] : []),
    ...(run.budget === null ? ["a budget"] : []),
  ];
  return missing.length === 0
    ? null
    : `Autonomy level 3 runs only with the guardian, a timeout and a budget; this one lacks ${missing.join(" and ")}.`;
}
