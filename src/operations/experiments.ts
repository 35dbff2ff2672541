/** Use cases of experiments. */
import { VivError } from "../schema/errors.ts";
import type { Handlers } from "./operations.ts";

type Own =
  | "startExperiment"
  | "listExperiments"
  | "inspectExperiment"
  | "cancelExperiment"
  | "retryExperiment"
  | "pickWinner"
  | "removeExperiment";

export function experimentHandlers(): Pick<Handlers, Own> {
  const later = async (): Promise<never> => {
    throw new VivError("unsupported", "Experiments can't be run yet.");
  };
  return {
    startExperiment: later,
    listExperiments: later,
    inspectExperiment: later,
    cancelExperiment: later,
    retryExperiment: later,
    pickWinner: later,
    removeExperiment: later,
  };
}
