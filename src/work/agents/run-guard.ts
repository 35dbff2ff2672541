/** The guardian of a run under way: it is told of events and of what the server sees, and its steps are carried out here. */
import { errorText } from "../../base/host/log.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { RunEvent } from "../../base/schema/run.ts";
import { protectionOf } from "../checks/protection.ts";
import type { Question, RunControls } from "../guardian/controls.ts";
import type { EscalationState } from "../guardian/escalation.ts";
import type { Target } from "../guardian/finding.ts";
import { Guardian, type StepRecord } from "../guardian/guardian.ts";
import { CloneState } from "./clone-state.ts";
import { RunObserver } from "./run-observer.ts";
import type { RunSetting, RunWork } from "./run-work.ts";
import type { RunsParts } from "./runs.ts";

/** Events of before that the guardian remembers. */
const REMEMBERED = 500;
/** Stands for a detector where the program of an agent died. */
const DEATH = "death";
/** It looks at least as often as this. */
const LEAST_EVERY_MS = 100;

export class RunGuard {
  readonly #all: RunsParts;
  readonly #work: RunWork;
  readonly #guardian: Guardian;
  readonly #observer: RunObserver;
  readonly #asking = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #looking: Promise<void> = Promise.resolve();

  private constructor(all: RunsParts, work: RunWork, setting: RunSetting, checks: readonly string[]) {
    this.#all = all;
    this.#work = work;
    const clone = new CloneState(all.parts, all.temporary, all.parts.user.guardian.patience);
    const usesGateway = setting.adapter.providers.length > 0;
    this.#observer = new RunObserver({ parts: all.parts, models: all.models, work, clone, usesGateway, checks });
    const { row } = work.journal;
    const protection = protectionOf(setting.protect);
    this.#guardian = new Guardian({
      settings: {
        mode: row.guardian ?? "full",
        off: row.guardianOff ?? [],
        run: row.id,
        patience: all.parts.user.guardian.patience,
        task: row.task,
        readOnly: setting.sandbox.autonomy?.role === "reviewer",
        // A test that the agent adds is no test that it changes: which of the two it is, the clone says.
        protects: (path) => protection.protects(path, !clone.isOfBase(path)),
      },
      sandbox: setting.sandbox.id,
      controls: this.#controls(),
      records: {
        record: (step) => this.#record(step),
        trouble: (error) => all.parts.log.warn("trouble with the guardian of a run", { run: row.id, error: errorText(error) }),
      },
      ...(all.judge === undefined ? {} : { judge: all.judge(setting.sandbox) }),
      incarnation: row.restarts,
      now: Date.now(),
      ...(row.escalation === undefined ? {} : { state: row.escalation as EscalationState }),
    });
    const { patience } = all.parts.user.guardian;
    const everyMs = Math.max(LEAST_EVERY_MS, Math.min(1, patience) * LIMITS.guardianEveryMs);
    this.#timer = setInterval(() => this.#look(), everyMs);
    this.#timer.unref();
  }

  static async open(all: RunsParts, work: RunWork, setting: RunSetting): Promise<RunGuard> {
    const { id, events, experiment } = work.journal.row;
    const { store } = all.parts;
    const checks = experiment === null ? [] : ((await store.experiments.get(experiment))?.checks ?? []);
    const guard = new RunGuard(all, work, setting, checks);
    for (const event of await store.runEvents.list({ run: id, after: Math.max(0, events - REMEMBERED), limit: REMEMBERED })) {
      guard.#observer.heard(event);
      guard.#guardian.replay(event);
    }
    // An answer may have come while no server was there.
    for (const [matter, approval] of Object.entries(work.journal.row.questions ?? {})) guard.#awaitAnswer(matter, approval);
    return guard;
  }

  heard(events: readonly RunEvent[]): void {
    for (const event of events) {
      const seen = this.#observer.heard(event);
      this.#guardian.feed(event);
      if (seen !== undefined) this.#guardian.observe(seen);
    }
  }

  /** Another agent is at work now. */
  restarted(isRestart: boolean): void {
    this.#observer.restarted();
    this.#guardian.restarted(this.#work.journal.row.restarts, Date.now(), isRestart);
    this.#work.journal.change({ escalation: this.#guardian.state });
  }

  /** When agents of this run were restarted, the newest last. */
  get restarts(): readonly number[] {
    return this.#guardian.state.restarts;
  }

  /** What the engine does because an agent died: told and recorded as every step. */
  async note(step: "restart" | "stop", evidence: string, snapshot: string | null): Promise<void> {
    const { row } = this.#work.journal;
    await this.#record({
      event: { type: "guardian", step, detector: DEATH, evidence },
      audit: {
        actor: { kind: "guardian", name: row.id },
        action: `guardian.${step}`,
        target: row.id,
        arguments: { detector: DEATH, incarnation: row.restarts },
        label: "AUTONOMOUS",
        rule: DEATH,
        reason: evidence.slice(0, 4096),
        sandbox: this.#work.sandbox.id,
        snapshot,
      },
      state: this.#guardian.state,
    });
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#asking.abort();
    await this.#looking;
    await this.#guardian.close();
  }

  /** One look at a time. */
  #look(): void {
    this.#looking = this.#looking
      .then(() => this.#observe())
      .catch((error: unknown) => this.#all.parts.log.info("a run could not be looked at", { error: errorText(error) }));
  }

  async #observe(): Promise<void> {
    this.#guardian.observe(await this.#observer.look());
    this.#guardian.tick(Date.now());
  }

  async #record({ event, audit, state }: StepRecord): Promise<void> {
    await this.#all.audit.record(audit);
    this.#work.journal.event(event);
    this.#work.journal.change({ escalation: state });
    await this.#work.journal.written();
    this.#all.parts.reach("run.guarded");
  }

  /** Does something to the agent that was meant, and to no other. */
  #to(target: Target, act: () => Promise<unknown>): Promise<boolean> {
    const { id, restarts } = this.#work.journal.row;
    if (target.run !== id || target.incarnation !== restarts) return Promise.resolve(false);
    return act().then(
      (done) => done !== false,
      (error: unknown) => {
        this.#all.parts.log.warn("a step of the guardian was not taken", { run: id, error: errorText(error) });
        return false;
      },
    );
  }

  #controls(): RunControls {
    const { sandboxes } = this.#all;
    const work = this.#work;
    const id = (): string => work.sandbox.id;
    const move = async (state: "running" | "paused", act: () => Promise<unknown>): Promise<void> => {
      await act();
      work.journal.change({ state });
      await work.journal.written();
    };
    return {
      message: (target, text) =>
        this.#to(target, async () => {
          work.messages.add("guardian", text, "urgent");
          await work.journal.written();
          work.agent?.wake();
        }),
      askPerson: (target, question) => this.#to(target, () => this.#ask(question)),
      pause: (target) => this.#to(target, () => move("paused", () => sandboxes.pause(id()))),
      resume: (target) =>
        this.#to(target, async () => {
          if (await work.isPaused()) await move("running", () => sandboxes.resume(id()));
        }),
      rollback: (target, before) =>
        this.#to(target, async () => {
          const snapshot = work.snapshots.newest(before);
          if (snapshot === undefined) return false;
          await this.#thaw();
          return work.rollBack(snapshot);
        }),
      restart: (target, context) =>
        this.#to(target, async () => {
          await this.#thaw();
          await work.restart(context);
        }),
      stop: (target, reason) =>
        this.#to(target, async () => {
          await this.#thaw();
          work.stop("failed", reason);
        }),
      snapshot: (_target, reason) => work.snapshots.take(reason),
    };
  }

  /** What is frozen can't be ended politely. */
  async #thaw(): Promise<void> {
    const { journal, sandbox } = this.#work;
    if (!(await this.#work.isPaused())) return;
    await this.#all.sandboxes.resume(sandbox.id);
    journal.change({ state: "running" });
  }

  /** The answer is heard later; a yes lets it go on. */
  async #ask({ matter, text, evidence }: Question): Promise<void> {
    const { sandbox, journal } = this.#work;
    const { approvals } = this.#all;
    const asked = await approvals.ask({
      sandbox: sandbox.id,
      sandboxName: sandbox.name,
      project: sandbox.project,
      kind: "run",
      target: text,
      exact: `${journal.row.id} ${journal.row.restarts} ${matter}`,
      rule: "guardian",
      reason: evidence,
      always: null,
    });
    journal.change({ questions: { ...journal.row.questions, [matter]: asked.id } });
    await journal.written();
    this.#awaitAnswer(matter, asked.id);
  }

  #awaitAnswer(matter: string, approval: string): void {
    const { journal } = this.#work;
    void this.#all.approvals
      .wait(approval, this.#asking.signal)
      .then(({ state }) => {
        if (state === "waiting") return;
        const { [matter]: _answered, ...questions } = journal.row.questions ?? {};
        journal.change({ questions });
        if (state === "approved" || state === "used") this.#guardian.answer(matter, "go_on");
        if (state === "denied") this.#guardian.answer(matter, "stop");
      })
      .catch((error: unknown) => this.#all.parts.log.info("an answer to the guardian was not heard", { error: errorText(error) }));
  }
}
