/** Sandboxes of an experiment: forks of one frozen reality, found again by their labels, removed in the background. */
import { setTimeout as rest } from "node:timers/promises";
import { errorText } from "../../base/host/log.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { LaunchAhead } from "../../sandbox/start/launches-ahead.ts";
import { isFinal } from "../../sandbox/shared/state.ts";
import type { SandboxRow } from "../../base/store/rows.ts";

type ClonesParts = Pick<Parts, "store" | "log">;

/** How often to look for room that was not there. */
const ROOM_MS = 500;
/** Attempts tend to end together: those that are still at work, and who waits for them, have the machine first. */
const CLEAN_UP_MS = 200;

export const EXPERIMENT_LABEL = "experiment";
export const ROLE_LABEL = "role";

export class Clones {
  readonly #parts: ClonesParts;
  readonly #sandboxes: Sandboxes;
  readonly #cleanUps = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(parts: ClonesParts, sandboxes: Sandboxes) {
    this.#parts = parts;
    this.#sandboxes = sandboxes;
  }

  labels(experiment: string, role: string): Record<string, string> {
    return { [EXPERIMENT_LABEL]: experiment, [ROLE_LABEL]: role };
  }

  /** A fork that waits for room where there is none; `onWait` hears why. */
  async fork(
    from: string,
    snapshot: string,
    labels: Readonly<Record<string, string>>,
    signal: AbortSignal,
    { onWait, ahead }: { readonly onWait?: (reason: string) => void; readonly ahead?: LaunchAhead | undefined } = {},
  ): Promise<SandboxRow> {
    try {
      return await this.patiently(() => this.#sandboxes.branch(from, snapshot, labels, { ahead }), signal, onWait);
    } finally {
      ahead?.drop();
    }
  }

  /** Launches what the next fork of a sandbox needs without its files. Where that fails, the fork itself says why. */
  async ahead(sandbox: string): Promise<LaunchAhead | undefined> {
    try {
      return await this.#sandboxes.branchAhead(sandbox);
    } catch (error) {
      this.#parts.log.info("a fork could not be launched ahead", { sandbox, error: errorText(error) });
      return undefined;
    }
  }

  async patiently<T>(make: () => Promise<T>, signal: AbortSignal, onWait?: (reason: string) => void): Promise<T> {
    for (;;) {
      if (signal.aborted) throw new VivError("cancelled", "It was cancelled while it waited for room.");
      try {
        return await make();
      } catch (error) {
        if (!(error instanceof VivError) || error.code !== "no_capacity") throw error;
        onWait?.(`It waits for room: ${error.message}`);
      }
      await rest(ROOM_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Every sandbox of an experiment there is. */
  async of(experiment: string): Promise<SandboxRow[]> {
    const rows = await this.#parts.store.sandboxes.list();
    return rows.filter((row) => !row.removing && row.labels[EXPERIMENT_LABEL] === experiment);
  }

  /** Removes it in the background. One that is gone already is fine; where removing fails, `viv prune` does it later. */
  discard(id: string): void {
    this.#soon(
      () => this.remove(id),
      (error) => this.#parts.log.warn("a sandbox of an experiment was not removed", { sandbox: id, error: errorText(error) }),
    );
  }

  async remove(id: string): Promise<void> {
    try {
      await this.#sandboxes.remove(id);
    } catch (error) {
      if (!(error instanceof VivError) || error.code !== "not_found") throw error;
    }
  }

  /** From now on it ends like any other idle sandbox. */
  async release(id: string, idleMs: number): Promise<void> {
    try {
      await this.#sandboxes.extend(id, undefined, idleMs);
    } catch (error) {
      if (!(error instanceof VivError)) throw error;
      this.#parts.log.info("a sandbox of an experiment has ended by itself", { sandbox: id, error: error.message });
    }
  }

  /** Ends its processes in the background, if it has any; its snapshots stay. */
  rest(id: string): void {
    this.#soon(
      async () => {
        if (!isFinal((await this.#sandboxes.find(id)).state)) await this.#sandboxes.stop(id, { outcome: "done", reason: null });
      },
      (error) => this.#parts.log.info("a sandbox of an experiment was not stopped", { sandbox: id, error: errorText(error) }),
    );
  }

  #soon(work: () => Promise<unknown>, onFailure: (error: unknown) => void): void {
    const cleanUp = rest(CLEAN_UP_MS, undefined, { signal: this.#closing.signal })
      .catch(() => undefined)
      .then(work)
      .then(() => undefined, onFailure)
      .finally(() => this.#cleanUps.delete(cleanUp));
    this.#cleanUps.add(cleanUp);
  }

  /** Does at once what was put off, and waits for it. */
  async close(): Promise<void> {
    this.#closing.abort();
    while (this.#cleanUps.size > 0) await Promise.all(this.#cleanUps);
  }
}
