/** What was used of the machine, noted once a minute and kept in memory for a day: pages show it from before they were opened. */
import type { MachineSample, ServerStatus } from "../../base/schema/server.ts";

interface HistoryOptions {
  /** When the first sample is taken: what the server is started for comes before it. */
  readonly firstMs: number;
  readonly everyMs: number;
  /** Samples that are kept; the oldest goes first. */
  readonly most: number;
  /** Hears of a look that failed; the next one is taken all the same. */
  readonly onFailed: (error: unknown) => void;
}

type Looked = Pick<ServerStatus, "memory" | "disk" | "load" | "sandboxes">;

export class MachineHistory {
  readonly #look: () => Promise<Looked>;
  readonly #options: HistoryOptions;
  readonly #samples: MachineSample[] = [];
  readonly #first: NodeJS.Timeout;
  readonly #timer: NodeJS.Timeout;

  constructor(look: () => Promise<Looked>, options: HistoryOptions) {
    this.#look = look;
    this.#options = options;
    this.#timer = setInterval(() => void this.#take(), options.everyMs).unref();
    this.#first = setTimeout(() => void this.#take(), options.firstMs).unref();
  }

  async #take(): Promise<void> {
    try {
      const { memory, disk, load, sandboxes } = await this.#look();
      this.#samples.push({
        at: new Date().toISOString(),
        memoryBytes: memory.totalBytes - memory.freeBytes,
        diskBytes: disk.totalBytes - disk.freeBytes,
        load: load.lastMinute,
        sandboxes: sandboxes["running"] ?? 0,
      });
      if (this.#samples.length > this.#options.most) this.#samples.shift();
    } catch (error) {
      this.#options.onFailed(error);
    }
  }

  /** The oldest first. */
  samples(): MachineSample[] {
    return [...this.#samples];
  }

  close(): void {
    clearTimeout(this.#first);
    clearInterval(this.#timer);
  }
}
