/**
 * What the guardian knows of one agent: made from events and observations by a pure function, bounded however long the run is. Times
 * come with what is fed; the picture's own clock never goes back, and does not count time in which the server was away.
 */
import type { RunEvent } from "../../base/schema/run.ts";
import { fingerprint } from "./likeness.ts";
import { isMadeAgain } from "./made-again.ts";
import type { Observation } from "./observation.ts";
import { closedStep, openCall, type OpenCall, type Step } from "./step.ts";
import { THRESHOLDS } from "./thresholds.ts";

export interface Picture {
  readonly startedAt: number;
  readonly now: number;
  /** Of the newest event. */
  readonly sequence: number;
  readonly turnOpen: boolean;
  /** What it waits for, and until when at the latest. */
  readonly wait: { readonly for: string; readonly until: number } | null;
  readonly open: readonly OpenCall[];
  readonly steps: readonly Step[];
  /** All calls so far, and when the newest were made. */
  readonly calls: number;
  readonly callTimes: readonly number[];
  /** What the agent said since its last call. */
  readonly texts: readonly { readonly key: string; readonly text: string; readonly sequence: number; readonly at: number }[];
  /** Time without a sign of life: while nothing was under way, and while something was. */
  readonly idleMs: number;
  readonly busyMs: number;
  readonly quietSince: number;
  /** The newest value of each thing that was observed. */
  readonly seen: Omit<Observation, "at" | "check">;
  readonly states: CloneStates;
  readonly progress: Progress;
  readonly touches: readonly { readonly path: string; readonly sequence: number; readonly at: number }[];
  /** Since when it has been so, at a stretch. */
  readonly highMemorySince: number | null;
  /** When CPU time was last looked at. */
  readonly cpuSeenAt: number;
}

export interface CloneStates {
  /** The state of now. Without observations every change of files makes a state of its own. */
  readonly now: string;
  readonly known: readonly string[];
  /** Changes from one state to another, the newest last. */
  readonly changes: readonly { readonly state: string; readonly sequence: number; readonly at: number }[];
}

/** What came since something new was reached: a state of the clone that was not there before, fewer failing checks, or a person's word. */
export interface Progress {
  readonly at: number;
  readonly sequence: number;
  readonly steps: number;
  /** Steps that gave nothing but what had been seen. */
  readonly stale: number;
  readonly pairs: readonly string[];
  readonly cost: number;
  readonly budget: number;
  /** Runs of the checks since the number of failures was last lowered, and that number. */
  readonly fewestFailed: number | null;
  readonly checksSince: number;
  readonly fileChangeAt: number;
  readonly stepsSinceFileChange: number;
}

export type Input = { readonly event: RunEvent } | { readonly observation: Observation } | { readonly now: number };

export function emptyPicture(at: number): Picture {
  return {
    startedAt: at,
    now: at,
    sequence: 0,
    turnOpen: true,
    wait: null,
    open: [],
    steps: [],
    calls: 0,
    callTimes: [],
    texts: [],
    idleMs: 0,
    busyMs: 0,
    quietSince: at,
    seen: {},
    states: { now: "not looked at", known: [], changes: [] },
    progress: {
      at,
      sequence: 0,
      steps: 0,
      stale: 0,
      pairs: [],
      cost: 0,
      budget: 0,
      fewestFailed: null,
      checksSince: 0,
      fileChangeAt: at,
      stepsSinceFileChange: 0,
    },
    touches: [],
    highMemorySince: null,
    cpuSeenAt: at,
  };
}

export function advance(picture: Picture, input: Input): Picture {
  if ("now" in input) return passed(picture, input.now);
  if ("observation" in input) return observed(passed(picture, input.observation.at), input.observation);
  const { event } = input;
  const before = { ...passed(picture, Date.parse(event.at)), sequence: event.sequence };
  return withEvent(showsLife(event) ? alive(before) : before, event);
}

/** Whether something is under way that the agent rightly waits for: its tools, a model, the next message. */
export function isBusy({ seen, open, turnOpen }: Picture): boolean {
  return !turnOpen || open.length > 0 || (seen.modelRequests ?? 0) > 0;
}

/** A wait for a rate limit ends at its time, also when the agent does not say so; a wait for a person does not. */
export function isWaiting({ wait, now, seen }: Picture): boolean {
  if (seen.personAsked === true) return true;
  return wait !== null && now < wait.until;
}

