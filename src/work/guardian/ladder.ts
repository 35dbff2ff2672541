/** Which steps are taken, in which order, and how long each gets to show an effect. */
import { GUARDIAN_STEPS } from "../../base/schema/choices.ts";
import type { Concern } from "./finding.ts";
import type { GuardianMode } from "./settings.ts";
import { THRESHOLDS } from "./thresholds.ts";

export type GuardianStep = (typeof GUARDIAN_STEPS)[number];

export interface Rung {
  readonly step: GuardianStep;
  /** No further step before this is over. */
  readonly graceMs: number;
}

const minute = 60_000;

/** The steps of each in the order of GUARDIAN_STEPS; what would make no sense for a concern is left out. */
export const LADDERS: Readonly<Record<Concern, readonly Rung[]>> = {
  stuck: [
    { step: "message", graceMs: 2 * minute },
    { step: "ask", graceMs: 5 * minute },
    { step: "pause", graceMs: 15 * minute },
    { step: "rollback", graceMs: 5 * minute },
    { step: "restart", graceMs: 5 * minute },
    { step: "stop", graceMs: 5 * minute },
  ],
  // Whether it is the task is for a person to say: nothing is undone for it.
  drift: [
    { step: "message", graceMs: 5 * minute },
    { step: "ask", graceMs: 10 * minute },
    { step: "pause", graceMs: 15 * minute },
  ],
  damage: [
    { step: "ask", graceMs: 5 * minute },
    { step: "pause", graceMs: 15 * minute },
    { step: "rollback", graceMs: 5 * minute },
    { step: "stop", graceMs: 5 * minute },
  ],
  // It can do much harm in little time.
  flood: [
    { step: "message", graceMs: 20_000 },
    { step: "ask", graceMs: 20_000 },
    { step: "pause", graceMs: 15 * minute },
    { step: "stop", graceMs: 5 * minute },
  ],
  near_limit: [{ step: "message", graceMs: 5 * minute }],
  low_space: [
    { step: "message", graceMs: 5 * minute },
    { step: "ask", graceMs: 10 * minute },
  ],
  limit_reached: [{ step: "stop", graceMs: 1 * minute }],
};

const GENTLE: readonly GuardianStep[] = ["message", "ask"];
/** Steps that end a process or take work away: they need a snapshot first. */
export const ENDING: readonly GuardianStep[] = ["rollback", "restart", "stop"];

/** The rungs that may be taken in this mode, by a finding as sure as this. */
export function rungsOf(concern: Concern, mode: GuardianMode, confidence: number): readonly Rung[] {
  if (mode === "off" || confidence < THRESHOLDS.actedOn) return [];
  const isGentle = mode === "warn" || confidence < THRESHOLDS.trusted;
  return LADDERS[concern].filter(({ step }) => !isGentle || GENTLE.includes(step));
}

/** GRD-3: when the next restart may be, or null if there were as many within the hour as there may be. The engine asks too, before it restarts an agent that died. */
export function nextRestartAt(restarts: readonly number[], now: number, patience = 1): number | null {
  const lately = lateRestarts(restarts, now);
  if (lately.length >= THRESHOLDS.restartsPerHour) return null;
  const last = lately.at(-1);
  return last === undefined ? now : Math.max(now, last + patience * THRESHOLDS.restartCoolDownMs);
}

/** Those of the last hour. */
export function lateRestarts(restarts: readonly number[], now: number): readonly number[] {
  return restarts.filter((time) => now - time < 60 * minute);
}
