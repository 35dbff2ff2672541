/** Commands inside sandboxes: started, listened to, ended, and explained. */
import type { CommandLog, OutputChunk, RunningCommand } from "../../machine/drivers/drivers.ts";
import { errorText } from "../../base/host/log.ts";
import type { Command, CommandEnd, CommandResult } from "../../base/schema/command.ts";
import { DESKTOP_DISPLAY, DESKTOP_SERVICE } from "../../base/schema/desktop.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { ModelFiles } from "./model-files.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { commandOf, execRequest, type StartOptions } from "./exec-request.ts";
import { CommandRecords } from "./command-records.ts";
import { commandEnd, endedWithSandbox, NOTHING_SEEN, signalNumber, type Circumstances } from "./causes.ts";
import type { Damage } from "./damage.ts";
import type { LiveSandbox } from "../shared/live.ts";
import { OutputTail } from "./output-tail.ts";
import type { Parts } from "../shared/parts.ts";
import { requireLive } from "../shared/state.ts";
import type { CommandStream } from "./stream.ts";

/** A quota counts as used up when less than this is left. */
const DISK_MARGIN_BYTES = 1024 ** 2;

/** The store has it already. */
const KNOWN = Promise.resolve();

export class Commands {
  readonly #parts: Pick<Parts, "store" | "backends" | "user" | "log" | "models" | "live">;
  readonly #damage: Damage;
  readonly #records: CommandRecords;
  /** Ends of commands that are being listened to, by command id. */
  readonly #ends = new Map<string, Promise<CommandEnd>>();
  /** Commands that a caller asked to end. */
  readonly #cancelled = new Set<string>();
  readonly #modelFiles: ModelFiles;

  constructor(parts: Pick<Parts, "store" | "backends" | "user" | "log" | "models" | "live">, damage: Damage) {
    this.#parts = parts;
    this.#damage = damage;
    this.#records = new CommandRecords(parts);
    this.#modelFiles = new ModelFiles(parts.models);
  }

