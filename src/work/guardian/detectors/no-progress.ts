/** Many steps, and neither files nor checks are further than before. Reading what was not read before is progress too, for long. */
import type { Detector } from "../finding.ts";
import { THRESHOLDS } from "../thresholds.ts";

export const noProgress: Detector = (picture, { readOnly }) => {
  const { progress, steps, sequence, startedAt } = picture;
  const at = steps.at(-1)?.at;
  if (at === undefined) return undefined;
  const said = { concern: "stuck", since: progress.at, at } as const;
  if (progress.stale >= THRESHOLDS.staleSteps) {
    return {
      ...said,
      confidence: 0.8,
      key: `no_progress since ${progress.sequence}`,
      evidence: `In ${progress.steps} steps (events ${progress.sequence + 1} to ${sequence}) the clone came to no new state and no check got better, and ${progress.stale} more of them gave only what had been seen before than gave something new.`,
    };
  }
  if (progress.stepsSinceFileChange >= THRESHOLDS.stepsWithoutChange && !readOnly) {
    return {
      ...said,
      since: Math.max(progress.fileChangeAt, startedAt),
      confidence: 0.5,
      key: `no_progress without change ${progress.fileChangeAt}`,
      evidence: `No file changed in ${progress.stepsSinceFileChange} steps (up to event ${sequence}).`,
    };
  }
  if (progress.checksSince >= THRESHOLDS.checksWithoutGain && (progress.fewestFailed ?? 0) > 0) {
    return {
      ...said,
      confidence: 0.6,
      key: `no_progress of checks at ${progress.fewestFailed}`,
      evidence: `The checks were run ${progress.checksSince} times, and never fewer than ${progress.fewestFailed} failed (up to event ${sequence}).`,
    };
  }
  return undefined;
};

/** Money that goes while nothing new is reached. */
export const spending: Detector = ({ progress, seen, now, sequence, turnOpen }) => {
  const dollars = (seen.cost ?? 0) - progress.cost;
  const share = (seen.use?.budget ?? 0) - progress.budget;
  const isMuch = seen.use?.budget === undefined ? dollars >= THRESHOLDS.spentDollars : share >= THRESHOLDS.spentShare;
  if (!isMuch || !turnOpen || progress.steps < THRESHOLDS.spendingSteps) return undefined;
  const part = seen.use?.budget === undefined ? "" : ` (${Math.round(share * 100)} % of the budget)`;
  return {
    concern: "stuck",
    confidence: 0.6,
    evidence: `$${dollars.toFixed(2)}${part} went in ${progress.steps} steps (events ${progress.sequence + 1} to ${sequence}) in which the clone came to no new state and no check got better.`,
    key: `spending since ${progress.sequence}`,
    since: progress.at,
    at: now,
  };
};