function passed(picture: Picture, at: number): Picture {
  const now = Math.max(picture.now, at);
  const counted = Math.min(now - picture.now, THRESHOLDS.longestGapMs);
  if (counted === 0) return picture;
  if (picture.seen.paused === true || isWaiting(picture)) return { ...picture, now };
  return isBusy(picture) ? { ...picture, now, busyMs: picture.busyMs + counted } : { ...picture, now, idleMs: picture.idleMs + counted };
}

function alive(picture: Picture): Picture {
  return { ...picture, idleMs: 0, busyMs: 0, quietSince: picture.now };
}

function showsLife(event: RunEvent): boolean {
  return event.type !== "guardian" && (event.type !== "message" || event.from === "agent");
}

function withEvent(picture: Picture, event: RunEvent): Picture {
  switch (event.type) {
    case "tool_call":
      return called(picture, event);
    case "tool_result":
      return answered(picture, event);
    case "thinking":
      return said(picture, event.text);
    case "message":
      return event.from === "agent" ? said(picture, event.text) : event.from === "person" ? steered(picture) : picture;
    case "file_change":
      return touched(picture, event.paths);
    case "waiting":
      return { ...picture, wait: { for: event.for, until: endOfWait(event, picture.now) } };
    case "resumed":
      return { ...picture, wait: null };
    case "turn":
      return { ...picture, turnOpen: event.state === "began", open: [], texts: [], wait: null };
    case "finished":
      return { ...picture, turnOpen: false, open: [], wait: null };
    // Results may be among what was lost.
    case "gap":
      return { ...picture, open: [] };
    default:
      return picture;
  }
}

function endOfWait({ for: what, until }: Extract<RunEvent, { type: "waiting" }>, now: number): number {
  if (what === "person") return Number.POSITIVE_INFINITY;
  return until === null ? now + THRESHOLDS.endlessWaitMs : Date.parse(until) + THRESHOLDS.overdueWaitMs;
}

function called(picture: Picture, event: Extract<RunEvent, { type: "tool_call" }>): Picture {
  const { now, states, open } = picture;
  return {
    ...picture,
    turnOpen: true,
    wait: null,
    texts: [],
    open: newest(open, openCall(event, now, states.now), THRESHOLDS.rememberedCallTimes),
    calls: picture.calls + 1,
    callTimes: newest(picture.callTimes, now, THRESHOLDS.rememberedCallTimes),
  };
}

function answered(picture: Picture, event: Extract<RunEvent, { type: "tool_result" }>): Picture {
  const asked = picture.open.find(({ call }) => call === event.call);
  if (asked === undefined) return picture;
  const step = closedStep(asked, event, picture.now, picture.seen.background ?? 0);
  const { progress } = picture;
  const pair = fingerprint(step.callKey, step.resultKey);
  // Agents of its own don't know what the others have read.
  const isStale = progress.pairs.includes(pair) && !step.outside && !picture.open.some(({ kind }) => kind === "agent");
  return {
    ...picture,
    open: picture.open.filter((one) => one !== asked),
    steps: newest(picture.steps, step, THRESHOLDS.rememberedSteps),
    progress: {
      ...progress,
      steps: progress.steps + 1,
      stepsSinceFileChange: progress.stepsSinceFileChange + 1,
      // A step that finds something new takes back one that did not.
      stale: isStale ? progress.stale + 1 : Math.max(0, progress.stale - 1),
      pairs: progress.pairs.includes(pair) ? progress.pairs : newest(progress.pairs, pair, THRESHOLDS.rememberedPairs),
    },
  };
}

function said(picture: Picture, text: string): Picture {
  const one = { key: fingerprint(text.trim()), text: text.slice(-4096), sequence: picture.sequence, at: picture.now };
  return { ...picture, turnOpen: true, texts: newest(picture.texts, one, THRESHOLDS.rememberedTexts) };
}

/** A person spoke: what came before is no measure for what comes now. */
function steered(picture: Picture): Picture {
  return { ...reached(picture), steps: [], texts: [], turnOpen: true, wait: null };
}

