/** Sandboxes that are there for one caller alone, and go when that caller does, however it ended. */
import { errorText } from "../../base/host/log.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Parts } from "../shared/parts.ts";
import type { CommandStream } from "../commands/stream.ts";

interface Hold {
  /** Commands whose caller is connected. */
  commands: number;
  timer: NodeJS.Timeout | undefined;
}

export class CallerSandboxes {
  readonly #log: Parts["log"];
  readonly #remove: (id: string) => Promise<void>;
  readonly #holds = new Map<string, Hold>();

  /** `remove` is called with the id of a sandbox whose caller has gone. */
  constructor(log: Parts["log"], remove: (id: string) => Promise<void>) {
    this.#log = log;
    this.#remove = remove;
  }

  /** Of a sandbox that was just made: its caller has some time to run something in it. */
  expect(id: string): void {
    const hold: Hold = { commands: 0, timer: undefined };
    this.#holds.set(id, hold);
    this.#wait(id, hold, LIMITS.expectedCallerMs);
  }

  /** The caller is there as long as its command is; a command ends with its caller's connection. */
  during(id: string, stream: CommandStream): CommandStream {
    const hold = this.#holds.get(id);
    if (hold === undefined) return stream;
    clearTimeout(hold.timer);
    hold.commands += 1;
    const leave = (): void => {
      hold.commands -= 1;
      if (hold.commands === 0) this.#wait(id, hold, LIMITS.goneCallerMs);
    };
    stream.end.then(leave, leave);
    return stream;
  }

  #wait(id: string, hold: Hold, ms: number): void {
    hold.timer = setTimeout(() => void this.#end(id, hold), ms).unref();
  }

  async #end(id: string, hold: Hold): Promise<void> {
    try {
      await this.#remove(id);
      this.#holds.delete(id);
      this.#log.info("a sandbox went with its caller", { sandbox: id });
    } catch (error) {
      // The caller removed it.
      if (error instanceof VivError && error.code === "not_found") return void this.#holds.delete(id);
      this.#log.warn("a sandbox whose caller has gone was not removed", { sandbox: id, error: errorText(error) });
      this.#wait(id, hold, LIMITS.expectedCallerMs);
    }
  }

  /** What is still held, the next server removes. */
  close(): void {
    for (const { timer } of this.#holds.values()) clearTimeout(timer);
    this.#holds.clear();
  }
}
