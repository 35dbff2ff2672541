/** An agent that does a task in a sandbox of its own. */
import { refuseUnknown, type CallOptions, type Connection } from "./connection.ts";
import { startExperiment, type Approach, type Attempt, type Experiment, type TryOptions } from "./experiment.ts";
import { resumed } from "./following.ts";
import type { SayToRunInput } from "./types/runs-operations.ts";
import type { RunEvent, RunInfo, RunMessage } from "./types/runs.ts";

type AgentFields = Omit<NonNullable<Exclude<Approach, string>["agent"]>, "task">;

/** Who does it and with what limits, and how its result is judged. */
export interface TaskOptions extends AgentFields, Omit<TryOptions, "onUpdate"> {}

/** What came of a task. */
export interface TaskResult {
  readonly run: RunInfo;
  /** Its change, verdict and sandbox; `promote` brings the change into the project. */
  readonly attempt: Attempt;
  /** Whether the agent is done and no check failed. */
  readonly ok: boolean;
}

const AGENT_FIELDS = ["agent", "model", "steps", "guardian", "guardianOff", "rateLimit", "snapshots", "with", "budget"] as const;

/** A task that an agent works on. Iterating over it gives what the agent does, from the beginning to its end. */
export class Task implements AsyncIterable<RunEvent> {
  /** Id of the run. */
  readonly id: string;
  /** The experiment that judges it. */
  readonly experiment: Experiment;
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection, experiment: Experiment) {
    this.#connection = connection;
    this.experiment = experiment;
    this.id = experiment.info.attempts[0]?.run ?? "";
  }

  /** What the agent does after the event of a number, until it has ended. Breaks of the connection are bridged. */
  events(options: { readonly after?: number } & CallOptions = {}): AsyncGenerator<RunEvent, void, void> {
    refuseUnknown("task.events", options, ["after", "signal"]);
    const source = {
      open: (after: number, signal: AbortSignal) =>
        this.#connection.use(async (client) => client.runEvents(this.id, after, signal) as AsyncIterable<RunEvent>, signal),
      numberOf: ({ sequence }: RunEvent) => sequence,
      isOver: async () => (await this.info()).endedAt !== null,
    };
    return resumed(source, options.after ?? 0, options.signal);
  }

  [Symbol.asyncIterator](): AsyncGenerator<RunEvent, void, void> {
    return this.events();
  }

  /** How it stands now. */
  async info(options: CallOptions = {}): Promise<RunInfo> {
    const { signal, ...rest } = options;
    return this.#connection.call("inspectRun", { run: this.id, ...rest }, signal);
  }

  /** Says something to the agent; at its next tool call if no other way is chosen. */
  async say(text: string, options: Pick<SayToRunInput, "way"> & CallOptions = {}): Promise<RunMessage> {
    const { signal, ...rest } = options;
    return this.#connection.call("sayToRun", { run: this.id, text, ...rest }, signal);
  }

  /** Ends what the agent does now; it goes on with what it is told next. */
  async interrupt(options: CallOptions = {}): Promise<RunInfo> {
    const { signal, ...rest } = options;
    return this.#connection.call("interruptRun", { run: this.id, ...rest }, signal);
  }

  /** Ends the agent, and keeps its work. */
  async stop(options: CallOptions = {}): Promise<RunInfo> {
    const { signal, ...rest } = options;
    return this.#connection.call("stopRun", { run: this.id, ...rest }, signal);
  }

  /** Waits until the agent has ended and its result is judged. */
  async result(options: CallOptions = {}): Promise<TaskResult> {
    const { attempts } = await this.experiment.finished(options);
    const [attempt] = attempts as [Attempt];
    // The run ends a moment after its experiment.
    for await (const event of this.events({ after: (await this.info()).events, signal: options.signal })) void event;
    const run = await this.info(options);
    return { run, attempt, ok: run.outcome === "done" && attempt.passed !== false };
  }
}

export async function startTask(connection: Connection, task: string, options: TaskOptions): Promise<Task> {
  const fields = Object.entries(options);
  const isOfAgent = ([name]: [string, unknown]): boolean => (AGENT_FIELDS as readonly string[]).includes(name);
  const agent = { task, ...(Object.fromEntries(fields.filter(isOfAgent)) as AgentFields) };
  const rest = Object.fromEntries(fields.filter((field) => !isOfAgent(field))) as Omit<TryOptions, "onUpdate">;
  return new Task(connection, await startExperiment(connection, [{ agent }], rest));
}
