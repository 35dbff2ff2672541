/** An agent that no adapter understands, and its run: what it tells, what is said to it, how its task stands. */
import { VivError } from "../../base/schema/errors.ts";
import type { RunGateway } from "../../work/agents/run-gateway.ts";
import type { Handlers } from "./call.ts";

type RunHandlers = Pick<Handlers, "readRun" | "tellRunStatus" | "tellEvents" | "readRunMessages" | "settleRunMessage">;

export function runHandlers(runs: RunGateway): RunHandlers {
  return {
    readRun: async ({ row }) => {
      const run = await runs.find(row.id);
      if (run === undefined) throw new VivError("not_found", "No agent's run is in this sandbox.", { remedy: "`viv task` begins one." });
      return { body: run };
    },
    tellRunStatus: async ({ row, input }) => ({ body: await runs.setStatus(row.id, input) }),
    tellEvents: async ({ row, input: { events } }) => {
      const run = await runs.events(row.id, events);
      return { body: { accepted: events.length, events: run.events } };
    },
    readRunMessages: async ({ row, input: { wait }, signal }) => ({
      body: { messages: await runs.messages(row.id, wait * 1000, signal) },
    }),
    settleRunMessage: async ({ row, path, input: { delivered, reason } }) => {
      await runs.settle(row.id, path.message, delivered, reason ?? null);
      return { body: { ok: true } };
    },
  };
}
