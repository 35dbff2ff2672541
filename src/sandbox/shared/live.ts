/** The sandboxes that have processes now, and when each was last at work. Everything here can be found again. */
import type { Driver, Usage, Walls } from "../../machine/drivers/drivers.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { Uses } from "./uses.ts";

export interface LiveSandbox {
  readonly walls: Walls;
  readonly driver: Driver;
  /** Monotonic time of the last work. */
  activeAt: number;
  /** Earliest monotonic time of its end, when extended. */
  keepUntil: number;
  /** CPU time at the last look of the idle watch. */
  cpuMs: number;
  /** Counters at the last look, to tell what a command ran into. */
  counters: Pick<Usage, "outOfMemory" | "tooManyProcesses">;
  /** Bytes of logs written since they were last bounded. */
  logBytes: number;
  /** Value of DISPLAY inside while it has a desktop. */
  display: string | null;
  /** What keeps it from being idle, besides its work. */
  readonly uses: Uses;
  /** What is under way now, each within its bound. */
  readonly concurrency: { readonly commands: ConcurrencyLimit; readonly listeners: ConcurrencyLimit; readonly watches: ConcurrencyLimit };
}

const refuse = (what: string, remedy: string) => (most: number) =>
  new VivError("no_capacity", `${most} ${what} in this sandbox already, which is the most.`, { remedy });

export class Live {
  readonly #sandboxes = new Map<string, LiveSandbox>();

  /** `before` is what it was until a moment ago: promises to the sandbox and uses of it outlive its processes. */
  add(id: string, walls: Walls, driver: Driver, before?: LiveSandbox): LiveSandbox {
    const live: LiveSandbox = {
      walls,
      driver,
      activeAt: performance.now(),
      keepUntil: before?.keepUntil ?? 0,
      cpuMs: 0,
      // As much as may be there from an earlier server.
      logBytes: LIMITS.sandboxLogBytes,
      counters: { outOfMemory: 0, tooManyProcesses: 0 },
      display: null,
      uses: before?.uses ?? new Uses(() => this.touch(id)),
      concurrency: {
        commands: new ConcurrencyLimit(
          LIMITS.maxRunningCommands,
          refuse("commands run", "Wait for one to end, or end one with `viv kill`."),
        ),
        listeners: new ConcurrencyLimit(
          LIMITS.maxAttachedListeners,
          refuse("callers are attached to commands", "Let one of them go first."),
        ),
        watches: new ConcurrencyLimit(
          LIMITS.maxFileWatches,
          refuse("watches of files are open", "Close one first; one watch can cover a whole folder."),
        ),
      },
    };
    this.#sandboxes.set(id, live);
    return live;
  }

  get(id: string): LiveSandbox | undefined {
    return this.#sandboxes.get(id);
  }

  /** Of a sandbox that must have processes. */
  require({ id, name }: { readonly id: string; readonly name: string }): LiveSandbox {
    const live = this.#sandboxes.get(id);
    if (live === undefined) throw new VivError("not_running", `Sandbox ${name} has no processes.`);
    return live;
  }

  /** Notes that a caller works with the sandbox. */
  touch(id: string): void {
    const live = this.#sandboxes.get(id);
    if (live !== undefined) live.activeAt = performance.now();
  }

  remove(id: string): void {
    this.#sandboxes.delete(id);
  }

  entries(): [string, LiveSandbox][] {
    return [...this.#sandboxes];
  }

  get size(): number {
    return this.#sandboxes.size;
  }
}
