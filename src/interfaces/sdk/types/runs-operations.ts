// Made from the contracts by scripts/sdk-types.ts.
import type { BacklogTask, RunEvent, RunInfo, RunMessage } from "./runs.ts";

/** Input of: List runs of agents, the newest first. */
export interface ListRunsInput {
  /** Only those of this project. */
  project?: string | undefined;
  /** Also those that ended long ago. */
  all?: boolean | undefined;
}

/** Answer of: List runs of agents, the newest first. */
export interface ListRunsOutput {
  runs: RunInfo[];
}

/** Input of: One run. */
export interface InspectRunInput {
  /** Id of a run. */
  run: string;
}

/** Input of: Say something to an agent that works; answered once the message is kept, and its state tells when the agent has it. */
export interface SayToRunInput {
  /** Id of a run. */
  run: string;
  /** The message. */
  text: string;
  /** steer: at its next tool call. after-turn: when its turn has ended. urgent: before all others. */
  way?: "steer" | "after-turn" | "urgent" | undefined;
}

/** Input of: What was said to an agent, and whether it has it. */
export interface ListRunMessagesInput {
  /** Id of a run. */
  run: string;
}

/** Answer of: What was said to an agent, and whether it has it. */
export interface ListRunMessagesOutput {
  messages: RunMessage[];
}

/** Input of: End what an agent does now; it goes on with what it is told next. */
export interface InterruptRunInput {
  /** Id of a run. */
  run: string;
}

/** Input of: End an agent, and keep its work. */
export interface StopRunInput {
  /** Id of a run. */
  run: string;
}

/** Input of: Events of a run, the oldest first. */
export interface ListRunEventsInput {
  /** Id of a run. */
  run: string;
  /** Only events with a higher number. */
  after?: number | undefined;
  /** How many, at most. */
  limit?: number | undefined;
}

/** Answer of: Events of a run, the oldest first. */
export interface ListRunEventsOutput {
  events: RunEvent[];
}

/** Input of: What agents left for later, the newest first. */
export interface ListBacklogInput {
  /** Only what is to be done in this project. */
  project?: string | undefined;
}

/** Answer of: What agents left for later, the newest first. */
export interface ListBacklogOutput {
  tasks: BacklogTask[];
}

/** Input of: Take a task off the backlog. */
export interface RemoveBacklogTaskInput {
  /** Id of a task of the backlog. */
  task: string;
}
