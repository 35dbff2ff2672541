/** The SDK: everything that a program does with Vivarium begins here. */
import "./dispose.ts";
import { Approvals } from "./approvals.ts";
import { Connection, refuseUnknown, type CallOptions } from "./connection.ts";
import { Experiment, startExperiment, tryAll, type Approach, type TryOptions } from "./experiment.ts";
import { follow } from "./following.ts";
import type { Platform } from "./platform.ts";
import { Promotion } from "./promotion.ts";
import { Sandbox } from "./sandbox.ts";
import { startTask, type Task, type TaskOptions } from "./task.ts";
import type { VivariumEvent } from "./types/events.ts";
import type { Operations } from "./types/operations.ts";
import type { CreateSandboxInput, ListSandboxesInput } from "./types/sandboxes-operations.ts";
import type { ServerStatus } from "./types/server.ts";

/** What the new sandbox is: a clone of `project`, of a `git` repository, or `empty`. */
export interface CreateOptions extends Omit<CreateSandboxInput, "run">, CallOptions {}

export interface EventOptions extends CallOptions {
  /** Begins after the event with this number; with the next one that happens if left out. */
  readonly after?: number | undefined;
  /** Only events of this sandbox, by its id or name. */
  readonly sandbox?: string | undefined;
}

/** A server, found or started at the first call. */
export class VivariumClient {
  /** Questions that wait for a person. */
  readonly approvals: Approvals;
  readonly #connection: Connection;

  /** @internal */
  constructor(platform: Platform) {
    this.#connection = new Connection(platform);
    this.approvals = new Approvals(this.#connection);
  }

  /** Clones the machine. Resolves when the sandbox is ready, or rejects. */
  async create(options: CreateOptions = {}): Promise<Sandbox> {
    const { signal, project, ...rest } = options;
    const { caller } = this.#connection.platform;
    const elsewhere = rest.git !== undefined || rest.empty === true;
    const input = {
      ...(elsewhere ? {} : { project: caller.project(project) }),
      ...(caller.env === undefined ? {} : { env: caller.env }),
      ...(caller.user === undefined || rest.empty === true ? {} : { user: caller.user }),
      ...rest,
    };
    return new Sandbox(this.#connection, await this.#connection.call("createSandbox", input, signal));
  }

  /** A sandbox by its id or name. */
  async get(sandbox: string, options: CallOptions = {}): Promise<Sandbox> {
    const { signal, ...rest } = options;
    return new Sandbox(this.#connection, await this.#connection.call("findSandbox", { sandbox, ...rest }, signal));
  }

  /** The sandboxes there are. */
  async list(options: ListSandboxesInput & CallOptions = {}): Promise<Sandbox[]> {
    const { signal, ...rest } = options;
    const { sandboxes } = await this.#connection.call("listSandboxes", rest, signal);
    return sandboxes.map((info) => new Sandbox(this.#connection, info));
  }

  /** Tries several approaches at once, judges them by the same checks, and resolves when it is over. */
  async try(approaches: readonly Approach[], options: TryOptions = {}): Promise<Experiment> {
    return tryAll(this.#connection, approaches, options);
  }

  /** The same, but resolves at once: `finished` waits for its end. */
  async startTry(approaches: readonly Approach[], options: Omit<TryOptions, "onUpdate"> = {}): Promise<Experiment> {
    return startExperiment(this.#connection, approaches, options);
  }

  /** An experiment by its id. */
  async experiment(id: string, options: CallOptions = {}): Promise<Experiment> {
    const { signal, ...rest } = options;
    return new Experiment(this.#connection, await this.#connection.call("inspectExperiment", { experiment: id, ...rest }, signal));
  }

  /** Gives an agent a task in a clone of the project; resolves when it has been started. */
  async task(task: string, options: TaskOptions = {}): Promise<Task> {
    return startTask(this.#connection, task, options);
  }

  /** Takes the last promotion of a project back, or the one that is named. */
  async undo(options: { readonly project?: string; readonly promotion?: string } & CallOptions = {}): Promise<Promotion> {
    const { signal, project, ...rest } = options;
    const place = rest.promotion === undefined ? { project: this.#connection.platform.caller.project(project) } : {};
    return new Promotion(this.#connection, await this.#connection.call("undoPromotion", { ...place, ...rest }, signal));
  }

  /** What happens, as it happens. After a break of the connection it goes on where it was; none is missed or told twice. */
  async *events(options: EventOptions = {}): AsyncGenerator<VivariumEvent, void, void> {
    refuseUnknown("events", options, ["after", "sandbox", "signal"]);
    const { signal } = options;
    const after = options.after ?? (await this.#connection.call("listEvents", { limit: 1 }, signal)).newest;
    yield* follow(this.#connection, { ...options, after });
  }

  /** Any operation of the API by its name, with its own input and answer. */
  call<Name extends keyof Operations>(
    operation: Name,
    input: Operations[Name]["input"],
    options: CallOptions = {},
  ): Promise<Operations[Name]["output"]> {
    refuseUnknown("call", options, ["signal"]);
    return this.#connection.call(operation, input, options.signal);
  }

  /** The server and its machine. */
  async status(options: CallOptions = {}): Promise<ServerStatus> {
    const { signal, ...rest } = options;
    return this.#connection.call("status", rest, signal);
  }

  /** Closes the connections of this client. The server and its sandboxes go on. */
  close(): void {
    this.#connection.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}
