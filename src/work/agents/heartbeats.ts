/** Whether agents live: process 1 of their sandbox is asked, which knows whether the agent runs, however busy or silent that is. */
import { errorText, type Logger } from "../../base/host/log.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { Live } from "../../sandbox/shared/live.ts";
import type { AgentProcess } from "./agent-process.ts";
import type { RunJournal } from "./run-journal.ts";

/** What is asked of a run. */
interface WatchedRun {
  readonly journal: RunJournal;
  readonly sandbox: SandboxRow;
  readonly agent: Pick<AgentProcess, "stop"> | undefined;
  isPaused(): Promise<boolean>;
}

export class Heartbeats {
  readonly #live: Live;
  readonly #log: Logger;
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(live: Live, log: Logger) {
    this.#live = live;
    this.#log = log;
  }

  watch(work: WatchedRun): { close: () => void } {
    const { journal } = work;
    let heardAt = performance.now();
    let isAsking = false;
    const look = async (): Promise<void> => {
      if (isAsking) return;
      isAsking = true;
      try {
        // A frozen one can't answer, and is not to be ended for that.
        if (!(await work.isPaused())) await this.#live.require(work.sandbox).walls.greet();
        heardAt = performance.now();
      } catch (error) {
        this.#log.info("a sandbox with an agent does not answer", { run: journal.row.id, error: errorText(error) });
      } finally {
        isAsking = false;
      }
    };
    const timer = setInterval(() => {
      const silentMs = performance.now() - heardAt;
      const health = silentMs > LIMITS.degradedMs ? "degraded" : "ok";
      if (health !== journal.row.health) journal.change({ health });
      if (silentMs > LIMITS.unheardMs) work.agent?.stop("lost", `Its sandbox has not answered for ${Math.round(silentMs / 1000)} seconds.`);
      void look();
    }, LIMITS.heartbeatMs);
    timer.unref();
    this.#timers.add(timer);
    return {
      close: () => {
        clearInterval(timer);
        this.#timers.delete(timer);
      },
    };
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers.clear();
  }
}
