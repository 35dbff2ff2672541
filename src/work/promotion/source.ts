/** What is to be promoted: a sandbox as it is now, or the winner of an experiment as it was judged. */
import type { Parts } from "../../sandbox/shared/parts.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { PromoteInput } from "../../base/schema/promotion.ts";
import type { ExperimentRow, SandboxRow } from "../../base/store/rows.ts";
import { requireProject } from "../../sandbox/projects/workspaces.ts";
import type { Source } from "./plan.ts";

export interface Origin extends Source {
  readonly experiment: ExperimentRow | null;
  /** Whether the snapshot was taken for this promotion alone. */
  readonly isOwn: boolean;
}

type SourceInput = Pick<PromoteInput, "sandbox" | "experiment" | "only" | "include" | "branch">;

/** `snapshot` is one taken before, of which a promotion goes on. */
export async function findSource(
  parts: Pick<Parts, "store">,
  sandboxes: Sandboxes,
  asked: SourceInput,
  snapshot?: string,
): Promise<Origin> {
  if ((asked.sandbox === undefined) === (asked.experiment === undefined))
    throw new VivError("invalid_input", "Name either a sandbox or an experiment.");
  const onto = asked.branch === undefined ? ("reality" as const) : ("base" as const);
  const meant = { only: asked.only, include: asked.include ?? [], onto, keepsCommits: asked.branch?.keepCommits === true };
  if (asked.experiment === undefined) {
    const row = await sandboxes.find(asked.sandbox ?? "");
    requireProject(row, "promote into");
    const state = snapshot ?? (await frozen(sandboxes, row));
    return { row, snapshot: state, experiment: null, isOwn: state !== row.currentSnapshot, ...meant };
  }
  const experiment = await parts.store.experiments.get(asked.experiment);
  if (experiment === undefined)
    throw new VivError("not_found", `There is no experiment ${asked.experiment}.`, { remedy: "Look at `viv experiments`." });
  const winner = experiment.attempts.find(({ index }) => index === experiment.winner);
  if (winner === undefined) throw withoutWinner(experiment);
  if (winner.sandbox === null || winner.snapshot === null)
    throw new VivError("not_found", `The sandbox of the winner ${winner.name} is gone.`, {
      remedy: `Run it again with \`viv experiment ${experiment.id} retry\`.`,
    });
  const row = await sandboxes.find(winner.sandbox);
  requireProject(row, "promote into");
  return {
    row,
    snapshot: snapshot ?? winner.snapshot,
    experiment,
    isOwn: false,
    ...meant,
    protect: experiment.protect,
    include: [...experiment.input.include, ...meant.include],
  };
}

function withoutWinner({ id, state, reason }: ExperimentRow): VivError {
  if (state === "queued" || state === "running")
    return new VivError("not_found", `Experiment ${id} has no winner yet: it still runs.`, {
      remedy: "Wait for its end, or promote the sandbox of an attempt by its name, as it is now.",
    });
  return new VivError("not_found", `Experiment ${id} has no winner${reason === null ? "" : `: ${reason}`}`, {
    remedy: `Look at \`viv experiment ${id}\`, and promote the sandbox of an attempt by its name.`,
  });
}

/** A state that nothing changes any more. */
async function frozen(sandboxes: Sandboxes, row: SandboxRow): Promise<string> {
  if (row.state === "completed" && row.currentSnapshot !== null) return row.currentSnapshot;
  return (await sandboxes.snapshot(row.id, undefined)).id;
}
