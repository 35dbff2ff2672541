/** A guardian with an engine that only writes down what it is told to do. */
import type { RunEventBody } from "../../src/base/schema/run.ts";
import type { Question, RunControls } from "../../src/work/guardian/controls.ts";
import type { EscalationState } from "../../src/work/guardian/escalation.ts";
import type { Target } from "../../src/work/guardian/finding.ts";
import { Guardian, type DriftJudge, type StepRecord } from "../../src/work/guardian/guardian.ts";
import type { Observation } from "../../src/work/guardian/observation.ts";
import type { GuardianSettings } from "../../src/work/guardian/settings.ts";

const SETTINGS: GuardianSettings = { mode: "full", off: [], run: "run-b", task: "Fix the test", readOnly: false, protects: () => false };
const TICK_MS = 15_000;

export interface LabOptions {
  readonly settings?: Partial<GuardianSettings>;
  readonly judge?: DriftJudge;
  readonly state?: EscalationState;
  readonly incarnation?: number;
}

export class GuardianLab {
  readonly guardian: Guardian;
  /** What was done to the run, as "step text". */
  readonly done: string[] = [];
  readonly targets: Target[] = [];
  readonly records: (StepRecord & { readonly at: number })[] = [];
  readonly questions: Question[] = [];
  readonly troubles: unknown[] = [];
  /** When agents were restarted, by the guardian or because they died. */
  readonly restarts: number[] = [];
  /** Records are written once this is settled. */
  disk: Promise<void> = Promise.resolve();
  /** What the engine can't do. */
  readonly refused = new Set<string>();
  incarnation: number;
  now = Date.UTC(2026, 10, 16, 9);
  #sequence = 0;

  constructor({ settings = {}, judge, state, incarnation = 0 }: LabOptions = {}) {
    this.incarnation = incarnation;
    this.guardian = new Guardian({
      settings: { ...SETTINGS, ...settings },
      sandbox: "sbx-1",
      controls: this.#controls(),
      records: {
        record: async (step) => this.#write(step),
        trouble: (error) => void this.troubles.push(error),
      },
      ...(judge === undefined ? {} : { judge }),
      ...(state === undefined ? {} : { state }),
      incarnation,
      now: this.now,
    });
  }

  get steps(): string[] {
    return this.records.map(({ event }) => event.step);
  }

  #controls(): RunControls {
    const does = async (what: string, target: Target): Promise<boolean> => {
      this.targets.push(target);
      if (this.refused.has(what) || target.incarnation !== this.incarnation) return false;
      this.done.push(what);
      return true;
    };
    return {
      message: async (target) => does("message", target),
      askPerson: async (target, question) => {
        this.questions.push(question);
        return does("ask", target);
      },
      pause: async (target) => does("pause", target),
      resume: async (target) => does("resume", target),
      rollback: async (target, before) => does(`rollback`, target).then((isDone) => isDone && Date.parse(before) <= this.now),
      restart: async (target) => {
        if (!(await does("restart", target))) return false;
        this.die();
        return true;
      },
      stop: async (target) => does("stop", target),
      snapshot: async (target) => {
        if (!(await does("snapshot", target))) throw new Error("the disk is full");
        return `snp-${this.done.length}`;
      },
    };
  }

  async #write(step: StepRecord): Promise<void> {
    await this.disk;
    this.records.push({ ...step, at: this.now });
  }

  /** The agent ends, and the engine starts another one. */
  die(): void {
    this.incarnation += 1;
    this.restarts.push(this.now);
    this.guardian.restarted(this.incarnation, this.now);
  }

  async event(body: RunEventBody, afterMs = 1000): Promise<void> {
    await this.pass(afterMs);
    this.#sequence += 1;
    this.guardian.feed({ ...body, sequence: this.#sequence, at: new Date(this.now).toISOString() });
    await this.guardian.settled();
  }

  async see(seen: Omit<Observation, "at">): Promise<void> {
    this.guardian.observe({ ...seen, at: this.now });
    await this.guardian.settled();
  }

  /** Time goes by, and the server ticks. */
  async pass(ms: number): Promise<void> {
    const end = this.now + ms;
    while (this.now < end) {
      this.now = Math.min(end, this.now + TICK_MS);
      this.guardian.tick(this.now);
      await this.guardian.settled();
    }
  }

  async step(command: string, output: string, ok: boolean): Promise<void> {
    const call = `call-${this.#sequence}`;
    await this.event({ type: "tool_call", call, tool: "Bash", kind: "command", input: { command } });
    await this.event({ type: "tool_result", call, tool: "Bash", ok, output });
  }

  /** The same failing test, again and again: nothing changes. */
  async loop(times: number): Promise<void> {
    for (let i = 0; i < times; i += 1) await this.step("npm test", "1 failed: login", false);
  }

  /** Until as many steps were recorded, or for three hours. */
  async loopUntil(steps: number): Promise<void> {
    for (let i = 0; i < 400 && this.records.length < steps; i += 1) {
      await this.pass(25_000);
      if (this.done.at(-1) !== "pause") await this.loop(1);
    }
  }
}
