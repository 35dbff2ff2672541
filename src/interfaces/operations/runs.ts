/** Use cases of runs of agents. */
import type { Runs } from "../../work/agents/runs.ts";
import type { Handlers } from "./operations.ts";

type Own = "listRuns" | "inspectRun" | "sayToRun" | "listRunMessages" | "interruptRun" | "stopRun" | "listRunEvents";

export function runHandlers(runs: Runs): Pick<Handlers, Own> {
  return {
    listRuns: async (filter) => ({ runs: await runs.list(filter) }),
    inspectRun: ({ run }) => runs.inspect(run),
    sayToRun: ({ run, text, way }) => runs.say(run, text, way),
    listRunMessages: async ({ run }) => ({ messages: await runs.messages(run) }),
    interruptRun: ({ run }) => runs.interrupt(run),
    stopRun: ({ run }) => runs.stop(run),
    listRunEvents: async ({ run, after, limit }) => ({ events: await runs.page(run, after, limit) }),
  };
}
