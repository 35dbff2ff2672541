/** The stages of a promotion: those of the config, or the usual ones. */
import type { ProjectConfig, Stage } from "../../base/schema/config.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { AskedLines } from "./asked-lines.ts";
import type { StageResult } from "../../base/schema/promotion.ts";

/** A stage with its checks decided; null where nothing carries it out. */
export interface PlannedStage extends Omit<Stage, "apply" | "checks"> {
  readonly apply: Stage["apply"] | null;
  readonly checks: readonly string[];
  /** Where its checks run; in the project's folder if left out. */
  readonly cwd?: string | undefined;
}

/** Sandbox, verified, dev, tested in dev; staging and production wait for a config that says how. */
export function plannedStages(config: ProjectConfig, { checks, folders }: Pick<AskedLines, "checks" | "folders">): PlannedStage[] {
  if (config.stages !== undefined) {
    const wanted = (stage: Stage): Pick<PlannedStage, "checks" | "cwd"> =>
      stage.checks === undefined && stage.apply === "verify" ? { checks, cwd: folders.checks } : { checks: stage.checks ?? [] };
    return config.stages.map((stage) => ({ ...stage, ...wanted(stage) }));
  }
  const plain = (name: string, apply: PlannedStage["apply"], own: readonly string[] = []): PlannedStage => ({
    name,
    apply,
    checks: own,
    cwd: folders.checks,
    after: [],
    approval: "none",
  });
  return [
    plain("sandbox", "none"),
    plain("verified", "verify", checks),
    plain("dev", "folder"),
    plain("dev-tested", "none", checks),
    plain("staging", null),
    plain("production", null),
  ];
}

export function startOf(stages: readonly PlannedStage[]): StageResult[] {
  return stages.map(({ name }) => ({ name, state: "pending", reason: null, checks: [], endedAt: null }));
}

/** Index of the stage to go to: the named one, or the first that writes into the folder. */
export function targetOf(stages: readonly PlannedStage[], name: string | undefined): number {
  const index = stages.findIndex((stage) => (name === undefined ? stage.apply === "folder" : stage.name === name));
  if (index < 0 && name === undefined) return stages.length - 1;
  if (index < 0)
    throw new VivError("invalid_input", `There is no stage ${name}; there are ${stages.map((stage) => stage.name).join(", ")}.`);
  const missing = stages.slice(0, index + 1).find(({ apply }) => apply === null);
  if (missing !== undefined)
    throw new VivError("invalid_input", `Nothing says how to carry out the stage ${missing.name}.`, {
      remedy: "Describe it under `stages` in vivarium.json, see docs/CONFIG.md.",
    });
  return index;
}
