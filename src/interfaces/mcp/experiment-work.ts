/** An experiment, as a tool waits for it and tells of it. */
import type { Client } from "../client/client.ts";
import type { Attempt, Experiment } from "../../base/schema/experiment.ts";
import type { Work } from "./follow.ts";
import { clean, lastPart } from "./results.ts";

const OVER: ReadonlySet<Experiment["state"]> = new Set(["choosing", "done", "failed", "cancelled"]);
const OUTPUT_CHARACTERS = 1_000;

export function experimentWork(client: Client, id: string): Work<Experiment> {
  return {
    look: () => client.call("inspectExperiment", { experiment: id }),
    isOver: ({ state }) => OVER.has(state),
    sandboxes: ({ attempts }) => attempts.flatMap(({ sandbox }) => sandbox ?? []),
    listen: (tell, signal) => changes(client, id, tell, signal),
    cancel: () => client.call("cancelExperiment", { experiment: id }),
  };
}

async function* changes(client: Client, id: string, tell: (text: string) => void, signal: AbortSignal): AsyncGenerator<void, void, void> {
  const { newest } = await client.call("listEvents", { limit: 1 });
  // What came before the first event that is heard: an attempt may run by now.
  const { attempts } = await client.call("inspectExperiment", { experiment: id });
  for (const { index, state } of attempts) tell(`attempt ${index} is ${state}`);
  for await (const { type, data } of client.events(newest, { signal })) {
    if (!type.startsWith("experiment.") || (data["experiment"] !== undefined && data["experiment"] !== id)) continue;
    const { attempt, state } = data;
    if (typeof state === "string") tell(typeof attempt === "number" ? `attempt ${attempt} is ${state}` : `It is ${state}`);
    yield;
  }
}

/** `next` stands for what is told otherwise. */
export function experimentFields({ id, state, reason, winner, attempts }: Experiment, next?: string): Record<string, unknown> {
  const isOver = OVER.has(state);
  return {
    session_id: id,
    status: !isOver ? "running" : state === "done" ? "completed" : state,
    ...(reason === null ? {} : { reason: clean(reason) }),
    winner: winner === null ? null : (attempts.find(({ index }) => index === winner)?.sandbox ?? null),
    attempts: attempts.map(attemptFields),
    next: next ?? nextOf(id, isOver, winner !== null),
  };
}

function nextOf(id: string, isOver: boolean, isWon: boolean): string {
  if (!isOver) return `It still works. Call wait with session_id ${id}.`;
  if (isWon) return `Call diff with session_id ${id} to see the winning change, promote to bring it into the project.`;
  return "No attempt won. Call diff with the session_id of one attempt to see its change.";
}

function attemptFields({ command, state, reason, sandbox, checked, verified, diff, output }: Attempt): Record<string, unknown> {
  const verdict = verified ?? checked;
  return {
    session_id: sandbox,
    way: clean(command).slice(0, OUTPUT_CHARACTERS),
    status: state,
    ...(reason === null ? {} : { reason: clean(reason) }),
    checks: verdict === null || verdict.checks.length === 0 ? "none" : verdict.passed ? "passed" : "failed",
    ...(diff === null ? {} : { files_changed: diff.files }),
    output: lastPart(clean(output), OUTPUT_CHARACTERS),
  };
}
