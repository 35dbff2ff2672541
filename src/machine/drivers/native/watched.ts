/** Limits where no cgroup holds them: rlimits bound processes, a look every second bounds memory. */
import { processesBelow, type ProcessUse } from "../../../base/host/processes.ts";
import type { Limits } from "../../../base/schema/sandbox.ts";
import type { Usage } from "../drivers.ts";

const LOOK_EVERY_MS = 1_000;
/** The command that was refused has ended, and so may have a few others by the time one looks. */
const CROWD_MARGIN = 4;

export class WatchedLimits {
  readonly #pid: number;
  #limits: Limits;
  #kills = 0;
  #crowded = 0;
  readonly #timer: NodeJS.Timeout;

  constructor(pid: number, limits: Limits) {
    this.#pid = pid;
    this.#limits = limits;
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS);
    this.#timer.unref();
  }

  set limits(limits: Limits) {
    this.#limits = limits;
  }

  usage(): Usage {
    const processes = processesBelow(this.#pid);
    const threads = sum(processes, (each) => each.threads);
    // The rlimit refuses without a count; a full house is what is left to see.
    if (threads + CROWD_MARGIN >= this.#limits.processes) this.#crowded += 1;
    return {
      memoryBytes: sum(processes, (each) => each.memoryBytes),
      cpuMs: sum(processes, (each) => each.cpuMs),
      processes: threads,
      outOfMemory: this.#kills,
      tooManyProcesses: this.#crowded,
    };
  }

  /** Ends the largest process, as the kernel would. */
  #look(): void {
    const processes = processesBelow(this.#pid);
    if (sum(processes, (each) => each.memoryBytes) <= this.#limits.memoryBytes) return;
    const [largest] = processes.toSorted((left, right) => right.memoryBytes - left.memoryBytes);
    if (largest === undefined) return;
    try {
      process.kill(largest.pid, "SIGKILL");
      this.#kills += 1;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

function sum(processes: readonly ProcessUse[], value: (each: ProcessUse) => number): number {
  return processes.reduce((total, each) => total + value(each), 0);
}
