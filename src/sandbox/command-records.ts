/** What the store keeps of commands, and how much of their output the disk does. */
import { setTimeout as wait } from "node:timers/promises";
import type { Command, CommandEnd } from "../schema/command.ts";
import { VivError } from "../schema/errors.ts";
import { LIMITS } from "../schema/limits.ts";
import type { Change } from "../store/store.ts";
import type { Parts } from "./parts.ts";

/** A command that ends sooner gets one record instead of two. */
const SHORT_MS = 20;
const RECORD_AGAIN_MS = 1_000;
/** What the log of a silent command takes on the disk. */
const SMALLEST_LOG_BYTES = 4096;

export class CommandRecords {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Writes down that a command runs, unless it ends in a moment. Resolves to whether it did. */
  async begun(command: Command, ended: Promise<unknown>): Promise<boolean> {
    const short = await isShort(ended);
    if (!short) await this.#parts.store.change((change) => recordStart(change, command));
    return !short;
  }

  /** An end that a full disk kept out of the database is written when there is room again. */
  async endedSurely(command: Command, end: CommandEnd, begun: boolean): Promise<void> {
    for (;;) {
      try {
        return await this.ended(command, end, begun);
      } catch (error) {
        if (!(error instanceof VivError) || error.code !== "disk_full") throw error;
        await wait(RECORD_AGAIN_MS, undefined, { ref: false });
      }
    }
  }

  async ended(command: Command, end: CommandEnd, begun: boolean): Promise<void> {
    await this.#parts.store.change(async (change) => {
      // Told once, by whoever comes first, and not of a sandbox that is gone with all its commands.
      const told = (await change.command(command.id))?.running === false;
      if (told || (await change.sandbox(command.sandbox)) === undefined) return;
      if (!begun) await tellStart(change, command);
      await change.putCommand({ ...command, running: false, end });
      await change.event("command.ended", command.sandbox, { id: command.id, cause: end.cause, exitCode: end.exitCode });
    });
    await this.#boundLogs(command.sandbox, Math.min(end.outputBytes, LIMITS.commandLogBytes));
  }

  /** Logs lie outside the sandbox's quota, so all of them together have a bound of their own. */
  async #boundLogs(sandbox: string, writtenBytes: number): Promise<void> {
    const live = this.#parts.live.get(sandbox);
    if (live === undefined) return;
    live.logBytes += Math.max(writtenBytes, SMALLEST_LOG_BYTES);
    if (live.logBytes <= LIMITS.sandboxLogBytes) return;
    const running = new Set((await this.#parts.store.commands(sandbox, true)).map(({ id }) => id));
    // Some room is made, so that not every command from then on has all logs looked through.
    live.logBytes = await live.driver.trimLogs(sandbox, running, LIMITS.sandboxLogBytes * 0.75);
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

async function recordStart(change: Change, command: Command): Promise<void> {
  await change.putCommand(command);
  await tellStart(change, command);
}

function tellStart(change: Change, command: Command): Promise<void> {
  return change.event("command.started", command.sandbox, { id: command.id, command: command.command });
}
