/** One isolated clone of the machine. */
import "./dispose.ts";
import { readText } from "../client/transport.ts";
import { CodeContext, type CodeOptions, type CodeResult } from "./code.ts";
import { refuseUnknown, type CallOptions, type Connection } from "./connection.ts";
import { Desktop, type DesktopOptions } from "./desktop.ts";
import { VivariumError } from "./error.ts";
import {
  collect,
  COMMAND_OPTIONS,
  Execution,
  wordsOf,
  type CommandLine,
  type CommandOptions,
  type ExecOptions,
  type RunOptions,
  type RunResult,
} from "./execution.ts";
import { defined, Files } from "./files.ts";
import { Port } from "./port.ts";
import { promote, type Promotion, type PromoteOptions } from "./promotion.ts";
import type {
  DiffSandboxInput,
  DiffSandboxOutput,
  ExtendSandboxInput,
  ForkSandboxInput,
  LimitSandboxInput,
} from "./types/sandboxes-operations.ts";
import type { Process } from "./types/commands.ts";
import type { Command, CommandResult, RefreshReport, SandboxDetail, SandboxInfo, SandboxStatus } from "./types/sandboxes.ts";
import type { CodeContextInfo } from "./types/notebooks.ts";
import type { Snapshot } from "./types/snapshots.ts";

/** Where code runs that names no context; `viv python` has the same. */
const MAIN_CONTEXT = "main";

type OfSandbox<Input> = Omit<Input, "sandbox"> & CallOptions;

export interface ForkOptions extends Omit<ForkSandboxInput, "sandbox" | "count" | "snapshot">, CallOptions {
  /** Fork this snapshot instead of the live state. */
  readonly snapshot?: Snapshot | string | undefined;
}

