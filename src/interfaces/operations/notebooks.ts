/** Code that runs piece by piece. */
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { Handlers, Streams } from "./operations.ts";

const OK = { ok: true } as const;

type Notebook = "executeCode" | "inspectExecution" | "listContexts" | "interruptContext" | "restartContext" | "removeContext";

export function notebookHandlers(sandboxes: Sandboxes): Pick<Handlers, Notebook> {
  const { notebooks } = sandboxes;
  return {
    executeCode: async ({ sandbox, ...how }, signal) => notebooks.execute(await sandboxes.find(sandbox), how, signal),
    inspectExecution: async ({ sandbox, execution }) => notebooks.inspect(await sandboxes.find(sandbox), execution),
    listContexts: async ({ sandbox }) => ({ contexts: await notebooks.contexts(await sandboxes.find(sandbox)) }),
    interruptContext: async ({ sandbox, context }) => (await notebooks.interrupt(await sandboxes.find(sandbox), context), OK),
    restartContext: async ({ sandbox, context }) => (await notebooks.restart(await sandboxes.find(sandbox), context), OK),
    removeContext: async ({ sandbox, context }) => (await notebooks.remove(await sandboxes.find(sandbox), context), OK),
  };
}

export function notebookStreams(sandboxes: Sandboxes): Pick<Streams, "executionEvents" | "notebook"> {
  return {
    notebook: async (sandbox) => sandboxes.notebooks.dial(await sandboxes.find(sandbox)),
    executionEvents: async (sandbox, execution, signal) => sandboxes.notebooks.events(await sandboxes.find(sandbox), execution, signal),
  };
}
