/** A command in a process group of the host, logged while it runs and heard by any number of listeners. */
import type { Readable } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import { chunkMaxBytes } from "../../../base/host/frames.ts";
import { type GroupExit, type ProcessGroup, signalGroup } from "../../../base/host/process-group.ts";
import { LIMITS } from "../../../base/schema/limits.ts";
import type { RawExit, RunningCommand } from "../drivers.ts";
import { Listener } from "./listener.ts";
import type { CommandLogWriter } from "./log.ts";

const SIGTERM = 15;
const SIGKILL = 9;
/** How long a background child that holds the output open keeps a command from having ended. */
const LINGER_MS = 200;

export class FolderCommand {
  readonly #group: ProcessGroup;
  readonly #log: CommandLogWriter;
  readonly #listeners = new Set<Listener>();
  readonly #began = performance.now();
  readonly #closed: Promise<unknown>;
  readonly exit: Promise<RawExit>;
  #timedOut = false;
  #timer: NodeJS.Timeout | undefined;
  #relieve: (() => void) | undefined;

  constructor(group: ProcessGroup, log: CommandLogWriter, timeoutMs: number | undefined) {
    this.#group = group;
    this.#log = log;
    group.stdin?.on("error", () => undefined); // A command that has ended does not read the rest of its input.
    this.#closed = Promise.all([this.#follow("stdout", group.stdout), this.#follow("stderr", group.stderr)]);
    if (timeoutMs !== undefined) this.#timer = setTimeout(() => this.#timeOut(), timeoutMs);
    this.exit = group.exited.then((exit) => this.#finish(exit));
    // What a background child writes after the end still goes to the log.
    void Promise.all([this.exit, this.#closed]).then(() => log.close());
  }

  get group(): number {
    return this.#group.id;
  }

  /** The one who started it holds the command while not reading; others miss output instead. */
  listen(holds: boolean): RunningCommand {
    const listener = new Listener(this.#log.total, holds, () => this.#flow());
    this.#listeners.add(listener);
    return {
      pid: this.#group.id,
      offset: listener.offset,
      output: listener.chunks(),
      exit: this.exit,
      write: (data) => this.#write(data),
      endInput: () => void this.#group.stdin?.end(),
      resize: () => undefined,
      signal: (signal) => void this.signal(signal),
      detach: () => {
        this.#listeners.delete(listener);
        listener.leave();
      },
    };
  }

  /** To the whole group; false when it is gone. */
  signal(signal: number): boolean {
    return signalGroup(this.#group.id, signal);
  }

  /** The output does not wait for listeners any more: a slow listener misses some of it. */
  abandon(): void {
    for (const listener of this.#listeners) listener.release();
  }

  #follow(name: "stdout" | "stderr", stream: Readable): Promise<void> {
    stream.on("data", (data: Buffer) => {
      for (let at = 0; at < data.length; at += chunkMaxBytes) {
        const part = data.subarray(at, at + chunkMaxBytes);
        this.#log.output(name, part);
        for (const listener of this.#listeners) listener.hear({ stream: name, data: part });
      }
      this.#flow();
    });
    return new Promise((resolve) => {
      stream.once("error", () => stream.destroy());
      stream.once("close", resolve);
    });
  }

  get #held(): boolean {
    return [...this.#listeners].some((listener) => listener.full);
  }

  /** Stops reading while a listener is full: the pipe fills, and the command waits. */
  #flow(): void {
    const held = this.#held;
    for (const stream of [this.#group.stdout, this.#group.stderr]) {
      if (held) stream.pause();
      else if (stream.isPaused()) stream.resume();
    }
    if (!held) this.#relieve?.();
  }

  async #write(data: Uint8Array): Promise<void> {
    const { stdin } = this.#group;
    if (stdin === null || !stdin.writable || stdin.write(data)) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        stdin.off("drain", done).off("close", done);
        resolve();
      };
      stdin.on("drain", done).on("close", done);
    });
  }

  #timeOut(): void {
    this.#timedOut = true;
    this.signal(SIGTERM);
    this.#timer = setTimeout(() => this.signal(SIGKILL), LIMITS.stopGraceMs);
  }

  async #finish({ code, signal }: GroupExit): Promise<RawExit> {
    const wallMs = performance.now() - this.#began;
    await this.#drained();
    // The first process may have ended at the polite signal while others of its group did not.
    if (this.#timedOut) this.signal(SIGKILL);
    clearTimeout(this.#timer);
    const exit: RawExit = {
      code,
      signal,
      timedOut: this.#timedOut,
      outputBytes: this.#log.total,
      droppedBytes: this.#log.dropped,
      cpuMs: 0,
      wallMs,
    };
    this.#log.exit(exit);
    this.#group.stdin?.destroy();
    for (const listener of this.#listeners) listener.end();
    this.#listeners.clear();
    return exit;
  }

  /** Until the pipes are empty; a background child that holds them open is not waited for, a slow listener is. */
  async #drained(): Promise<void> {
    for (;;) {
      const closed = await Promise.race([this.#closed.then(() => true), wait(LINGER_MS, false, { ref: false })]);
      if (closed || !this.#held) return;
      await new Promise<void>((resolve) => (this.#relieve = resolve));
      this.#relieve = undefined;
    }
  }
}
