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

export class CommandRecords {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Writes down that a command runs, unless it ends in a moment. Resolves to whether it did. */
  async begun(command: Command, ended: Promise<unknown>): Promise<boolean> {
    const timer = new AbortController();
    const over = ended.then(
      () => true,
      () => true,
    );
    const late = wait(SHORT_MS, false, { signal: timer.signal }).catch(() => false);
    const short = await Promise.race([over, late]);
    timer.abort();
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
      if (!begun) await recordStart(change, command);
      await change.putCommand({ ...command, running: false, end });
      await change.event("command.ended", command.sandbox, { id: command.id, cause: end.cause, exitCode: end.exitCode });
    });
    await this.#boundLogs(command.sandbox, Math.min(end.outputBytes, LIMITS.commandLogBytes));
  }

  /** Logs lie outside the sandbox's quota, so all of them together have a bound of their own. */
  async #boundLogs(sandbox: string, writtenBytes: number): Promise<void> {
    const live = this.#parts.live.get(sandbox);
    if (live === undefined || writtenBytes === 0) return;
    live.logBytes += writtenBytes;
    if (live.logBytes <= LIMITS.sandboxLogBytes) return;
    const running = new Set((await this.#parts.store.commands(sandbox, true)).map(({ id }) => id));
    live.logBytes = await live.driver.trimLogs(sandbox, running, LIMITS.sandboxLogBytes);
  }
}

async function recordStart(change: Change, command: Command): Promise<void> {
  await change.putCommand(command);
  await change.event("command.started", command.sandbox, { id: command.id, command: command.command });
}
