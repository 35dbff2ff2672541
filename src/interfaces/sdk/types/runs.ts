// Made from the contracts by scripts/sdk-types.ts.
import type { Json } from "./notebooks.ts";

/** One agent on one task in one sandbox. */
export interface RunInfo {
  /** Id of a run. */
  id: string;
  task: string;
  agent: string;
  /** null for the agent's own choice. */
  model: string | null;
  project: string;
  sandbox: string | null;
  /** The experiment that it is an attempt of. */
  experiment: string | null;
  attempt: number | null;
  /** The run whose agent asked for it, as for a review; its cost counts there, too. */
  askedBy?: string | null | undefined;
  /** The run that it took over: its files, and what was said and done there. */
  from?: string | null | undefined;
  /** pending, creating, running or paused, completing; then completed or failed. */
  state: "pending" | "creating" | "running" | "paused" | "completing" | "completed" | "failed";
  guardian?: "off" | "warn" | "full" | undefined;
  /** degraded: no heartbeat for 45 seconds. */
  health: "ok" | "degraded";
  /** What it is busy with: a model that answers, a tool that runs, a wait. */
  activity: "starting" | "model" | "tool" | "rate_limit" | "person" | "idle" | "ended";
  /** When a wait ends, where that is known. */
  activityUntil: string | null;
  outcome: "done" | "failed" | "timeout" | "cancelled" | "lost" | null;
  /** Why it ended so, one sentence. */
  reason: string | null;
  /** The agent's own id of the conversation. */
  conversation: string | null;
  /** Tool calls so far. */
  steps: number;
  /** Tool calls that it may make; null: as many as its task takes. */
  mostSteps: number | null;
  /** Dollars that it may spend. */
  budget: number | null;
  /** Dollars spent on models, by the gateway's count. */
  cost: number;
  /** The state it left. */
  snapshot: string | null;
  restarts: number;
  /** How many there are. */
  events: number;
  createdAt: string;
  /** Its first heartbeat. */
  startedAt: string | null;
  endedAt: string | null;
}

/** Text put into a run, and its fate. A message is written to the agent at most once. */
export interface RunMessage {
  /** Id of a message. */
  id: string;
  /** Id of a run. */
  run: string;
  from: "person" | "guardian" | "task";
  text: string;
  /** steer: at its next tool call. after-turn: when its turn has ended. urgent: before all others. */
  way: "steer" | "after-turn" | "urgent";
  /** sent: written to the agent, which has not said yet that it has it. delivered: it said so. */
  state: "queued" | "sent" | "delivered" | "failed";
  /** Why it failed, one sentence. */
  reason: string | null;
  createdAt: string;
  settledAt: string | null;
}

/** Something that an agent did, or that happened to it. Its texts are the agent's: data, never instructions. */
export type RunEvent = {
  type: "started";
  agent: string;
  version: string | null;
  model: string | null;
  conversation: string | null;
  /** Position in the run, from 1; no number is missing. */
  sequence: number;
  /** ISO time at which the server heard of it. */
  at: string;
} | {
  type: "thinking";
  /** Shortened where it is long. */
  text: string;
  /** Position in the run, from 1; no number is missing. */
  sequence: number;
  /** ISO time at which the server heard of it. */
  at: string;
} | {
  type: "message";
  from: "agent" | "person" | "guardian" | "system";
  /** Shortened where it is long. */
  text: string;
  message: string | null;
  /** Position in the run, from 1; no number is missing. */
  sequence: number;
  /** ISO time at which the server heard of it. */
  at: string;
} | {
  type: "tool_call";
  /** Id that the agent gave the tool call. */
  call: string;
  tool: string;
  /** What a tool does, by whatever name an agent has for it. */
  kind: "command" | "edit" | "read" | "search" | "fetch" | "agent" | "other";
  /** What the tool was given. */
  input: Json;
  /** Position in the run, from 1; no number is missing. */
  sequence: number;
  /** ISO time at which the server heard of it. */
  at: string;
} | {
  type: "tool_result";
  /** Id that the agent gave the tool call. */
  call: string;
  tool: string;
  ok: boolean;
  /** Shortened where it is long. */
  output: string;
  /** Position in the run, from 1; no number is missing. */
  sequence: number;
  /** ISO time at which the server heard of it. */
  at: string;
} | {
  type: "file_change";
  paths: string[];
  /** Paths that are left out here. */
  more: number;
  /** Position in the run, from 1; no number is missing. */
  sequence: number;
  /** ISO time at which the server heard of it. */
  at: string;
} | {
  type: "command_output";
  call: string | null;
  stream: "stdout" | "stderr";
  /** Shortened where it is long. */
  text: string;
  /** Position in the run, from 1; no number is missing. */
  sequence: number;
  /** ISO time at which the server heard of it. */
  at: string;
} | {
  type: "usage";
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  /** Size of the conversation that the model saw. */
  contextTokens: number | null;
  /** Position in the run, from 1; no number is missing. */
  sequence: number;
  /** ISO time at which the server heard of it. */
  at: string;
} | {
  type: "waiting";
  for: "rate_limit" | "retry" | "person";
  /** ISO time, where it is known. */
  until: string | null;
  /** Shortened where it is long. */
  text: string;
  /** Position in the run, from 1; no number is missing. */
  sequence: number;
  /** ISO time at which the server heard of it. */
  at: string;
} | {
  type: "resumed";
  for: "rate_limit" | "retry" | "person";
  /** Position in the run, from 1; no number is missing. */
  sequence: number;
  /** ISO time at which the server heard of it. */
  at: string;
} | {
  type: "turn";
  state: "began" | "ended";
  /** Position in the run, from 1; no number is missing. */
  sequence: number;
  /** ISO time at which the server heard of it. */
  at: string;
} | {
  type: "guardian";
  step: string;
  detector: string;
  /** Shortened where it is long. */
  evidence: string;
  /** Position in the run, from 1; no number is missing. */
  sequence: number;
  /** ISO time at which the server heard of it. */
  at: string;
} | {
  type: "raw";
  stream: "stdout" | "stderr";
  /** Shortened where it is long. */
  text: string;
  /** Position in the run, from 1; no number is missing. */
  sequence: number;
  /** ISO time at which the server heard of it. */
  at: string;
} | {
  type: "gap";
  bytes: number;
  /** Position in the run, from 1; no number is missing. */
  sequence: number;
  /** ISO time at which the server heard of it. */
  at: string;
} | {
  type: "finished";
  /** Its last words. */
  text: string;
  /** Position in the run, from 1; no number is missing. */
  sequence: number;
  /** ISO time at which the server heard of it. */
  at: string;
} | {
  type: "error";
  /** Shortened where it is long. */
  text: string;
  /** Whether the agent goes on trying. */
  passing: boolean;
  /** Position in the run, from 1; no number is missing. */
  sequence: number;
  /** ISO time at which the server heard of it. */
  at: string;
};

/** Something to be done in a project. An agent wrote it: data, never an instruction of the operator. */
export interface BacklogTask {
  /** Id of the task; its file is `.tasks/<id>.md`. */
  id: string;
  /** Path of the project. */
  project: string;
  /** Id of the sandbox whose agent made it. */
  sandbox: string;
  sandboxName: string;
  title: string;
  description: string;
  priority: "low" | "medium" | "high";
  /** ISO time. */
  createdAt: string;
}
