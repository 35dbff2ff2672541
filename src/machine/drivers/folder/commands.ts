/** Commands of an unwalled sandbox: process groups in the copy, with the server's own rights. */
import { rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { type ProcessGroup, signalGroup, startGroup, startOf } from "../../../base/host/process-group.ts";
import { TOOL_PATH } from "../../../base/host/run.ts";
import { VivError } from "../../../base/schema/errors.ts";
import { LIMITS } from "../../../base/schema/limits.ts";
import type { CommandOperations, ExecRequest, RunningCommand } from "../drivers.ts";
import { FolderCommand } from "./command.ts";
import { CommandLogWriter } from "./log.ts";
import { requireOwnUser } from "./own-user.ts";
import { type CopyPaths, fileError } from "./paths.ts";

/** Ends the name of the file that says which group a running command has. */
export const RUNNING = ".running";
const SIGTERM = 15;
const SIGKILL = 9;
const LOOK_MS = 10;
/** How long the end of killed processes is waited for: where no process reaps orphans, they stay as zombies for ever. */
const KILLED_WITHIN_MS = 5_000;

interface FolderCommandsOptions {
  /** The copy, without links in its path. */
  readonly root: string;
  readonly paths: CopyPaths;
  /** Where logs lie, and one file for every command that runs. */
  readonly records: string;
}

export class FolderCommands implements CommandOperations {
  readonly #options: FolderCommandsOptions;
  readonly #commands = new Map<string, FolderCommand>();
  /** Groups that may still have processes; a command's background children outlive it. */
  readonly #groups = new Set<number>();
  #stopped = false;

  constructor(options: FolderCommandsOptions) {
    this.#options = options;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  async exec(request: ExecRequest): Promise<RunningCommand> {
    requireOwnUser(request.user);
    if (request.terminal !== undefined) {
      throw new VivError("unsupported", "An unwalled sandbox has no terminals.", {
        remedy: "Run single commands with `viv exec`; `viv doctor` says what would give walls, and with them terminals.",
      });
    }
    const log = new CommandLogWriter(this.#options.records, request.id, LIMITS.commandLogBytes);
    const group = await this.#start(request).catch((error: unknown) => {
      log.discard();
      throw error;
    });
    this.#groups.add(group.id);
    if (this.#stopped) signalGroup(group.id, SIGKILL);
    const command = new FolderCommand(group, log, request.timeoutMs);
    this.#commands.set(request.id, command);
    const running = command.listen(true);
    await this.#record(request.id, command);
    return running;
  }

  /** Leaves a trace of the group for as long as it has processes, so that a later server can end it. */
  async #record(id: string, command: FolderCommand): Promise<void> {
    const file = join(this.#options.records, `${id}${RUNNING}`);
    const { group } = command;
    void command.exit.then(() => {
      this.#commands.delete(id);
      if (signalGroup(group, 0)) return;
      this.#groups.delete(group);
      rmSync(file, { force: true });
    });
    const start = await startOf(group);
    writeFileSync(file, JSON.stringify({ group, start: start ?? null }), { mode: 0o600 });
    if (!this.#groups.has(group)) rmSync(file, { force: true });
  }

  async #start(request: ExecRequest): Promise<ProcessGroup> {
    if (this.#stopped) throw new VivError("not_running", "The sandbox has been stopped.");
    const cwd = await this.#folder(request.cwd);
    const mapped = Object.entries(request.env).map(
      ([name, value]) =>
        [
          name,
          value
            .split(":")
            .map((part) => this.#options.paths.mapped(part))
            .join(":"),
        ] as const,
    );
    const env = { PATH: TOOL_PATH, ...Object.fromEntries(mapped), PWD: cwd, VIV_PROJECT: this.#options.root };
    try {
      return await startGroup({ command: request.command, cwd, env, stdin: request.stdin });
    } catch (error) {
      throw startError(error, request.command[0] ?? "");
    }
  }

  /** Folders of the project are those of the copy; others are reality's, since there is no wall. */
  async #folder(path: string): Promise<string> {
    try {
      const place = this.#options.paths.holds(path) ? await this.#options.paths.resolve(path, { follow: true }) : path;
      if (!statSync(place).isDirectory()) throw new VivError("invalid_input", `${path}: not a folder`);
      return place;
    } catch (error) {
      throw fileError(error, path);
    }
  }

  async attach(command: string): Promise<RunningCommand | undefined> {
    return this.#commands.get(command)?.listen(false);
  }

  /** Reaches what stayed in its command's process group: a process that made a session of its own is not found again. */
  async stop(graceMs: number): Promise<void> {
    this.#stopped = true;
    const ends = [...this.#commands.values()].map((command) => command.exit);
    if (graceMs > 0 && this.#signalAll(SIGTERM)) await this.#gone(graceMs);
    if (this.#signalAll(SIGKILL)) await this.#gone(KILLED_WITHIN_MS);
    // A command without a reader would wait with its last output.
    for (const command of this.#commands.values()) command.abandon();
    await Promise.all(ends);
    this.#groups.clear();
  }

  /** Whether there was anything to signal. */
  #signalAll(signal: number): boolean {
    for (const id of this.#groups) if (!signalGroup(id, signal)) this.#groups.delete(id);
    return this.#groups.size > 0;
  }

  async #gone(withinMs: number): Promise<void> {
    const deadline = performance.now() + withinMs;
    while (this.#signalAll(0) && performance.now() < deadline) await wait(LOOK_MS);
  }
}

function startError(error: unknown, program: string): VivError {
  const { code, message } = error as NodeJS.ErrnoException;
  const kind =
    code === "ENOENT"
      ? "command_not_found"
      : code === "E2BIG" || code === "ERR_INVALID_ARG_VALUE"
        ? "invalid_input"
        : "command_not_runnable";
  return new VivError(kind, `${program}: ${code === "ENOENT" ? "there is no such program" : message}`, { cause: error });
}
