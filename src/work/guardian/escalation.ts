/**
 * From findings to steps: a pure state machine. One matter gets one step at a time. The next comes only when its grace is over and the
 * finding shows itself again after that; progress lets the matter rest. What it knows is plain JSON, kept by the engine, so that the next
 * server goes on where this one was.
 */
import { GUARDIAN_STEPS } from "../../base/schema/choices.ts";
import type { Concern, Sighting } from "./finding.ts";
import { LADDERS, nextRestartAt, rungsOf, type GuardianStep, type Rung } from "./ladder.ts";
import type { GuardianMode } from "./settings.ts";
import { THRESHOLDS } from "./thresholds.ts";

export interface Matter {
  readonly concern: Concern;
  /** The last step that was taken, and when. */
  readonly step: GuardianStep;
  readonly steppedAt: number;
  /** Findings it is about. */
  readonly keys: readonly string[];
  /** When its first evidence happened; a roll back goes to before that. */
  readonly since: number;
  readonly seenAt: number;
  /** The newest evidence. */
  readonly sighting: Sighting;
  /** Steps that could not be taken. */
  readonly impossible: readonly GuardianStep[];
  /** There was progress: only the same finding, with new evidence, takes it up again where it was. Another one begins anew. */
  readonly resting: boolean;
}

export interface EscalationState {
  readonly matters: Readonly<Record<string, Matter>>;
  /** Findings that a person said to leave. */
  readonly left: readonly string[];
  /** When agents of this run were restarted. */
  readonly restarts: readonly number[];
}

export const CALM: EscalationState = { matters: {}, left: [], restarts: [] };

/** What is to be done now. */
export interface Intervention {
  readonly matter: string;
  readonly step: GuardianStep;
  readonly sighting: Sighting;
  readonly since: number;
}

export interface Moment {
  readonly now: number;
  readonly mode: GuardianMode;
  readonly sightings: readonly Sighting[];
  /** When something new was last reached. */
  readonly progressAt: number;
  readonly paused: boolean;
  /** Factor of every time that a step gets. */
  readonly patience: number;
}

/** Concerns that progress disproves: an agent that gets on is not stuck, but it can still do damage. */
const DISPROVED: readonly Concern[] = ["stuck", "flood"];
/** Findings that are remembered of one matter, and those that a person said to leave. */
const KEPT_KEYS = 32;
const KEPT_LEFT = 256;

export function escalate(before: EscalationState, given: Moment): { state: EscalationState; interventions: Intervention[] } {
  const moment = { ...given, sightings: given.sightings.filter((sighting) => isTimely(sighting, before, given)) };
  const state = awake(afterPause(rested(before, moment), moment), moment);
  const names = new Set([...Object.keys(state.matters), ...moment.sightings.map(matterOf)]);
  const interventions = [...names].flatMap((matter) => nextOf(matter, state, moment) ?? []);
  // After the end of the run nothing else matters.
  const stop = interventions.find(({ step }) => step === "stop");
  const chosen = stop === undefined ? interventions : [stop];
  return { state: chosen.reduce((next, one) => taken(next, one, moment), noted(state, moment)), interventions: chosen };
}

/** A step that the engine could not take: the next one is due. */
export function couldNot(state: EscalationState, matter: string, step: GuardianStep): EscalationState {
  const one = state.matters[matter];
  if (one === undefined) return state;
  return withMatter(state, matter, { ...one, impossible: [...one.impossible, step] });
}

/** A person wants it left as it is: these findings are not told again in this run. */
export function leave(state: EscalationState, matter: string): EscalationState {
  const keys = state.matters[matter]?.keys ?? [];
  return { ...without(state, matter), left: [...new Set([...state.left, ...keys])].slice(-KEPT_LEFT) };
}

export function restartedAt(state: EscalationState, now: number): EscalationState {
  return { ...state, restarts: [...state.restarts, now].slice(-THRESHOLDS.restartsPerHour) };
}

/** Being stuck is one matter, however many detectors see it; the others are one each. */
function matterOf({ concern, detector }: Sighting): string {
  return concern === "stuck" ? concern : `${concern} ${detector}`;
}

/** What a person said to leave, and what progress has overtaken, is no finding. */
function isTimely({ key, concern, at }: Sighting, { left }: EscalationState, { progressAt }: Moment): boolean {
  return !left.includes(key) && (!DISPROVED.includes(concern) || at >= progressAt);
}

/** Progress lets a matter rest; what was not seen for long is closed. */
function rested(state: EscalationState, { now, progressAt, paused, sightings }: Moment): EscalationState {
  if (paused) return state;
  return Object.entries(state.matters).reduce((next, [name, matter]) => {
    const isSeen = sightings.some((one) => matterOf(one) === name);
    if (!isSeen && now - Math.max(matter.seenAt, matter.steppedAt) >= THRESHOLDS.calmMs) return without(next, name);
    const isOvertaken = !isSeen && DISPROVED.includes(matter.concern) && progressAt > matter.steppedAt;
    return isOvertaken ? withMatter(next, name, { ...matter, resting: true }) : next;
  }, state);
}

