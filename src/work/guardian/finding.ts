/** What a detector says, and of which agent. */
import type { GUARDIAN_DETECTORS } from "../../base/schema/choices.ts";
import type { Picture } from "./picture.ts";
import type { GuardianSettings } from "./settings.ts";

export type DetectorName = (typeof GUARDIAN_DETECTORS)[number];

/** What is at stake. It says which steps are taken, see `LADDERS`. */
export type Concern = "stuck" | "drift" | "damage" | "flood" | "near_limit" | "low_space" | "limit_reached";

export interface Sighting {
  readonly detector: DetectorName;
  readonly concern: Concern;
  /** From 0 to 1. */
  readonly confidence: number;
  /** One paragraph, with the sequence numbers of the events it rests on. */
  readonly evidence: string;
  /** The same for the same matter, so that it is told once. */
  readonly key: string;
  /** When the first and the newest of the evidence happened, in milliseconds of the epoch. */
  readonly since: number;
  readonly at: number;
}

/** An agent: one that was restarted is another one, and a finding about the one before must not reach it. */
export interface Target {
  readonly run: string;
  /** How often the run was restarted before. */
  readonly incarnation: number;
}

export interface Finding extends Sighting {
  readonly target: Target;
}

/** Pure: the same picture gives the same answer. */
export type Detector = (picture: Picture, settings: GuardianSettings) => Omit<Sighting, "detector"> | undefined;
