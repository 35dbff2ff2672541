/** Decides which attempts run now: attempts of all experiments share the machine (TASK-1). Waiting attempts are in the experiments' rows. */
import { VivError } from "../../base/schema/errors.ts";

export interface QueuedWork {
  /** Larger goes first. */
  readonly priority: number;
  /** Among equals, smaller goes first. */
  readonly order: string;
  /** Turns of one group are bounded together. */
  readonly group: string;
  readonly groupMost: number;
  /** How many may run beyond the most that otherwise do, with this one. */
  readonly beyond?: number;
}

interface WaitingWork extends QueuedWork {
  readonly grant: () => void;
}

export class Queue {
  readonly most: number;
  #running = 0;
  readonly #groups = new Map<string, number>();
  #waiting: WaitingWork[] = [];

  constructor(most: number) {
    this.most = most;
  }

  /** Waits for a turn; call the result when it is over. */
  async take(turn: QueuedWork, signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) throw new VivError("cancelled", "It was cancelled while it waited.");
    await new Promise<void>((resolve, reject) => {
      const leave = (): void => {
        this.#waiting = this.#waiting.filter((other) => other !== waiting);
        reject(new VivError("cancelled", "It was cancelled while it waited."));
      };
      const waiting: WaitingWork = {
        ...turn,
        grant: () => {
          signal.removeEventListener("abort", leave);
          resolve();
        },
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.push(waiting);
      this.#waiting.sort(byTurn);
      this.#grant();
    });
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#count(turn.group, -1);
      this.#grant();
    };
  }

  #grant(): void {
    for (const waiting of this.#waiting) {
      if (this.#running >= this.most + (waiting.beyond ?? 0)) continue;
      if ((this.#groups.get(waiting.group) ?? 0) >= waiting.groupMost) continue;
      this.#waiting = this.#waiting.filter((other) => other !== waiting);
      this.#count(waiting.group, 1);
      waiting.grant();
    }
  }

  #count(group: string, by: 1 | -1): void {
    this.#running += by;
    const now = (this.#groups.get(group) ?? 0) + by;
    if (now === 0) this.#groups.delete(group);
    else this.#groups.set(group, now);
  }
}

function byTurn(one: QueuedWork, other: QueuedWork): number {
  if (one.priority !== other.priority) return other.priority - one.priority;
  return one.order < other.order ? -1 : one.order > other.order ? 1 : 0;
}

/** Sleeping and waiting for disks leaves room for more than one attempt a core; memory does not. */
export function parallelByMachine(cores: number, totalMemoryBytes: number): number {
  const byMemory = Math.floor(totalMemoryBytes / (256 * 1024 ** 2));
  return Math.max(2, Math.min(Math.max(8, 4 * cores), byMemory));
}