/** A person let a paused agent go on: it gets another chance, from after the message. */
function afterPause(state: EscalationState, { now, paused }: Moment): EscalationState {
  if (paused) return state;
  const held = Object.entries(state.matters).filter(([, { step, impossible }]) => step === "pause" && !impossible.includes("pause"));
  return held.reduce((next, [name, matter]) => withMatter(next, name, { ...matter, step: "message", steppedAt: now }), state);
}

/** Matters that rest: the same finding wakes them, another one of their kind begins anew. */
function awake(state: EscalationState, { sightings }: Moment): EscalationState {
  return Object.entries(state.matters).reduce((next, [name, matter]) => {
    const sighting = sightingOf(name, sightings);
    if (!matter.resting || sighting === undefined) return next;
    return matter.keys.includes(sighting.key) ? withMatter(next, name, { ...matter, resting: false }) : without(next, name);
  }, state);
}

/** Matters that are open go on with what was seen of them now. */
function noted(state: EscalationState, { sightings, now }: Moment): EscalationState {
  return Object.entries(state.matters).reduce((next, [name, open]) => {
    const sighting = sightingOf(name, sightings);
    if (sighting === undefined) return next;
    const keys = withKey(open.keys, sighting.key);
    return withMatter(next, name, { ...open, keys, sighting, seenAt: now, since: Math.min(open.since, sighting.since) });
  }, state);
}

/** The surest sighting of a matter. */
function sightingOf(matter: string, sightings: readonly Sighting[]): Sighting | undefined {
  const own = sightings.filter((one) => matterOf(one) === matter);
  return own.sort((one, other) => other.confidence - one.confidence)[0];
}

function nextOf(matter: string, state: EscalationState, moment: Moment): Intervention | undefined {
  const open = state.matters[matter];
  const fresh = sightingOf(matter, moment.sightings);
  const sighting = fresh ?? open?.sighting;
  if (sighting === undefined || (open !== undefined && !isDue(open, fresh, moment))) return undefined;
  const rungs = rungsOf(sighting.concern, moment.mode, sighting.confidence).filter(({ step }) => open?.impossible.includes(step) !== true);
  const next = open === undefined ? rungs[0] : rungAfter(open.step, rungs);
  const step = next?.step === "restart" ? restartOrNext(rungs, state, moment) : next?.step;
  return step === undefined ? undefined : { matter, step, sighting, since: Math.min(open?.since ?? sighting.since, sighting.since) };
}

/** A paused agent gives no new evidence: what counts is that no person has let it go on. */
function isDue(
  { concern, step, steppedAt, impossible, resting }: Matter,
  fresh: Sighting | undefined,
  { now, paused, patience }: Moment,
): boolean {
  if (resting) return false;
  if (impossible.includes(step)) return true;
  const graceMs = patience * (LADDERS[concern].find((rung) => rung.step === step)?.graceMs ?? 0);
  if (now - steppedAt < graceMs) return false;
  return (step === "pause" && paused) || (fresh !== undefined && fresh.at >= steppedAt + graceMs);
}

/** A restart and a stop are taken again where they did not help; all else once. */
function rungAfter(step: GuardianStep, rungs: readonly Rung[]): Rung | undefined {
  const place = GUARDIAN_STEPS.indexOf(step) + (step === "restart" || step === "stop" ? 0 : 1);
  return rungs.find((rung) => GUARDIAN_STEPS.indexOf(rung.step) >= place);
}

/** Within the cool-down nothing is done; past the ceiling of the hour the next step is due. */
function restartOrNext(rungs: readonly Rung[], { restarts }: EscalationState, { now, patience }: Moment): GuardianStep | undefined {
  const at = nextRestartAt(restarts, now, patience);
  if (at === null) return rungs.find(({ step }) => step === "stop")?.step;
  return at > now ? undefined : "restart";
}

function taken(state: EscalationState, { matter, step, sighting, since }: Intervention, { now }: Moment): EscalationState {
  const open = state.matters[matter];
  return withMatter(state, matter, {
    concern: sighting.concern,
    step,
    steppedAt: now,
    keys: withKey(open?.keys ?? [], sighting.key),
    since,
    seenAt: now,
    sighting,
    impossible: open?.impossible ?? [],
    resting: false,
  });
}

function withKey(keys: readonly string[], key: string): string[] {
  return [...new Set([...keys, key])].slice(-KEPT_KEYS);
}

function withMatter(state: EscalationState, name: string, matter: Matter): EscalationState {
  return { ...state, matters: { ...state.matters, [name]: matter } };
}

function without(state: EscalationState, name: string): EscalationState {
  const { [name]: _closed, ...matters } = state.matters;
  return { ...state, matters };
}
