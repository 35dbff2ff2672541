/** The same calls with the same results while the clone is as it was: what is done has no effect, and doing it again will have none. */
import type { Detector } from "../finding.ts";
import { quoted } from "../likeness.ts";
import type { Step } from "../step.ts";
import { THRESHOLDS } from "../thresholds.ts";

type Same = (one: Step, other: Step) => boolean;

const isSame: Same = (one, other) => one.callKey === other.callKey && one.resultKey === other.resultKey && one.clone === other.clone;
const isAlike: Same = (one, other) => one.callKey === other.callKey && one.alikeKey === other.alikeKey && one.clone === other.clone;

/** The newest steps that go round: each is the same as the one `period` before it. */
function runOf(steps: readonly Step[], period: number, same: Same): readonly Step[] {
  let from = steps.length - period;
  while (from > 0 && same(at(steps, from - 1), at(steps, from - 1 + period))) from -= 1;
  return steps.slice(Math.max(0, from));
}

function at(steps: readonly Step[], index: number): Step {
  const step = steps[index];
  if (step === undefined) throw new RangeError(`there is no step ${index}`);
  return step;
}

export const repeat: Detector = ({ steps }) => {
  const newest = steps.at(-1);
  if (newest === undefined) return undefined;
  const [same, alike] = [runOf(steps, 1, isSame), runOf(steps, 1, isAlike)];
  const needed = newest.ok ? THRESHOLDS.repeatsGood : THRESHOLDS.repeatsFailing;
  const isPolling = alike.some(({ outside }) => outside);
  if (isPolling ? !isLongPolling(same, newest.ok) : same.length < needed && alike.length < THRESHOLDS.repeatsAlike) return undefined;
  const run = same.length >= needed ? same : alike;
  return {
    concern: "stuck",
    confidence: isPolling ? 0.6 : newest.ok ? sureness(same.length, run === same) : 0.9,
    evidence: `${quoted(newest.title)} gave the same ${newest.ok ? "result" : "failure"} ${run.length} times (events ${span(run)}), and the clone did not change in between.`,
    // Not the clone: an agent that comes after a rollback or a restart, and is stuck in the same, is the same matter.
    key: `repeat ${newest.callKey} ${newest.resultKey}`,
    since: run[0]?.at ?? newest.at,
    at: newest.at,
  };
};

/** What succeeds again and again does no harm, and may have a reason: a program that works by chance. */
function sureness(times: number, isSameResult: boolean): number {
  return times >= THRESHOLDS.repeatsForSure ? 0.8 : isSameResult ? 0.7 : 0.6;
}

/** Whether calls that look outside have gone on so long that what they wait for seems not to come. */
function isLongPolling(run: readonly Step[], ok: boolean): boolean {
  const [times, ms] = ok ? [THRESHOLDS.pollsGood, THRESHOLDS.pollingMs] : [THRESHOLDS.pollsFailing, THRESHOLDS.failingPollMs];
  return run.length >= times && (run.at(-1)?.at ?? 0) - (run[0]?.at ?? 0) >= ms;
}

export const alternation: Detector = (picture) => circle(picture.steps) ?? flipping(picture);

/** A, B, A, B, or longer circles. Steps that are all the same call are no circle: a flaky test gives now this, now that. */
function circle(steps: readonly Step[]): ReturnType<Detector> {
  for (let period = 2; period <= THRESHOLDS.longestCycle; period += 1) {
    const run = runOf(steps, period, isSame);
    const one = steps.slice(-period);
    const newest = one.at(-1);
    if (newest === undefined || run.length < period * THRESHOLDS.cycles) continue;
    const calls = new Set(one.map(({ callKey }) => callKey));
    if (calls.size === 1 || one.some(({ outside }) => outside)) continue;
    const titles = [...new Set(one.map(({ title }) => quoted(title, 60)))].join(", then ");
    return {
      concern: "stuck",
      confidence: 0.9,
      evidence: `${titles}: ${Math.floor(run.length / period)} rounds with the same results (events ${span(run)}), and after each round the clone is as it was before.`,
      key: `alternation ${[...calls].sort().join(" ")}`,
      since: run[0]?.at ?? newest.at,
      at: newest.at,
    };
  }
  return undefined;
}

/** Edits that are taken back and made again, in whatever words. */
function flipping({ states }: Parameters<Detector>[0]): ReturnType<Detector> {
  const flips = states.changes.slice(-THRESHOLDS.flips);
  const [first] = flips;
  const newest = flips.at(-1);
  const between = new Set(flips.map(({ state }) => state));
  if (first === undefined || newest === undefined || flips.length < THRESHOLDS.flips || between.size > 2) return undefined;
  return {
    concern: "stuck",
    confidence: 0.85,
    evidence: `The clone went back and forth between the same two states ${flips.length} times (events ${first.sequence} to ${newest.sequence}): edits are made and taken back.`,
    key: `alternation of ${[...between].sort().join(" ")}`,
    since: first.at,
    at: newest.at,
  };
}

function span(run: readonly Step[]): string {
  return `${run[0]?.sequences[0] ?? "?"} to ${run.at(-1)?.sequences[1] ?? "?"}`;
}
