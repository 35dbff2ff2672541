/** Experiments and promotions that a test moves on by hand, behind the real API: what the command line does with them is its own. */
import { newAttempt } from "../../src/work/experiments/input.ts";
import type { Engine, Handlers } from "../../src/interfaces/operations/operations.ts";
import { VivError } from "../../src/base/schema/errors.ts";
import type { EventType, VivEvent } from "../../src/base/schema/event.ts";
import type { Attempt, Experiment, ExperimentInput, Verdict } from "../../src/base/schema/experiment.ts";
import { newId } from "../../src/base/schema/ids.ts";
import type { Promotion, PromotionPlan } from "../../src/base/schema/promotion.ts";
import type { ServerStatus } from "../../src/base/schema/server.ts";
import { sandbox, scriptedEngine } from "./cli-engine.ts";

const at = (): string => new Date().toISOString();

export function verdict(passed: boolean, tests: { passed: number; failed: number } | null = null): Verdict {
  const check = {
    command: "npm test",
    passed,
    exitCode: passed ? 0 : 1,
    runs: 1,
    flaky: false,
    wallMs: 1234,
    tests: tests === null ? null : { format: "tap" as const, skipped: 0, ...tests },
    output: passed ? "ok\n" : "not ok 1 - counts from zero\n",
    cause: null,
  };
  return { passed, checks: [check], measure: null, setup: null };
}

/** An attempt that ran to its end. */
export function ended(more: Partial<Attempt> = {}): Partial<Attempt> {
  const past = new Date(Date.now() - 2500).toISOString();
  return {
    state: "done",
    exitCode: 0,
    wallMs: 2500,
    cpuMs: 100,
    peakMemoryBytes: 45 * 1024 ** 2,
    checked: verdict(true),
    diff: { files: 1, added: 2, removed: 1 },
    startedAt: past,
    endedAt: at(),
    sandbox: newId("sandbox"),
    ...more,
  };
}

export function experimentOf(input: Partial<ExperimentInput> & Pick<ExperimentInput, "attempts">): Experiment {
  const checks = input.checks ?? [];
  return {
    id: newId("experiment"),
    project: input.project ?? "/project",
    state: "running",
    reason: null,
    winner: null,
    attempts: input.attempts.map(({ name, command }, index) => newAttempt(index + 1, name ?? String(index + 1), command ?? "")),
    baseline: null,
    checks,
    setup: input.setup ?? null,
    pick: input.pick ?? (checks.length > 0 ? "auto" : "none"),
    rules: ["checks", "diff", "time"],
    repeat: 1,
    promotion: null,
    createdAt: at(),
    endedAt: null,
  };
}

export function plan(more: Partial<PromotionPlan> = {}): PromotionPlan {
  return { hash: "cafe", changes: [], files: 0, moved: false, movedPaths: 0, conflicts: [], risks: [], leftOut: [], notes: [], ...more };
}

export function promotionOf(more: Partial<Promotion> = {}): Promotion {
  return {
    id: newId("promotion"),
    kind: "promotion",
    project: "/project",
    sandbox: null,
    sandboxName: "box",
    experiment: null,
    undoes: null,
    message: null,
    state: "applied",
    reason: null,
    plan: plan(),
    stages: [],
    kept: [],
    branch: null,
    pending: false,
    createdAt: at(),
    endedAt: null,
    ...more,
  };
}

const STATUS: ServerStatus = {
  version: "0.0.0",
  pid: 1,
  startedAt: at(),
  home: "/state",
  log: "/state/log",
  listen: null,
  driver: "native",
  mode: "root",
  storage: "btrfs",
  limitsHeld: "hard",
  sandboxes: {},
  memory: { totalBytes: 1, freeBytes: 1 },
  disk: { totalBytes: 1, freeBytes: 1 },
  load: { cpus: 2, lastMinute: 0 },
  newestEvent: 0,
};

export class Lab {
  readonly experiments = new Map<string, Experiment>();
  readonly promotions = new Map<string, Promotion>();
  /** Operations that were called, with their input. */
  readonly calls: { readonly name: string; readonly input: Record<string, unknown> }[] = [];
  readonly box = sandbox("box");
  plan = plan();
  /** What starting, cancelling, promoting and so on does, besides being noted. */
  onStart: (experiment: Experiment) => void = () => undefined;
  onCancel: (experiment: Experiment, now: boolean) => void = (experiment) => this.move(experiment.id, { state: "cancelled" });
  onPromote: () => Promise<Promotion> = async () => this.keep(promotionOf());
  readonly #events: VivEvent[] = [];
  readonly #listeners = new Set<() => void>();

