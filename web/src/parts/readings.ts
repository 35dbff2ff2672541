/** Values over time, as plots show them. */

export interface Reading {
  /** Milliseconds, as Date.now() counts them. */
  readonly at: number;
  readonly value: number;
}

/** Values that are kept: ten minutes of one every two seconds. */
const KEPT = 300;
/** Events may bring answers much sooner; two values that lie so close say nothing more. */
const APART_MS = 1_000;

export function withReading(before: readonly Reading[], reading: Reading): readonly Reading[] {
  const last = before.at(-1);
  return last !== undefined && reading.at - last.at < APART_MS ? before : [...before, reading].slice(-KEPT);
}

/** How fast a counter of milliseconds grew between two readings: of processor time, the processors that were busy. */
export function ratesOf(readings: readonly Reading[]): readonly Reading[] {
  return readings.slice(1).map(({ at, value }, index) => {
    const before = readings[index] ?? { at, value };
    // A sandbox that was started anew counts from zero.
    return { at, value: at <= before.at ? 0 : Math.max(0, value - before.value) / (at - before.at) };
  });
}
