/** A clock that a test moves. */
import type { Clock } from "../../src/work/automation/clock.ts";

/** A clock that is moved by hand; its timers ring when they are due by its own count of elapsed time. */
export class HandClock implements Clock {
  #now: number;
  #elapsed = 0;
  readonly #timers = new Set<{ due: number; call: () => void }>();

  constructor(start: string) {
    this.#now = Date.parse(start);
  }

  now(): number {
    return this.#now;
  }

  after(ms: number, call: () => void): () => void {
    const timer = { due: this.#elapsed + ms, call };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Sets the time of day; no time passes. */
  set(by: number): void {
    this.#now += by;
  }

  async pass(ms: number, step = 30_000): Promise<void> {
    for (let left = ms; left > 0; left -= step) {
      this.#now += Math.min(step, left);
      this.#elapsed += Math.min(step, left);
      for (const timer of Array.from(this.#timers)) {
        if (timer.due > this.#elapsed) continue;
        this.#timers.delete(timer);
        timer.call();
      }
      for (let turn = 0; turn < 8; turn += 1) await Promise.resolve();
    }
  }
}
