/**
 * The resident helper `cell host`, whichever process it is now. When its process ends, the server starts another one, and asks again
 * those requests that are safe to ask twice; other requests fail. Sandboxes go on meanwhile. After too many ends the server gives up.
 */
import { closeSync, openSync } from "node:fs";
import { VivError } from "../schema/errors.ts";
import { LIMITS } from "../schema/limits.ts";
import type { FieldList, Fields } from "./frames.ts";
import { type CellEvent, Helper, HelperLost } from "./helper.ts";

export interface CellHostOptions {
  /** The cell program. */
  readonly program: string;
  /** Called for every EVENT frame, such as `exited`. */
  readonly onEvent?: CellEvent;
  /** Called when another process of the helper has taken over, before anything else is asked of it. */
  readonly onRestart?: (reason: Error, host: CellHost) => void;
  /** Called once when the helper was given up. */
  readonly onLost?: (reason: Error) => void;
}

/** These requests only read, or have the same result however often they are asked. Of any other it is not known what the ended process did. */
const ASKED_AGAIN: ReadonlySet<string> = new Set([
  "adopt",
  "btrfs.identity",
  "btrfs.qgroup",
  "btrfs.quota",
  "btrfs.sync",
  "btrfs.usage",
  "compare",
  "drain",
  "kill",
  "machine.changed",
  "machine.watch",
  "measure",
  "remove",
  "unwatch",
  "watch",
]);

export class CellHost {
  readonly #options: CellHostOptions;
  /** The program as it was at the start: what lies at its path later may be another version, or another program. */
  readonly #binary: number | undefined;
  /** When it was started again, in monotonic time. */
  #restarts: number[] = [];
  #helper: Helper;
  #isLost = false;
  #closing = false;

  constructor(options: CellHostOptions) {
    this.#options = options;
    this.#binary = openProgram(options.program);
    this.#helper = this.#start(options.program);
  }

  get pid(): number | undefined {
    return this.#helper.pid;
  }

  async request(operation: string, fields: FieldList = []): Promise<Fields> {
    const asked = this.#helper;
    try {
      return await asked.request(operation, fields);
    } catch (error) {
      if (!(error instanceof HelperLost)) throw error;
      if (asked === this.#helper || !ASKED_AGAIN.has(operation)) throw this.#explain(error);
      return this.request(operation, fields);
    }
  }

  /** Ends the helper and waits for its end. Launches and removals under way go on without it. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#helper.close();
    if (this.#binary !== undefined) closeSync(this.#binary);
  }

  #start(file: string): Helper {
    const { program, onEvent } = this.#options;
    return new Helper({ file, name: program, onEvent, onLost: (reason) => this.#replace(reason) });
  }

  #replace(reason: HelperLost): void {
    const now = performance.now();
    this.#restarts = [...this.#restarts.filter((at) => now - at < LIMITS.helperRestartsMs), now];
    if (this.#binary === undefined || this.#restarts.length > LIMITS.helperRestarts) {
      this.#isLost = true;
      this.#options.onLost?.(reason);
      return;
    }
    this.#helper = this.#start(`/proc/${process.pid}/fd/${this.#binary}`);
    this.#options.onRestart?.(reason, this);
  }

  #explain(reason: HelperLost): VivError {
    const message = `The native helper ${reason.message} while it worked on this.`;
    if (this.#closing) return new VivError("cell_failed", message, { cause: reason, remedy: "Try again: the server was about to end." });
    if (this.#isLost) return new VivError("cell_failed", message, { cause: reason });
    return new VivError("cell_failed", message, { cause: reason, remedy: "Try again: it was started anew, and sandboxes go on." });
  }
}

/** The start of a program reports that the program is missing. */
function openProgram(program: string): number | undefined {
  try {
    return openSync(program, "r");
  } catch {
    return undefined;
  }
}
