/** The same error again and again, by whatever calls. Words such as "error" in the output of a call that succeeded mean nothing. */
import type { Detector } from "../finding.ts";
import { quoted } from "../likeness.ts";
import type { Step } from "../step.ts";
import { THRESHOLDS } from "../thresholds.ts";

export const sameError: Detector = ({ steps }) => {
  const newest = steps.findLast(({ ok }) => !ok);
  const error = newest?.error;
  if (newest === undefined || error == null) return undefined;
  const same = lastFailures(steps, error.key);
  const isPolling = same.some(({ outside }) => outside);
  const isUnchanged = unbroken(steps, same) >= THRESHOLDS.sameErrors;
  const tooMany = isPolling ? isLong(same, newest) : isUnchanged || same.length >= THRESHOLDS.sameErrorsInSpite;
  if (!tooMany) return undefined;
  return {
    concern: "stuck",
    confidence: isPolling ? 0.6 : isUnchanged ? 0.85 : 0.65,
    evidence: `The same error came ${same.length} times (events ${listed(same.map(({ sequences }) => sequences[1]))})${isUnchanged ? ", and nothing changed in between" : " in spite of what was done in between"}: ${quoted(error.text, 160)}.`,
    key: `same_error ${error.key}`,
    since: same[0]?.at ?? newest.at,
    at: newest.at,
  };
};

function isLong(same: readonly Step[], newest: Step): boolean {
  return same.length >= THRESHOLDS.pollsFailing && newest.at - (same[0]?.at ?? newest.at) >= THRESHOLDS.failingPollMs;
}

/** How many of the newest failures follow each other with the clone as it was and without anything new that was done or learnt. */
function unbroken(steps: readonly Step[], same: readonly Step[]): number {
  const newest = same.at(-1);
  if (newest === undefined) return 0;
  const broken = steps.findLastIndex(
    (step, index) => step.clone !== newest.clone || (step.ok && index < steps.indexOf(newest) && isNew(steps, index)),
  );
  return same.filter((step) => steps.indexOf(step) > broken).length;
}

function isNew(steps: readonly Step[], index: number): boolean {
  return steps.findIndex(({ callKey }) => callKey === steps[index]?.callKey) === index;
}

/** The failures with this error since another one came, or since a call that had failed with it succeeded. */
function lastFailures(steps: readonly Step[], error: string): readonly Step[] {
  const failing = new Set(steps.filter((step) => step.error?.key === error).map(({ callKey }) => callKey));
  const end = steps.findLastIndex((step) => (step.ok ? failing.has(step.callKey) : step.error?.key !== error));
  return steps.slice(end + 1).filter(({ ok }) => !ok);
}

function listed(sequences: readonly number[]): string {
  return sequences.length <= 8 ? sequences.join(", ") : `${sequences.slice(0, 3).join(", ")}, ..., ${sequences.slice(-3).join(", ")}`;
}
