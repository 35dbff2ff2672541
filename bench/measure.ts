/** Samples, and how they are taken: in alternating pairs, so that noise of the machine hits both sides alike. */
import { setTimeout as delay } from "node:timers/promises";
import type { Measured, Series } from "./rows.ts";

/** Takes one sample in milliseconds; what must not be timed happens inside it, outside the clock. */
export type Sample = () => Promise<number>;

const LEAST_PAIRS = 30;
const QUICK_PAIRS = 5;
const WARM_UP_PAIRS = 3;
/** Before every sample: what the server does after an answer must not slow down the other side. */
const QUIET_MS = 40;

/** At least 30 pairs; cheap rows take more. */
export function pairCount(quick: boolean, pairs = LEAST_PAIRS): number {
  return quick ? QUICK_PAIRS : Math.max(pairs, LEAST_PAIRS);
}

/** Takes a sample when the machine has come to rest after the one before. */
export async function rested(sample: Sample, quietMs = QUIET_MS): Promise<number> {
  if (quietMs > 0) await delay(quietMs);
  return sample();
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

export async function inBatches<Item>(items: readonly Item[], atOnce: number, work: (item: Item) => Promise<unknown>): Promise<void> {
  for (let index = 0; index < items.length; index += atOnce) await Promise.all(items.slice(index, index + atOnce).map(work));
}

export function series(samples: readonly number[], unit = "ms"): Series {
  const sorted = samples.toSorted((a, b) => a - b);
  return {
    unit,
    count: samples.length,
    min: round(sorted[0] ?? Number.NaN),
    median: round(median(sorted)),
    p95: round(sorted[Math.ceil(sorted.length * 0.95) - 1] ?? Number.NaN),
    samples: samples.map(round),
  };
}

export function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}

/** A small ratio keeps two digits that say something: rounded like others, it could pass a limit that it misses. */
function significant(ratio: number): number {
  return ratio < 0.1 ? Number(ratio.toPrecision(2)) : round(ratio);
}

function median(sorted: readonly number[]): number {
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

export interface Pair {
  readonly pairs: number;
  readonly warmUp?: number;
  /** Pause before each sample; 0 where neither side leaves work behind. */
  readonly quietMs?: number;
  /** Milliseconds that processors have worked for the server so far; it works for the side in question alone. */
  readonly worked?: () => number;
  /** The side in question and the one it is compared with, by the names they get in the raw values. */
  readonly sides: readonly [readonly [string, Sample], readonly [string, Sample]];
}

/** The ratio of the medians of both sides. Every second pair goes the other way round, so that neither is always first. */
export async function compare({ pairs, warmUp = WARM_UP_PAIRS, quietMs = QUIET_MS, worked, sides }: Pair): Promise<Measured> {
  const [[ownName, own], [otherName, other]] = sides;
  const ownSamples: number[] = [];
  const otherSamples: number[] = [];
  let before = 0;
  for (let index = -warmUp; index < pairs; index += 1) {
    if (index === 0) before = worked?.() ?? 0;
    const ownFirst = index % 2 === 0;
    const first = ownFirst ? undefined : await rested(other, quietMs);
    const mine = await rested(own, quietMs);
    const theirs = first ?? (await rested(other, quietMs));
    if (index < 0) continue;
    ownSamples.push(mine);
    otherSamples.push(theirs);
  }
  const raw = { [ownName]: series(ownSamples), [otherName]: series(otherSamples) };
  const figure = significant((raw[ownName]?.median ?? Number.NaN) / (raw[otherName]?.median ?? Number.NaN));
  return { figure, raw, ...(worked === undefined ? {} : { more: { server_cpu_ms: round((worked() - before) / pairs) } }) };
}
