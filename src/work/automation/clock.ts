/** The time of day, which may be set, and timers that notice when it was. */
import { LIMITS } from "../../base/schema/limits.ts";

export interface Clock {
  /** Milliseconds since 1970, as the machine says. */
  now(): number;
  /** Calls back once after so many milliseconds; returns what cancels it. */
  after(ms: number, call: () => void): () => void;
}

export const machineClock: Clock = {
  now: () => Date.now(),
  after: (ms, call) => {
    const timer = setTimeout(call, ms).unref();
    return () => clearTimeout(timer);
  },
};

/** Calls back at a time of day. It looks at the clock again and again: a timer alone would not notice that the clock was set. */
export class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Takes the place of the time before; null for none. */
  set(at: number | null): void {
    this.#cancel?.();
    this.#cancel = undefined;
    if (at === null) return;
    const left = Math.max(0, at - this.#clock.now());
    this.#cancel = this.#clock.after(Math.min(left, LIMITS.clockLookMs), this.#ring);
  }

  close(): void {
    this.set(null);
  }
}
