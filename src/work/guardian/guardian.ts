/**
 * The guardian of one run. It is fed the run's events and what the server observes, and ticks with the server's clock; what it sees
 * goes through detectors and escalation, which are pure, and comes out as steps: each is recorded first, then taken.
 */
import type { AuditEntry } from "../../base/schema/audit.ts";
import type { RunEvent, RunEventBody } from "../../base/schema/run.ts";
import type { RunControls } from "./controls.ts";
import { detect } from "./detection.ts";
import { CALM, couldNot, escalate, leave, restartedAt, type EscalationState, type Intervention } from "./escalation.ts";
import type { Finding, Sighting, Target } from "./finding.ts";
import { ENDING, type GuardianStep } from "./ladder.ts";
import type { Observation } from "./observation.ts";
import { advance, emptyPicture, type Input, type Picture } from "./picture.ts";
import type { GuardianSettings } from "./settings.ts";
import { afterRollback, messageFor, questionFor, reasonFor, restartContext } from "./words.ts";

/** A step that is about to be taken. The event, the audit record and the state are written in one transaction. */
export interface StepRecord {
  readonly event: Extract<RunEventBody, { type: "guardian" }>;
  readonly audit: AuditEntry;
  readonly state: EscalationState;
}

export interface GuardianRecords {
  /** Resolves once it is written. If it rejects, the step is not taken. */
  record(step: StepRecord): Promise<void>;
  /** Something went wrong in the guardian itself. */
  trouble(error: unknown): void;
}

/** A model that is asked whether an agent still does its task; only where one is configured. */
export interface DriftJudge {
  /** null if it can't say. The reason is shown to the agent and to persons, as a quotation. */
  judge(task: string, lately: string): Promise<{ readonly offTask: boolean; readonly confidence: number; readonly reason: string } | null>;
}

export interface GuardianParts {
  readonly settings: GuardianSettings;
  readonly sandbox: string;
  readonly controls: RunControls;
  readonly records: GuardianRecords;
  readonly judge?: DriftJudge;
  readonly incarnation: number;
  readonly now: number;
  /** As it was last recorded. */
  readonly state?: EscalationState;
}

export type PersonsAnswer = "go_on" | "stop";

/** Events that say nothing to any detector. */
const UNTELLING: readonly RunEvent["type"][] = ["command_output", "raw", "usage", "guardian", "started"];
const DRIFT_ASKED_EVERY_MS = 10 * 60_000;

export class Guardian {
  readonly #parts: GuardianParts;
  #incarnation: number;
  #picture: Picture;
  #state: EscalationState;
  /** Steps that are being taken; nothing else is decided meanwhile. */
  #acting: Promise<void> | undefined;
  /** What the model said last: that it left its task, that it did not, or nothing that can be used. */
  #judged: Sighting | "on task" | "unknown" = "unknown";
  #askedJudgeAt = Number.NEGATIVE_INFINITY;
  #isAsking = false;
  #closed = false;

  constructor(parts: GuardianParts) {
    this.#parts = parts;
    this.#incarnation = parts.incarnation;
    this.#picture = emptyPicture(parts.now);
    this.#state = parts.state ?? CALM;
  }

  /** For the engine to keep; each recorded step carries it too. */
  get state(): EscalationState {
    return this.#state;
  }

  /** What is wrong by what is known now. */
  get findings(): readonly Finding[] {
    return this.#sightings().map((sighting) => ({ ...sighting, target: this.#target }));
  }

  /** An event of before, which the server of before has judged: it is remembered, and nothing is done. */
  replay(event: RunEvent): void {
    this.#picture = advance(this.#picture, { event });
  }

  feed(event: RunEvent): void {
    this.#take({ event }, !UNTELLING.includes(event.type));
  }

  observe(observation: Observation): void {
    this.#take({ observation }, true);
  }

  tick(now: number): void {
    this.#take({ now }, true);
  }

  /**
   * A new agent is at work: what was seen of the one before is forgotten, the steps that were taken are not. The engine keeps `state`
   * then. One that goes on after a rollback is no restart, of which there are so many an hour.
   */
  restarted(incarnation: number, now: number, isRestart = true): void {
    this.#incarnation = incarnation;
    this.#picture = emptyPicture(now);
    this.#judged = "unknown";
    if (isRestart) this.#state = restartedAt(this.#state, now);
  }

