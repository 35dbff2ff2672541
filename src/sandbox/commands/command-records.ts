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
/** How long a record waits for others that are written along with it: a transaction costs more than what is in it. */
const TOGETHER_MS = 10;
const MOST_TOGETHER = 100;
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
  /** The next attempt to write what waits; its timer goes off at once if a reader hurries it. */
  #attempt: { readonly hurry: () => void; readonly over: Promise<void> } | undefined;
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
    // What went wrong is known at once, also after a kill of the server.
    if (end !== null && end.cause !== "exit") this.#attempt?.hurry();
    return done.promise;
  }

  /** Resolves when what was told before is written, or could not be written now. For readers of the store. */
  async settled(): Promise<void> {
    this.#attempt?.hurry();
    await this.#attempt?.over;
  }

  /** Writes an end down, or says why that can't be done. */
  async ended(command: Command, end: CommandEnd): Promise<void> {
    await this.#parts.store.change((change) => record(change, command, end));
    await this.#boundLogs(command.sandbox, Math.min(end.outputBytes, LIMITS.commandLogBytes));
  }

  /** Records that can't be written by now are given up: a command's log has its end, too. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#attempt?.hurry();
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const { promise: over, resolve } = Promise.withResolvers<void>();
      const { promise: begin, resolve: hurry } = Promise.withResolvers<void>();
      this.#attempt = { hurry, over };
      const timer = setTimeout(hurry, TOGETHER_MS);
      await begin;
      clearTimeout(timer);
      const isPut = await this.#writeTogether();
      this.#attempt = undefined;
      resolve();
      if (!isPut) await wait(LIMITS.recordAgainMs, undefined, { ref: false, signal: this.#closing.signal }).catch(() => undefined);
    }
  }

  /** Writes what waits in one transaction, or the first of it alone where that fails. False: the database can't be written now. */
  async #writeTogether(): Promise<boolean> {
    const all = this.#waiting.slice(0, MOST_TOGETHER);
    for (const batch of [all, all.slice(0, 1)]) {
      try {
        await this.#parts.store.change(async (change) => {
          for (const { command, end } of batch) await record(change, command, end);
        });
        this.#waiting.splice(0, batch.length);
        for (const { command, end, done } of batch)
          done.resolve(end === null ? undefined : this.#boundLogs(command.sandbox, Math.min(end.outputBytes, LIMITS.commandLogBytes)));
        return true;
      } catch (error) {
        if (isPassing(error) && !this.#closing.signal.aborted) return false;
        if (batch.length === 1) this.#waiting.shift()?.done.reject(error);
      }
    }
    return true;
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