/** A sandbox: one isolated clone with its own processes, network and disk. `await using` removes it at the end of its block. */
export class Sandbox {
  /** As it was when the server last told. */
  info: SandboxInfo;
  /** Its files. */
  readonly files: Files;
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection, info: SandboxInfo) {
    this.#connection = connection;
    this.info = info;
    this.files = new Files(connection, info.id);
  }

  get id(): string {
    return this.info.id;
  }

  get name(): string {
    return this.info.name;
  }

  /** Runs a command to its end. A string is a line for the shell. An exit code other than 0 is a value. */
  async run(command: CommandLine, options: RunOptions = {}): Promise<RunResult> {
    refuseUnknown("run", options, [...COMMAND_OPTIONS, "stdin", "onStdout", "onStderr"]);
    const { stdin, onStdout: _, onStderr: __, signal, ...rest } = options;
    const open = { ...defined(rest), command: wordsOf(command), stdin: stdin !== undefined };
    return collect(await this.#connection.use((client) => client.exec(this.id, open), signal), options);
  }

  /** Starts a command and gives its streams. */
  async exec(command: CommandLine, options: ExecOptions = {}): Promise<Execution> {
    refuseUnknown("exec", options, [...COMMAND_OPTIONS, "terminal", "stdin", "keep"]);
    const { stdin, keep = false, signal, ...rest } = options;
    const open = {
      ...defined(rest),
      command: wordsOf(command),
      stdin: stdin ?? rest.terminal !== undefined,
      onDisconnect: keep ? ("keep" as const) : ("kill" as const),
    };
    const stream = await this.#connection.use((client) => client.exec(this.id, open), signal);
    return new Execution(stream, signal);
  }

  /** Starts a command that goes on by itself; look at it again with `command` or `attach`. */
  async background(command: CommandLine, options: CommandOptions = {}): Promise<Command> {
    refuseUnknown("background", options, COMMAND_OPTIONS);
    const { signal, ...rest } = options;
    return this.#connection.call("runCommand", { sandbox: this.id, ...rest, command: wordsOf(command), background: true }, signal);
  }

  /** A command with its output so far. */
  async command(id: string, options: CallOptions = {}): Promise<CommandResult> {
    const { signal, ...rest } = options;
    return this.#connection.call("inspectCommand", { sandbox: this.id, command: id, ...rest }, signal);
  }

  /** Commands that run, or with `all` also those that ended. */
  async commands(options: { readonly all?: boolean } & CallOptions = {}): Promise<Command[]> {
    const { signal, ...rest } = options;
    return (await this.#connection.call("listCommands", { sandbox: this.id, ...rest }, signal)).commands;
  }

  /** Processes that run inside, also those that commands left behind. */
  async processes(options: CallOptions = {}): Promise<Process[]> {
    const { signal, ...rest } = options;
    return (await this.#connection.call("listProcesses", { sandbox: this.id, ...rest }, signal)).processes;
  }

  /** The streams of a command that runs. */
  async attach(id: string, options: { readonly stdin?: boolean } & CallOptions = {}): Promise<Execution> {
    refuseUnknown("attach", options, ["stdin", "signal"]);
    const { signal, ...rest } = options;
    const stream = await this.#connection.use((client) => client.attach(this.id, id, rest), signal);
    return new Execution(stream, signal);
  }

  /** A port inside. */
  port(number: number): Port {
    if (!Number.isInteger(number) || number < 1 || number > 65_535) throw new VivariumError("invalid_input", `${number} is no port.`);
    return new Port(this.#connection, this.id, number);
  }

  /** Runs Python with what the calls before left, as a notebook does. An error that the code raises is a value. */
  async code(code: string, options: CodeOptions & { readonly context?: string | undefined } = {}): Promise<CodeResult> {
    const { context = MAIN_CONTEXT, ...rest } = options;
    return this.context(context).run(code, rest);
  }

  /** A place for variables of its own. */
  context(name: string): CodeContext {
    return new CodeContext(this.#connection, this.id, name);
  }

  /** The contexts there are. */
  async contexts(options: CallOptions = {}): Promise<CodeContextInfo[]> {
    const { signal, ...rest } = options;
    return (await this.#connection.call("listContexts", { sandbox: this.id, ...rest }, signal)).contexts;
  }

  /** Its screen, which is started if it has none. */
  async desktop(options: DesktopOptions = {}): Promise<Desktop> {
    const { signal, ...rest } = options;
    return new Desktop(this.#connection, await this.#connection.call("openDesktop", { sandbox: this.id, ...rest }, signal));
  }

  /** Freezes the state of its files. */
  async snapshot(options: { readonly name?: string } & CallOptions = {}): Promise<Snapshot> {
    const { signal, ...rest } = options;
    return this.#connection.call("createSnapshot", { sandbox: this.id, ...rest }, signal);
  }

  /** Its snapshots. */
  async snapshots(options: CallOptions = {}): Promise<Snapshot[]> {
    const { signal, ...rest } = options;
    return (await this.#connection.call("listSnapshots", { sandbox: this.id, ...rest }, signal)).snapshots;
  }

  /** Brings back the state of a snapshot; processes end. */
  async rollback(snapshot: Snapshot | string, options: CallOptions = {}): Promise<this> {
    const { signal, ...rest } = options;
    return this.#told(await this.#connection.call("rollback", { sandbox: this.id, snapshot: idOf(snapshot), ...rest }, signal));
  }

  /** New sandboxes from its live state, or from a snapshot. */
  async fork(count = 1, options: ForkOptions = {}): Promise<Sandbox[]> {
    const { signal, snapshot, ...rest } = options;
    const from = snapshot === undefined ? {} : { snapshot: idOf(snapshot) };
    const { sandboxes } = await this.#connection.call("forkSandbox", { sandbox: this.id, count, ...from, ...rest }, signal);
    return sandboxes.map((info) => new Sandbox(this.#connection, info));
  }

  /** What changed in the project since the clone. */
  async diff(options: OfSandbox<DiffSandboxInput> = {}): Promise<DiffSandboxOutput> {
    const { signal, ...rest } = options;
    return this.#connection.call("diffSandbox", { sandbox: this.id, ...rest }, signal);
  }

  /** The same as a patch for `git apply`. */
  async patch(options: { readonly promotable?: boolean } & CallOptions = {}): Promise<string> {
    refuseUnknown("patch", options, ["promotable", "signal"]);
    const { signal, ...rest } = options;
    return this.#connection.use(async (client) => readText(await client.patch(this.id, rest, signal)), signal);
  }

  /** How it stands to reality: its age, and what moved since. */
  async status(options: CallOptions = {}): Promise<SandboxStatus> {
    const { signal, ...rest } = options;
    return this.#connection.call("sandboxStatus", { sandbox: this.id, ...rest }, signal);
  }

  /** Brings the project as it is now into it; its own changes stay. */
  async refresh(options: CallOptions = {}): Promise<RefreshReport> {
    const { signal, ...rest } = options;
    return this.#connection.call("refreshSandbox", { sandbox: this.id, ...rest }, signal);
  }

  /** Brings its change into the real project. */
  async promote(options: PromoteOptions = {}): Promise<Promotion> {
    return promote(this.#connection, { sandbox: this.id }, options);
  }

  /** Everything about it, measured now. */
  async inspect(options: CallOptions = {}): Promise<SandboxDetail> {
    const { signal, ...rest } = options;
    const detail = await this.#connection.call("inspectSandbox", { sandbox: this.id, ...rest }, signal);
    this.info = detail;
    return detail;
  }

  /** Freezes all its processes. */
  async pause(options: CallOptions = {}): Promise<this> {
    return this.#change("pauseSandbox", options);
  }

  /** Lets its processes go on. */
  async resume(options: CallOptions = {}): Promise<this> {
    return this.#change("resumeSandbox", options);
  }

  /** Ends it and keeps its files. */
  async stop(options: CallOptions = {}): Promise<this> {
    return this.#change("stopSandbox", options);
  }

  /** Starts it again after it ended, from the files it left. */
  async start(options: CallOptions = {}): Promise<this> {
    return this.#change("startSandbox", options);
  }

  /** Gives it more time before it ends by itself. */
  async extend(options: OfSandbox<ExtendSandboxInput> = {}): Promise<this> {
    const { signal, ...rest } = options;
    return this.#told(await this.#connection.call("extendSandbox", { sandbox: this.id, ...rest }, signal));
  }

  /** Changes its limits while it runs. */
  async limit(limits: OfSandbox<LimitSandboxInput>): Promise<this> {
    const { signal, ...rest } = limits;
    return this.#told(await this.#connection.call("limitSandbox", { sandbox: this.id, ...rest }, signal));
  }

  /** Throws it away, with its snapshots. */
  async remove(options: CallOptions = {}): Promise<void> {
    const { signal, ...rest } = options;
    await this.#connection.call("removeSandbox", { sandbox: this.id, ...rest }, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.remove();
    } catch (error) {
      // It has been removed already.
      if (!(error instanceof VivariumError) || error.code !== "not_found") throw error;
    }
  }

  async #change(name: "pauseSandbox" | "resumeSandbox" | "stopSandbox" | "startSandbox", options: CallOptions): Promise<this> {
    const { signal, ...rest } = options;
    return this.#told(await this.#connection.call(name, { sandbox: this.id, ...rest }, signal));
  }

  #told(info: SandboxInfo): this {
    this.info = info;
    return this;
  }
}

function idOf(snapshot: Snapshot | string): string {
  return typeof snapshot === "string" ? snapshot : snapshot.id;
}