  /** A person answered a question of the guardian's. */
  answer(matter: string, answer: PersonsAnswer): void {
    const open = this.#state.matters[matter];
    if (open === undefined || this.#closed) return;
    if (answer === "stop") return this.#act([{ matter, step: "stop", sighting: open.sighting, since: open.since }]);
    this.#state = leave(this.#state, matter);
    if (open.step === "pause") this.#after(async () => void this.#pausing(await this.#parts.controls.resume(this.#target), false));
  }

  /** Resolves once no step is being taken. */
  async settled(): Promise<void> {
    while (this.#acting !== undefined) await this.#acting;
  }

  /** The run is over: nothing more is done to it. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.settled();
  }

  get #target(): Target {
    return { run: this.#parts.settings.run, incarnation: this.#incarnation };
  }

  #isCurrent({ incarnation }: Target): boolean {
    return incarnation === this.#incarnation && !this.#closed;
  }

  #take(input: Input, isTelling: boolean): void {
    this.#picture = advance(this.#picture, input);
    if (isTelling) this.#consider();
  }

  #sightings(): Sighting[] {
    const found = detect(this.#picture, this.#parts.settings);
    if (this.#parts.judge === undefined) return found;
    // Where a model has answered, its word holds; the cheap signs hold while none can be had.
    if (this.#judged === "unknown") return this.#isAsking ? found.filter(({ detector }) => detector !== "drift") : found;
    const others = found.filter(({ detector }) => detector !== "drift");
    return this.#judged === "on task" ? others : [...others, this.#judged];
  }

  #consider(): void {
    const { settings } = this.#parts;
    if (settings.mode === "off" || this.#closed || this.#acting !== undefined) return;
    const { now, progress, seen, startedAt } = this.#picture;
    // That another agent began is no progress.
    const progressAt = this.#incarnation > 0 && progress.at === startedAt ? Number.NEGATIVE_INFINITY : progress.at;
    this.#askJudge();
    const sightings = this.#sightings();
    const moment = { now, mode: settings.mode, sightings, progressAt, paused: seen.paused === true, patience: settings.patience ?? 1 };
    const { state, interventions } = escalate(this.#state, moment);
    this.#state = state;
    if (interventions.length > 0) this.#act(interventions);
  }

  #act(interventions: readonly Intervention[]): void {
    const target = this.#target;
    this.#after(async () => {
      for (const one of interventions) await this.#step(one, target);
    });
  }

  /** One thing after the other. */
  #after(next: () => Promise<void>): void {
    const before = this.#acting;
    const work = (async () => {
      await before;
      await next();
    })()
      .catch((error: unknown) => this.#parts.records.trouble(error))
      .finally(() => {
        if (this.#acting === work) this.#acting = undefined;
      });
    this.#acting = work;
  }

  /** Never a kill without a snapshot: where there can't be one, the agent is paused and a person is asked. */
  async #step(one: Intervention, target: Target): Promise<void> {
    if (!this.#isCurrent(target)) return;
    let snapshot: string | null = null;
    if (ENDING.includes(one.step)) {
      try {
        snapshot = await this.#parts.controls.snapshot(target, reasonFor(one.sighting));
      } catch (error) {
        this.#parts.records.trouble(error);
        return this.#keepStill(one, target);
      }
    }
    await this.#record(one, one.step, snapshot);
    const isDone = await this.#do(one, target);
    // The engine ends the run, which may take a moment: another stop would only take another snapshot.
    if (isDone && one.step === "stop") this.#closed = true;
    else if (!isDone && this.#isCurrent(target)) this.#state = couldNot(this.#state, one.matter, one.step);
  }

  async #keepStill(one: Intervention, target: Target): Promise<void> {
    const evidence = `${one.sighting.evidence} The step ${one.step} was not taken, because the work could not be kept in a snapshot.`;
    const held = { ...one, sighting: { ...one.sighting, evidence } };
    for (const step of ["ask", "pause"] as const) {
      await this.#record(held, step, null);
      await this.#do({ ...held, step }, target);
    }
  }

  async #do({ matter, step, sighting, since }: Intervention, target: Target): Promise<boolean> {
    // While the step was recorded, another agent may have taken its place.
    if (!this.#isCurrent(target)) return false;
    const { controls } = this.#parts;
    const { evidence } = sighting;
    switch (step) {
      case "message":
        return controls.message(target, messageFor(sighting));
      case "ask":
        return controls.askPerson(target, { matter, text: questionFor(sighting), evidence });
      case "pause":
        return this.#pausing(await controls.pause(target), true);
      case "rollback":
        if (!(await controls.rollback(target, new Date(since).toISOString()))) return false;
        await controls.message(target, afterRollback(sighting));
        return this.#pausing(await controls.resume(target), false);
      case "restart":
        return this.#pausing(await controls.restart(target, restartContext(sighting)), false);
      case "stop":
        return controls.stop(target, reasonFor(sighting));
    }
  }

  /** The server's next observation says so too; until then the guardian knows it by itself. */
  #pausing(isDone: boolean, paused: boolean): boolean {
    if (isDone) this.#picture = advance(this.#picture, { observation: { at: this.#picture.now, paused } });
    return isDone;
  }

  async #record({ sighting }: Intervention, step: GuardianStep, snapshot: string | null): Promise<void> {
    const { settings, sandbox, records } = this.#parts;
    const { detector, evidence, confidence, key } = sighting;
    await records.record({
      event: { type: "guardian", step, detector, evidence },
      audit: {
        actor: { kind: "guardian", name: settings.run },
        action: `guardian.${step}`,
        target: settings.run,
        arguments: { detector, confidence, key, incarnation: this.#incarnation },
        label: "AUTONOMOUS",
        rule: detector,
        reason: evidence.slice(0, 4096),
        sandbox,
        snapshot,
      },
      state: this.#state,
    });
  }

  /** A weak sign of drift is a reason to ask the model, not more often than now and then. */
  #askJudge(): void {
    const { judge, settings, records } = this.#parts;
    const { now, steps } = this.#picture;
    if (judge === undefined || now - this.#askedJudgeAt < DRIFT_ASKED_EVERY_MS) return;
    const weak = detect(this.#picture, settings).find(({ detector }) => detector === "drift");
    if (weak === undefined) return;
    this.#askedJudgeAt = now;
    this.#isAsking = true;
    const incarnation = this.#incarnation;
    const lately = steps
      .slice(-30)
      .map(({ title }) => title)
      .join("\n");
    void judge
      .judge(settings.task, lately)
      .then((verdict) => {
        if (incarnation !== this.#incarnation) return;
        this.#judged = verdict === null ? "unknown" : verdict.offTask ? judgedSo(weak, verdict) : "on task";
      })
      .catch((error: unknown) => {
        if (incarnation === this.#incarnation) this.#judged = "unknown";
        records.trouble(error);
      })
      .finally(() => (this.#isAsking = false));
  }
}

function judgedSo(weak: Sighting, { confidence, reason }: { readonly confidence: number; readonly reason: string }): Sighting {
  return { ...weak, confidence, evidence: `${weak.evidence} The model that was asked says: ${reason}`, key: "drift by judgement" };
}
