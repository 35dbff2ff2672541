/** Several approaches to one task, judged by the same checks. */
import { refuseUnknown, type CallOptions, type Connection } from "./connection.ts";
import "./dispose.ts";
import { cancelled, VivariumError } from "./error.ts";
import { untilOver } from "./following.ts";
import { promote, type Promotion, type PromoteOptions } from "./promotion.ts";
import { Sandbox } from "./sandbox.ts";
import type { StartExperimentInput } from "./types/experiments-operations.ts";
import type { AttemptInfo, ExperimentInfo } from "./types/experiments.ts";

/** One approach: a line for the shell, or a named one, or an agent with its task. */
export type Approach = string | StartExperimentInput["attempts"][number];

export interface TryOptions extends Omit<StartExperimentInput, "attempts">, CallOptions {
  /** Called whenever something has changed. */
  readonly onUpdate?: ((experiment: ExperimentInfo) => void) | undefined;
}

const OVER = new Set(["choosing", "done", "failed", "cancelled"]);

/** One approach and what came of it. */
export class Attempt {
  readonly info: AttemptInfo;
  readonly #connection: Connection;
  readonly #experiment: ExperimentInfo;

  /** @internal */
  constructor(connection: Connection, experiment: ExperimentInfo, info: AttemptInfo) {
    this.#connection = connection;
    this.#experiment = experiment;
    this.info = info;
  }

  get name(): string {
    return this.info.name;
  }

  /** Whether all checks passed on its change alone, or where that was not looked at, in its sandbox; null without checks. */
  get passed(): boolean | null {
    const verdict = this.info.verified ?? this.info.checked;
    return verdict === null || verdict.checks.length === 0 ? null : verdict.passed;
  }

  /** Its sandbox; rejects with `not_found` once that is gone. */
  async sandbox(options: CallOptions = {}): Promise<Sandbox> {
    const { signal, ...rest } = options;
    return new Sandbox(this.#connection, await this.#connection.call("findSandbox", { sandbox: this.#place(), ...rest }, signal));
  }

  /** Brings its change into the real project. */
  async promote(options: PromoteOptions = {}): Promise<Promotion> {
    const isWinner = this.#experiment.winner === this.info.index;
    return promote(this.#connection, isWinner ? { experiment: this.#experiment.id } : { sandbox: this.#place() }, options);
  }

  #place(): string {
    const { sandbox, name } = this.info;
    if (sandbox === null) throw new VivariumError("not_found", `The attempt ${name} has no sandbox any more.`);
    return sandbox;
  }
}

/** What came of trying several approaches. */
export class Experiment {
  /** As it was when it was last looked at. */
  info: ExperimentInfo;
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection, info: ExperimentInfo) {
    this.#connection = connection;
    this.info = info;
  }

  get id(): string {
    return this.info.id;
  }

  /** done, failed, cancelled, or choosing where a person is to pick. */
  get state(): ExperimentInfo["state"] {
    return this.info.state;
  }

  /** The choice, or why there is none, in one sentence. */
  get reason(): string | null {
    return this.info.reason;
  }

  /** In the order in which they were given. */
  get attempts(): Attempt[] {
    return this.info.attempts.map((attempt) => new Attempt(this.#connection, this.info, attempt));
  }

  /** The attempt that won; undefined if none did. */
  get winner(): Attempt | undefined {
    return this.attempts.find(({ info }) => info.index === this.info.winner);
  }

  /** Chooses the winner by name or number. */
  async pick(attempt: string | number, options: CallOptions = {}): Promise<this> {
    const { signal, ...rest } = options;
    this.info = await this.#connection.call("pickWinner", { experiment: this.id, attempt, ...rest }, signal);
    return this;
  }

  /** Waits until it is over. */
  async finished(options: Pick<TryOptions, "signal" | "onUpdate"> = {}): Promise<this> {
    refuseUnknown("experiment.finished", options, ["signal", "onUpdate"]);
    this.info = await untilOver(this.#connection, {
      look: () => this.#connection.call("inspectExperiment", { experiment: this.id }),
      concerns: ({ type, data }) => type.startsWith("experiment.") && data["experiment"] === this.id,
      isOver: ({ state }) => OVER.has(state),
      ...options,
    });
    return this;
  }

  /** Stops what runs and keeps what was done. */
  async cancel(options: CallOptions = {}): Promise<this> {
    const { signal, ...rest } = options;
    this.info = await this.#connection.call("cancelExperiment", { experiment: this.id, ...rest }, signal);
    return this;
  }

  /** Removes it with its sandboxes. */
  async remove(options: CallOptions = {}): Promise<void> {
    const { signal, ...rest } = options;
    await this.#connection.call("removeExperiment", { experiment: this.id, ...rest }, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.remove();
  }
}

/** Starts an experiment; it goes on by itself. */
export async function startExperiment(
  connection: Connection,
  attempts: readonly Approach[],
  options: Omit<TryOptions, "onUpdate">,
): Promise<Experiment> {
  const { signal, project, ...rest } = options;
  const { caller } = connection.platform;
  const start = rest.git === undefined ? { project: caller.project(project) } : {};
  const input = {
    ...start,
    ...(caller.env === undefined ? {} : { env: caller.env }),
    ...rest,
    attempts: attempts.map((attempt) => (typeof attempt === "string" ? { command: attempt } : attempt)),
  };
  return new Experiment(connection, await connection.call("startExperiment", input, signal));
}

/** Starts an experiment and waits for its end; cancelling the call cancels it. */
export async function tryAll(connection: Connection, attempts: readonly Approach[], options: TryOptions): Promise<Experiment> {
  const { onUpdate, signal, ...rest } = options;
  const experiment = await startExperiment(connection, attempts, { ...rest, signal });
  try {
    return await experiment.finished({ onUpdate, signal });
  } catch (error) {
    if (signal?.aborted !== true) throw error;
    await experiment.cancel();
    throw cancelled(signal);
  }
}
