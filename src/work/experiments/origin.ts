/** The frozen reality of an experiment: a sandbox made now, and a snapshot of it before anything ran inside. */
import type { ExperimentRow } from "../../base/store/rows.ts";
import type { ExperimentParts } from "./attempt.ts";

export async function makeOrigin(
  { sandboxes, clones }: ExperimentParts,
  { id, project, input }: ExperimentRow,
  wait: AbortSignal | undefined,
  onWait: (reason: string) => void,
): Promise<{ sandbox: string; snapshot: string }> {
  const create = (): ReturnType<typeof sandboxes.create> =>
    sandboxes.create({
      project,
      // It and its forks end when the experiment does, not before.
      idleMs: 0,
      labels: clones.labels(id, "origin"),
      ...(input.env === undefined ? {} : { env: input.env }),
      ...(input.limits === undefined ? {} : { limits: input.limits }),
      ...(input.unwalled === undefined ? {} : { unwalled: input.unwalled }),
    });
  const made = wait === undefined ? await create() : await clones.patiently(create, wait, onWait);
  const snapshot = await sandboxes.snapshot(made.id, undefined);
  return { sandbox: made.id, snapshot: snapshot.id };
}