function touched(picture: Picture, paths: readonly string[]): Picture {
  const { now: at, sequence } = picture;
  const touches = paths.reduce((list, path) => newest(list, { path, sequence, at }, THRESHOLDS.rememberedTouches), picture.touches);
  if (paths.every(isMadeAgain)) return { ...picture, touches };
  const changed = withFileChange({ ...picture, touches });
  const state = `changed at event ${sequence}`;
  // Without a hash of the clone, a change of files is a new state.
  if (picture.seen.clone === undefined) return inState(changed, state);
  // Until the clone is looked at, it is in a state of its own, which is neither a new one nor the one before.
  return { ...changed, states: { ...changed.states, now: state } };
}

function observed(picture: Picture, { at: _at, check, ...fields }: Observation): Picture {
  const before = picture.seen;
  const seen = { ...before, ...fields, use: { ...before.use, ...fields.use } };
  const worked = tookCpu(picture, fields.cpuMs);
  const cpuSeenAt = fields.cpuMs === undefined ? picture.cpuSeenAt : picture.now;
  let next: Picture = { ...picture, seen, cpuSeenAt, highMemorySince: highMemory(picture, seen) };
  next = { ...next, progress: { ...next.progress, ...firstCosts(before, fields) } };
  if (fields.clone !== undefined && fields.clone !== picture.states.now)
    next =
      fields.clone === before.clone
        ? { ...next, states: { ...next.states, now: fields.clone } }
        : inState(alive(withFileChange(next)), fields.clone);
  if (check !== undefined) next = withCheck(alive(next), check.failed);
  return worked ? alive(next) : next;
}

/** What was spent before the first look, by an agent before or while another server looked, does not count against this one. */
function firstCosts(before: Picture["seen"], { cost, use }: Omit<Observation, "at">): Partial<Pick<Progress, "cost" | "budget">> {
  return {
    ...(before.cost === undefined && cost !== undefined ? { cost } : {}),
    ...(before.use?.budget === undefined && use?.budget !== undefined ? { budget: use.budget } : {}),
  };
}

/** A program without tool calls is alive while it computes. An agent that tells its calls is not: it could spin without doing anything. */
function tookCpu(picture: Picture, cpuMs: number | undefined): boolean {
  const before = picture.seen.cpuMs;
  if (cpuMs === undefined || before === undefined || (picture.calls > 0 && picture.open.length === 0)) return false;
  return cpuMs - before > THRESHOLDS.busyCpuShare * Math.max(1, picture.now - picture.cpuSeenAt);
}

/** Since when memory has been nearly full, at a stretch. */
function highMemory(picture: Picture, seen: Picture["seen"]): Picture["highMemorySince"] {
  const isHigh = (seen.use?.memory ?? 0) >= THRESHOLDS.nearSpaceShare;
  return isHigh ? (picture.highMemorySince ?? picture.now) : null;
}

function inState(picture: Picture, state: string): Picture {
  const { states, now: at, sequence } = picture;
  const isNew = !states.known.includes(state);
  // Before the first look nothing is known: it is no change.
  const isFirst = states.known.length === 0;
  const next: Picture = {
    ...picture,
    states: {
      now: state,
      known: isNew ? newest(states.known, state, THRESHOLDS.rememberedStates) : states.known,
      changes: isFirst ? [] : newest(states.changes, { state, sequence, at }, THRESHOLDS.rememberedTexts),
    },
  };
  return isNew && !isFirst ? reached(next) : next;
}

function withFileChange(picture: Picture): Picture {
  return { ...picture, progress: { ...picture.progress, fileChangeAt: picture.now, stepsSinceFileChange: 0 } };
}

function withCheck(picture: Picture, failed: number): Picture {
  const { fewestFailed, checksSince } = picture.progress;
  const isBetter = fewestFailed === null || failed < fewestFailed;
  const next = isBetter ? reached(picture) : picture;
  return {
    ...next,
    progress: { ...next.progress, fewestFailed: isBetter ? failed : fewestFailed, checksSince: isBetter ? 0 : checksSince + 1 },
  };
}

function reached(picture: Picture): Picture {
  const { now: at, sequence, seen, progress } = picture;
  const costs = { cost: seen.cost ?? progress.cost, budget: seen.use?.budget ?? progress.budget };
  return { ...picture, progress: { ...progress, ...costs, at, sequence, steps: 0, stale: 0 } };
}

function newest<Item>(list: readonly Item[], item: Item, most: number): Item[] {
  return [...list.slice(-(most - 1)), item];
}
