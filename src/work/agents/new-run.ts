/** A run before it begins: its row, and the agents that it is about. */
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { AgentChoice } from "../../base/schema/run.ts";
import type { ExperimentRow, RunRow } from "../../base/store/rows.ts";

/** Every agent of these choices whose model is named, once. */
export function namedModels(choices: readonly AgentChoice[]): readonly { readonly agent: string; readonly model: string }[] {
  const agents = choices.flatMap((choice) => [choice, ...(choice.with ?? []).map((asked) => companionOf(choice, asked))]);
  const named = agents.flatMap(({ agent, model }) => (model === undefined ? [] : [[`${agent} ${model}`, { agent, model }] as const]));
  return [...new Map(named).values()];
}

/** The program and model of an agent that another one may ask: its own where nothing else is said. */
export function companionOf(
  choice: AgentChoice,
  { agent = choice.agent, model = agent === choice.agent ? choice.model : undefined }: NonNullable<AgentChoice["with"]>[number],
): { readonly agent: string; readonly model: string | undefined } {
  return { agent, model };
}

export function newRun(
  choice: AgentChoice,
  { takesOver, ...place }: Pick<RunRow, "project" | "experiment" | "attempt" | "program" | "with"> & Pick<ExperimentRow, "takesOver">,
  timeoutMs: number | undefined,
): RunRow {
  const handed = takesOver && { records: takesOver.records, tokens: choice.contextTokens ?? LIMITS.restartTokens };
  return {
    ...place,
    from: takesOver?.run ?? null,
    ...(handed === undefined ? {} : { handed }),
    id: newId("run"),
    task: choice.task,
    agent: choice.agent,
    model: choice.model ?? null,
    sandbox: null,
    state: "pending",
    guardian: choice.guardian ?? "full",
    guardianOff: choice.guardianOff ?? [],
    snapshotTurns: choice.snapshots ?? false,
    rateLimit: choice.rateLimit ?? "wait",
    health: "ok",
    activity: "starting",
    activityUntil: null,
    outcome: null,
    reason: null,
    conversation: null,
    steps: 0,
    mostSteps: choice.steps ?? null,
    budget: choice.budget ?? null,
    cost: 0,
    snapshot: null,
    restarts: 0,
    events: 0,
    createdAt: new Date().toISOString(),
    startedAt: null,
    endedAt: null,
    timeoutMs: timeoutMs ?? LIMITS.runTimeoutMs,
    command: null,
    read: { stdout: 0, stderr: 0, total: 0 },
    session: {},
    outbox: [],
    rawBytes: 0,
  };
}
