/** The lines that judge a promotion: given with it, by the experiment it comes from, or by the config; and where they run. */
import { foldersOf, type LineFolders } from "../checks/checks.ts";
import { folderIn, type ProjectView } from "../../sandbox/projects/projects.ts";
import type { PromoteInput } from "../../base/schema/promotion.ts";
import type { ExperimentRow } from "../../base/store/rows.ts";

export interface AskedLines {
  readonly checks: readonly string[];
  readonly setup: string | undefined;
  readonly folders: LineFolders;
}

export function askedLines(
  { row, config }: ProjectView,
  input: Pick<PromoteInput, "checks" | "setup" | "cwd">,
  experiment: ExperimentRow | null,
): AskedLines {
  const cwd = folderIn(row.path, input.cwd);
  const judged = experiment === null ? {} : foldersOf(experiment);
  return {
    checks: input.checks ?? experiment?.checks ?? config.checks,
    setup: input.setup ?? experiment?.setup ?? config.setup,
    folders: {
      checks: input.checks === undefined ? judged.checks : cwd,
      setup: input.setup === undefined ? judged.setup : cwd,
    },
  };
}