  async start(row: SandboxRow, options: StartOptions): Promise<CommandStream> {
    requireLive(row);
    const live = this.#live(row);
    const request = execRequest(row, options, this.#parts, live.display);
    await this.prepare(row);
    const leave = live.concurrency.commands.take();
    const running = await orLeave(this.#damage.heardBy(row.id, live.walls.commands.exec(request)), leave);
    const command = commandOf(request, row, options, running.pid);
    const onDisconnect = options.onDisconnect ?? "keep";
    const begun = this.#records.begun(command, running.exit);
    // A caller that waits for it needs no record: that comes when the database can be written.
    if (onDisconnect === "kill") begun.catch(() => this.#records.surely(command, null));
    const end = this.#follow(live, command, running, begun, leave);
    try {
      // A caller that goes away and comes back finds the command in the store, or is told that it could not be started.
      if (onDisconnect === "keep") await begun;
    } catch (error) {
      running.signal(9);
      // Its end is heard only behind its output.
      void drain(running.output, end, this.#parts.log);
      throw error;
    }
    return this.#stream(command, running, end, onDisconnect);
  }

  /** What has to be inside before a command starts; a caller with other things to do can have it done meanwhile. */
  async prepare(row: SandboxRow): Promise<void> {
    if (!row.walled) return;
    await this.#modelFiles.to(this.#live(row), this.#parts.backends.of(row).driver.capabilities.allUsers ? "0" : row.user, row.env);
  }

  /** Runs a command to its end and keeps the last part of its output. An abort kills it, and its end is waited for all the same. */
  async run(row: SandboxRow, options: StartOptions, stdin: string | undefined, signal?: AbortSignal): Promise<CommandResult> {
    const hasInput = stdin !== undefined;
    const stream = await this.start(row, { ...options, stdin: hasInput, brief: !hasInput, onDisconnect: "kill" });
    const abort = (): void => stream.signal("SIGKILL");
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted === true) abort();
    try {
      if (hasInput) {
        void stream.write(Buffer.from(stdin)).then(
          () => stream.endInput(),
          (error: unknown) => this.#parts.log.info("input not taken", { error: errorText(error) }),
        );
      }
      const tail = new OutputTail(LIMITS.capturedOutputBytes);
      for await (const chunk of stream.output) tail.add(chunk);
      return { ...stream.command, running: false, end: await stream.end, ...tail.result() };
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  async attach(row: SandboxRow, id: string, stdin: boolean): Promise<CommandStream> {
    const command = await this.find(row, id);
    const live = this.#parts.live.get(row.id);
    if (live === undefined || !command.running) return this.#ended(row, command);
    const leaveSlot = live.concurrency.listeners.take();
    const use = live.uses.begin(`attached to command ${id}`);
    const leave = (): void => (leaveSlot(), use());
    const running = await orLeave(live.walls.commands.attach(id, stdin), leave);
    if (running === undefined) return this.#ended(row, command);
    running.exit.then(leave, leave);
    const end = this.#ends.get(id);
    if (end === undefined) {
      const followed = this.#follow(live, command, running, KNOWN, live.concurrency.commands.admit());
      return this.#stream(command, running, followed, "keep");
    }
    const before = upTo(await this.#log(row, id), running.offset);
    const output = async function* (): AsyncGenerator<OutputChunk> {
      yield* replay(before);
      yield* running.output;
    };
    return { ...this.#stream(command, running, end, "keep"), output: output(), close: () => (running.detach(), leave()) };
  }

  /**
   * A command whose id an earlier server chose, as a stream; undefined if that server died before it started the command. It may have
   * died before it noted the start, too: then the start is noted now.
   */
  async again(row: SandboxRow, options: StartOptions & { readonly id: string }): Promise<CommandStream | undefined> {
    const { id } = options;
    await this.#records.settled();
    if ((await this.#parts.store.commands.get(id)) === undefined && !(await this.#noteStart(row, options))) return undefined;
    return this.attach(row, id, options.stdin === true);
  }

  /** Whether it was started. */
  async #noteStart(row: SandboxRow, options: StartOptions & { readonly id: string }): Promise<boolean> {
    const running = await this.#parts.live.get(row.id)?.walls.commands.attach(options.id, false);
    running?.detach();
    const { exit, chunks } = await this.#log(row, options.id);
    if (running === undefined && exit === null && chunks.length === 0) return false;
    const command = commandOf(execRequest(row, options, this.#parts, null), row, options, running?.pid ?? 0);
    const end = exit === null ? (running === undefined ? endedWithSandbox("lost", 0) : null) : commandEnd(exit, NOTHING_SEEN);
    await this.#records.surely(command, end);
    return true;
  }

  /** Listens to a command of an earlier server, so that its end is recorded. */
  async adopt(row: SandboxRow, live: LiveSandbox, command: Command): Promise<void> {
    const running = await live.walls.commands.attach(command.id, false);
    if (running === undefined) {
      await this.#settleFromLog(row, live, command);
      return;
    }
    const end = this.#follow(live, command, running, KNOWN, live.concurrency.commands.admit());
    void drain(running.output, end, this.#parts.log);
  }

  /** Of a sandbox, the oldest first. */
  async list(row: SandboxRow, running: boolean | undefined): Promise<Command[]> {
    await this.#records.settled();
    return this.#parts.store.commands.list({ sandbox: row.id, running });
  }

  async find(row: SandboxRow, id: string): Promise<Command> {
    await this.#records.settled();
    const command = await this.#parts.store.commands.get(id);
    if (command === undefined || command.sandbox !== row.id)
      throw new VivError("not_found", `Sandbox ${row.name} has no command ${id}.`, { remedy: `Look at \`viv ps ${row.name} --all\`.` });
    return command;
  }

  async result(row: SandboxRow, id: string): Promise<CommandResult> {
    const command = await this.find(row, id);
    const log = await this.#log(row, id);
    const tail = new OutputTail(LIMITS.capturedOutputBytes);
    for (const chunk of log.chunks) tail.add(chunk);
    const { truncated, ...output } = tail.result();
    return { ...command, ...output, truncated: truncated || log.offset > 0 };
  }

  async kill(row: SandboxRow, id: string, signal: string): Promise<void> {
    const number = signalNumber(signal);
    if (number === undefined) throw new VivError("invalid_input", `There is no signal ${signal}.`);
    requireLive(row);
    await this.find(row, id);
    const running = await this.#live(row).walls.commands.attach(id, false);
    if (running === undefined) throw new VivError("not_found", `Command ${id} has ended.`);
    if (number === 9 || number === 15) this.#cancelled.add(id);
    running.signal(number);
    running.detach();
  }

  /** Records the end of everything that still counts as running; its sandbox has ended. */
  async settleAll(sandbox: string, cause: "cancelled" | "lost"): Promise<void> {
    await this.#records.settled();
    for (const command of await this.#parts.store.commands.list({ sandbox, running: true })) {
      await this.#ends.get(command.id)?.catch(() => undefined);
      const now = await this.#parts.store.commands.get(command.id);
      if (now?.running === true) await this.#records.ended(now, await this.#endOf(now, cause));
    }
  }

  /** One that ended while no server listened has its end in the log. */
  async #endOf(command: Command, cause: "cancelled" | "lost"): Promise<CommandEnd> {
    const row = await this.#parts.store.sandboxes.get(command.sandbox);
    const exit = row === undefined || cause !== "lost" ? null : (await this.#log(row, command.id)).exit;
    if (exit === null) return endedWithSandbox(cause, Date.now() - Date.parse(command.startedAt));
    return commandEnd(exit, NOTHING_SEEN);
  }

  #live(row: SandboxRow): LiveSandbox {
    const live = this.#parts.live.require(row);
    live.activeAt = performance.now();
    return live;
  }

  async #log(row: SandboxRow, id: string): Promise<CommandLog> {
    return this.#parts.backends.of(row).driver.logs.read(row.id, id);
  }

  /** Waits for the end of a command and records it. The caller's stream does not wait for the record. */
  #follow(live: LiveSandbox, command: Command, running: RunningCommand, begun: Promise<void>, leave: () => void): Promise<CommandEnd> {
    // Services run as long as the sandbox does: they would keep it for ever.
    const use = command.service === undefined ? live.uses.begin(`command ${command.id}`) : undefined;
    const isDesktop = command.service === DESKTOP_SERVICE;
    if (isDesktop) live.display = DESKTOP_DISPLAY;
    const over = (): void => {
      leave();
      use?.();
      if (isDesktop) live.display = null;
    };
    running.exit.then(over, over);
    const end = running.exit.then(
      async (exit) => commandEnd(exit, await this.#circumstances(live, command, exit.code !== 0)),
      async () => endedWithSandbox(this.#cancelled.has(command.id) ? "cancelled" : "lost", Date.now() - Date.parse(command.startedAt)),
    );
    this.#ends.set(command.id, end);
    const kept = Promise.all([end, begun.catch(() => undefined)]).then(([how]) => this.#records.surely(command, how));
    void kept.finally(() => {
      this.#ends.delete(command.id);
      this.#cancelled.delete(command.id);
      live.activeAt = performance.now();
    });
    return end;
  }

  /** Before the store is closed. */
  close(): Promise<void> {
    return this.#records.close();
  }

  async #circumstances(live: LiveSandbox, command: Command, failed: boolean): Promise<Circumstances> {
    const cancelled = this.#cancelled.has(command.id);
    if (!failed) return { ...NOTHING_SEEN, cancelled };
    const before = live.counters;
    const use = await live.walls.usage();
    live.counters = { outOfMemory: use.outOfMemory, tooManyProcesses: use.tooManyProcesses };
    const storageDamaged = this.#damage.since(live.driver) > 0;
    if (storageDamaged) this.#damage.mark(command.sandbox, `command ${command.id}`);
    return {
      outOfMemory: use.outOfMemory > before.outOfMemory,
      tooManyProcesses: use.tooManyProcesses > before.tooManyProcesses,
      diskFull: await this.#isDiskFull(command.sandbox),
      storageDamaged,
      cancelled,
    };
  }

  /** Whether the storage refuses to write. A quota that is only watched refuses nothing, and would cost a walk to ask for. */
  async #isDiskFull(sandbox: string): Promise<boolean> {
    try {
      const row = await this.#parts.store.sandboxes.get(sandbox);
      const storage = row === undefined ? undefined : this.#parts.backends.of(row).storage;
      if (row === undefined || storage?.capabilities.quota !== "hard") return false;
      return (await storage.disks.usage(row.id)) + DISK_MARGIN_BYTES >= row.limits.diskBytes;
    } catch (error) {
      // The sandbox may be on its way out: the end of the command still has to be reported.
      this.#parts.log.info("disk use of a sandbox not known", { sandbox, error: errorText(error) });
      return false;
    }
  }

  async #settleFromLog(row: SandboxRow, live: LiveSandbox, command: Command): Promise<void> {
    const { exit } = await this.#log(row, command.id);
    const wallMs = Date.now() - Date.parse(command.startedAt);
    const end =
      exit === null ? endedWithSandbox("lost", wallMs) : commandEnd(exit, await this.#circumstances(live, command, exit.code !== 0));
    await this.#records.ended(command, end);
  }

  #stream(command: Command, running: RunningCommand, end: Promise<CommandEnd>, onDisconnect: "kill" | "keep"): CommandStream {
    return {
      command,
      output: running.output,
      end,
      write: (data) => running.write(data),
      endInput: () => running.endInput(),
      resize: (rows, cols) => running.resize(rows, cols),
      handOver: (take) => running.handOver?.(take) ?? false,
      handBack: () => running.handBack?.(),
      signal: (name) => {
        const number = signalNumber(name);
        if (number === undefined) throw new VivError("invalid_input", `There is no signal ${name}.`);
        running.signal(number);
      },
      close: () => {
        if (onDisconnect === "kill" && this.#ends.has(command.id)) {
          this.#cancelled.add(command.id);
          running.signal(9);
        }
        // The server has to learn of the end, and a command whose output has no reader would wait for ever.
        void drain(running.output, end, this.#parts.log);
      },
    };
  }

  /** A command that has ended, as a stream: what is in its log, then its end. */
  async #ended(row: SandboxRow, command: Command): Promise<CommandStream> {
    const log = await this.#log(row, command.id);
    const now = (await this.#parts.store.commands.get(command.id)) ?? command;
    const end = now.end ?? endedWithSandbox("lost", 0);
    const nothing = (): void => undefined;
    return {
      command: { ...now, running: false, end },
      output: replay(log),
      end: Promise.resolve(end),
      write: async () => undefined,
      endInput: nothing,
      resize: nothing,
      signal: nothing,
      close: nothing,
    };
  }
}

/** Gives the slot back if the command did not start. */
async function orLeave<Begun extends RunningCommand | undefined>(beginning: Promise<Begun>, leave: () => void): Promise<Begun> {
  let begun: Begun | undefined;
  try {
    begun = await beginning;
    return begun;
  } finally {
    if (begun === undefined) leave();
  }
}

async function* replay(log: CommandLog): AsyncGenerator<OutputChunk> {
  if (log.offset > 0) yield { stream: "gap", bytes: log.offset };
  yield* log.chunks;
}

/** The part of a log before a byte of the output. */
function upTo(log: CommandLog, end: number): CommandLog {
  const chunks: OutputChunk[] = [];
  let at = log.offset;
  for (const chunk of log.chunks) {
    if (at >= end) break;
    const size = chunk.stream === "gap" ? chunk.bytes : chunk.data.length;
    chunks.push(chunk.stream === "gap" ? chunk : { stream: chunk.stream, data: chunk.data.subarray(0, end - at) });
    at += size;
  }
  return { ...log, chunks };
}

async function drain(output: AsyncIterable<OutputChunk>, end: Promise<CommandEnd>, log: Parts["log"]): Promise<void> {
  try {
    for await (const chunk of output) void chunk;
    await end;
  } catch (error) {
    log.info("stopped listening to a command", { error: errorText(error) });
  }
}
