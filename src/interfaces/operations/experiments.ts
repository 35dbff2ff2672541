/** Use cases of experiments. */
import type { Experiments } from "../../work/experiments/experiments.ts";
import type { Handlers } from "./operations.ts";

type Own =
  | "startExperiment"
  | "listExperiments"
  | "inspectExperiment"
  | "cancelExperiment"
  | "retryExperiment"
  | "pickWinner"
  | "removeExperiment";

export function experimentHandlers(experiments: Experiments): Pick<Handlers, Own> {
  return {
    startExperiment: (input) => experiments.start(input),
    listExperiments: async ({ project, all }) => ({ experiments: await experiments.list(project, all) }),
    inspectExperiment: ({ experiment }) => experiments.inspect(experiment),
    cancelExperiment: ({ experiment, now }) => experiments.cancel(experiment, now),
    retryExperiment: ({ experiment, all }) => experiments.retry(experiment, all),
    pickWinner: ({ experiment, attempt }) => experiments.pick(experiment, attempt),
    removeExperiment: async ({ experiment }) => {
      await experiments.remove(experiment);
      return { ok: true };
    },
  };
}