  /** Forgets what was, as a new server would not; events go on. */
  clear(): void {
    this.experiments.clear();
    this.promotions.clear();
    this.calls.length = 0;
    this.onStart = () => undefined;
    this.onCancel = (experiment) => this.move(experiment.id, { state: "cancelled" });
    this.onPromote = async () => this.keep(promotionOf());
  }

  add(experiment: Experiment): Experiment {
    this.experiments.set(experiment.id, experiment);
    return experiment;
  }

  keep(promotion: Promotion, event: EventType = "promotion.stage"): Promotion {
    this.promotions.set(promotion.id, promotion);
    this.tell(event, { promotion: promotion.id });
    return promotion;
  }

  move(id: string, more: Partial<Experiment>, attempts: Readonly<Record<number, Partial<Attempt>>> = {}): Experiment {
    const old = this.#experiment(id);
    const moved = {
      ...old,
      ...more,
      attempts: old.attempts.map((each) => ({ ...each, ...attempts[each.index] })),
    };
    this.experiments.set(id, moved);
    this.tell("experiment.attempt", { experiment: id });
    return moved;
  }

  tell(type: EventType, data: VivEvent["data"]): void {
    this.#events.push({ sequence: this.#events.length + 1, at: at(), type, sandbox: null, data });
    for (const wake of this.#listeners) wake();
  }

  called(name: string): Record<string, unknown>[] {
    return this.calls.filter((call) => call.name === name).map(({ input }) => input);
  }

  get engine(): Engine {
    return scriptedEngine(this.#handlers(), { events: async (after, { signal }) => this.#listen(after, signal) });
  }

  #experiment(id: string): Experiment {
    const found = this.experiments.get(id);
    if (found === undefined) throw new VivError("not_found", `There is no experiment ${id}.`);
    return found;
  }

  #promotion(id: string): Promotion {
    const found = this.promotions.get(id);
    if (found === undefined) throw new VivError("not_found", `There is no promotion ${id}.`);
    return found;
  }

  async *#listen(after: number, signal: AbortSignal): AsyncGenerator<VivEvent, void, void> {
    for (let next = after; !signal.aborted;) {
      const event = this.#events[next];
      if (event !== undefined) {
        next += 1;
        yield event;
        continue;
      }
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#listeners.delete(wake);
          resolve();
        };
        this.#listeners.add(wake);
        signal.addEventListener("abort", wake, { once: true });
      });
    }
  }

  #handlers(): Partial<Handlers> {
    const note = (name: string, input: object): void => void this.calls.push({ name, input: { ...input } });
    return {
      findSandbox: async () => this.box,
      listSandboxes: async () => ({ sandboxes: [this.box] }),
      status: async () => STATUS,
      listEvents: async () => ({ events: [], oldest: 1, newest: this.#events.length }),
      startExperiment: async (input) => {
        note("startExperiment", input);
        const experiment = this.add(experimentOf(input));
        setImmediate(() => this.onStart(experiment));
        return experiment;
      },
      listExperiments: async () => ({ experiments: [...this.experiments.values()] }),
      inspectExperiment: async ({ experiment }) => this.#experiment(experiment),
      cancelExperiment: async ({ experiment, now }) => {
        note("cancelExperiment", { experiment, now });
        this.onCancel(this.#experiment(experiment), now);
        return this.#experiment(experiment);
      },
      retryExperiment: async (input) => {
        note("retryExperiment", input);
        const experiment = this.move(input.experiment, { state: "running" });
        setImmediate(() => this.onStart(experiment));
        return experiment;
      },
      pickWinner: async (input) => {
        note("pickWinner", input);
        return this.move(input.experiment, { state: "done", winner: Number(input.attempt), reason: "You chose it." });
      },
      removeExperiment: async (input) => {
        note("removeExperiment", input);
        this.experiments.delete(input.experiment);
        return { ok: true };
      },
      planPromotion: async (input) => (note("planPromotion", input), this.plan),
      promote: async (input) => (note("promote", input), this.onPromote()),
      continuePromotion: async (input) => (note("continuePromotion", input), this.onPromote()),
      undoPromotion: async (input) => (note("undoPromotion", input), this.onPromote()),
      listPromotions: async () => ({ promotions: [...this.promotions.values()] }),
      inspectPromotion: async ({ promotion }) => this.#promotion(promotion),
    };
  }
}
