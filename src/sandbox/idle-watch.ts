/**
 * Ends sandboxes that are idle (BOX-8), and those that outgrow a quota that only we watch. One is idle when it neither works
 * nor is in use: `WORK_SHARE` is what counts as work, `uses.ts` holds the uses.
 */
import { errorText } from "../base/host/log.ts";
import type { SandboxRow } from "../base/store/rows.ts";
import type { LiveSandbox } from "./shared/live.ts";
import type { Parts } from "./shared/parts.ts";
import type { Sandboxes } from "./sandboxes.ts";

type IdleWatchParts = Pick<Parts, "store" | "backends" | "log" | "locks" | "live">;

/** How often to look; more often while a sandbox has a short idle limit. */
const USUAL_MS = 5_000;
const SHORTEST_MS = 1_000;

/** A sandbox is at work while it uses more than this share of one CPU; what is below is noise. */
const WORK_SHARE = 0.02;

export class IdleWatch {
  readonly #parts: IdleWatchParts;
  readonly #sandboxes: Sandboxes;
  #lookedAt = performance.now();
  #shortestIdle = Number.POSITIVE_INFINITY;

  constructor(parts: IdleWatchParts, sandboxes: Sandboxes) {
    this.#parts = parts;
    this.#sandboxes = sandboxes;
  }

  /** Milliseconds until the next look is due. */
  get restMs(): number {
    return Math.min(USUAL_MS, Math.max(SHORTEST_MS, this.#shortestIdle / 2));
  }

  /** One round; the server calls it every few seconds. */
  async look(): Promise<void> {
    const now = performance.now();
    const interval = Math.max(now - this.#lookedAt, 1);
    this.#lookedAt = now;
    this.#shortestIdle = Number.POSITIVE_INFINITY;
    for (const [id, live] of this.#parts.live.entries()) {
      try {
        const row = await this.#parts.store.sandboxes.get(id);
        if (row !== undefined) await this.#lookAt(row, live, interval);
      } catch (error) {
        this.#parts.log.warn("the idle watch could not look at a sandbox", { sandbox: id, error: errorText(error) });
      }
    }
  }

  async #lookAt(row: SandboxRow, live: LiveSandbox, interval: number): Promise<void> {
    if (row.idleMs > 0) this.#shortestIdle = Math.min(this.#shortestIdle, row.idleMs);
    if (!(await live.walls.isAlive())) return this.#sandboxes.exited(row.id);
    const cpuMs = (await live.walls.cpuMs()) ?? 0;
    const worked = cpuMs - live.cpuMs > interval * WORK_SHARE;
    live.cpuMs = cpuMs;
    if (worked || live.uses.any) live.activeAt = performance.now();
    if (this.#parts.backends.of(row).storage.capabilities.quota === "watched") await this.#watchDisk(row);
    const endsAt = Math.max(live.activeAt + row.idleMs, live.keepUntil);
    if (row.idleMs === 0 || performance.now() < endsAt || this.#parts.locks.busy(row.id)) return;
    await this.#sandboxes.stop(row.id, { outcome: "timeout", reason: `Nothing happened for ${inWords(row.idleMs)}.` });
  }

  async #watchDisk(row: SandboxRow): Promise<void> {
    const used = await this.#parts.backends.of(row).storage.disks.usage(row.id);
    if (used <= row.limits.diskBytes) return;
    await this.#parts.locks.run(row.id, async () => {
      const now = await this.#parts.store.sandboxes.get(row.id);
      if (now === undefined) return;
      await this.#parts.store.change((change) =>
        change.event("disk.watched", row.id, { usedBytes: used, limitBytes: row.limits.diskBytes }),
      );
      await this.#sandboxes.sandboxEnd.fail(now, {
        outcome: "failed",
        reason: "disk full: it used more than its disk quota and was stopped.",
      });
    });
  }
}

function inWords(ms: number): string {
  if (ms < 1_000) return `${ms} milliseconds`;
  return ms < 120_000 ? `${Math.round(ms / 1_000)} seconds` : `${Math.round(ms / 60_000)} minutes`;
}
