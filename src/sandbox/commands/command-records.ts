/** What the store keeps of commands, and how much of their output the disk does. */
import { setTimeout as wait } from "node:timers/promises";
import { errorText } from "../../base/host/log.ts";
import type { Command, CommandEnd } from "../../base/schema/command.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Change } from "../../base/store/store.ts";
import type { Parts } from "../shared/parts.ts";

/** A command that ends sooner gets one record instead of two. */
const SHORT_MS = 20;
/** What the log of a silent command takes on the disk. */
const SMALLEST_LOG_BYTES = 4096;

/** A start (without an end) or an end that is to be written down. */
interface QueuedRecord {
  readonly command: Command;
  readonly end: CommandEnd | null;
  readonly done: PromiseWithResolvers<void>;
}

export class CommandRecords {
  readonly #parts: Pick<Parts, "store" | "live" | "log">;
  /** In the order in which they happened. */
  readonly #waiting: QueuedRecord[] = [];
  #writing: Promise<void> | undefined;
  readonly #closing = new AbortController();

  constructor(parts: Pick<Parts, "store" | "live" | "log">) {
    this.#parts = parts;
  }

  /** Writes down that a command runs, unless it ends in a moment. */
  async begun(command: Command, ended: Promise<unknown>): Promise<void> {
    if (!(await isShort(ended))) await this.#parts.store.change((change) => record(change, command, null));
  }

  /**
   * Writes a start or an end down, now or as soon as the database can be written; what was told earlier is written earlier.
   * Resolves when it is written, or given up.
   */
  async surely(command: Command, end: CommandEnd | null): Promise<void> {
    try {
      await this.#inOrder(command, end);
    } catch (error) {
      const what = end === null ? "start of command not recorded" : "end of command not recorded";
      this.#parts.log.warn(what, { command: command.id, error: errorText(error) });
    }
  }

  #inOrder(command: Command, end: CommandEnd | null): Promise<void> {
    if (this.#waiting.length >= LIMITS.waitingCommandRecords)
      throw new VivError("store_busy", "Too many records of commands wait already.");
    const done = Promise.withResolvers<void>();
    this.#waiting.push({ command, end, done });
    this.#writing ??= this.#writeAll().finally(() => (this.#writing = undefined));
    return done.promise;
  }

  /** Writes an end down, or says why that can't be done. */
  async ended(command: Command, end: CommandEnd): Promise<void> {
    await this.#parts.store.change((change) => record(change, command, end));
    await this.#boundLogs(command.sandbox, Math.min(end.outputBytes, LIMITS.commandLogBytes));
  }

  /** Records that can't be written by now are given up: a command's log has its end, too. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      const { command, end, done } = first;
      try {
        await this.#parts.store.change((change) => record(change, command, end));
        done.resolve(end === null ? undefined : this.#boundLogs(command.sandbox, Math.min(end.outputBytes, LIMITS.commandLogBytes)));
      } catch (error) {
        if (isPassing(error) && !this.#closing.signal.aborted) {
          await wait(LIMITS.recordAgainMs, undefined, { ref: false, signal: this.#closing.signal }).catch(() => undefined);
          continue;
        }
        done.reject(error);
      }
      this.#waiting.shift();
    }
  }

  /** Logs lie outside the sandbox's quota, so all of them together have a bound of their own. */
  async #boundLogs(sandbox: string, writtenBytes: number): Promise<void> {
    const live = this.#parts.live.get(sandbox);
    if (live === undefined) return;
    live.logBytes += Math.max(writtenBytes, SMALLEST_LOG_BYTES);
    if (live.logBytes <= LIMITS.sandboxLogBytes) return;
    const running = new Set((await this.#parts.store.commands.list({ sandbox, running: true })).map(({ id }) => id));
    // Some room is made, so that not every command from then on has all logs looked through.
    live.logBytes = await live.driver.logs.trim(sandbox, running, LIMITS.sandboxLogBytes * 0.75);
  }
}

/** Whether something ends within a moment, in whatever way. */
function isShort(ended: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, SHORT_MS, false);
    const over = (): void => {
      clearTimeout(timer);
      resolve(true);
    };
    ended.then(over, over);
  });
}

/** A full disk gets room again, and what holds the database lets go of it. */
function isPassing(error: unknown): boolean {
  return error instanceof VivError && (error.code === "disk_full" || error.code === "store_busy");
}

async function record(change: Change, command: Command, end: CommandEnd | null): Promise<void> {
  const known = await change.commands.get(command.id);
  // Told once, by the first caller, and not of a sandbox that is gone with all its commands.
  if (known?.running === false || (await change.sandboxes.get(command.sandbox)) === undefined) return;
  await change.commands.put({ ...command, running: end === null, end });
  if (known === undefined) await change.event("command.started", command.sandbox, { id: command.id, command: command.command });
  if (end !== null) await change.event("command.ended", command.sandbox, { id: command.id, cause: end.cause, exitCode: end.exitCode });
}
