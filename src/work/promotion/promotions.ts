/** The face of this folder: changes of sandboxes on their way into reality, one at a time per project, and back. */
import { askedLines } from "./asked-lines.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Audit } from "../../rules/audit/audit.ts";
import type { Verification } from "../checks/verification.ts";
import { errorText } from "../../base/host/log.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import { openProject, type ProjectView } from "../../sandbox/projects/projects.ts";
import type { CommonGround } from "../refresh/refresh.ts";
import type { Registry } from "../../sandbox/shared/registry.ts";
import { discard, isWaiting } from "../../sandbox/ending/waiting-promotions.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { PromoteInput, Promotion, PromotionPlan } from "../../base/schema/promotion.ts";
import type { Question } from "../../base/schema/question.ts";
import type { ExperimentRow, PromotionRow } from "../../base/store/rows.ts";
import { BranchPromotion, remoteOf } from "./branch-promotion.ts";
import { sinceEarlierPromotion } from "./earlier-promotions.ts";
import { approvalOf, StageRun, type StageContext } from "./stage-run.ts";
import { prepare, type PreparedPlan } from "./plan.ts";
import { requireSettled } from "./project-state.ts";
import { asQuestion, targetOfQuestion } from "./questions.ts";
import { Records } from "./record.ts";
import { PromotionAudit } from "./promotion-audit.ts";
import { originalInput, newRow, shown } from "./rows.ts";
import { findSource, type Origin } from "./source.ts";
import { plannedStages, targetOf, type PlannedStage } from "./stages.ts";
import type { Transactions } from "./transaction.ts";
import { UndoRun } from "./undo-run.ts";
import { ProjectWriter } from "./project-writer.ts";

export interface PromotionParts {
  readonly parts: Pick<Parts, "store" | "backends" | "user" | "state" | "log" | "locks" | "reach">;
  readonly audit: Audit;
  readonly registry: Registry;
  readonly sandboxes: Sandboxes;
  readonly verification: Verification;
  readonly transactions: Transactions;
  /** Where contents are kept for an undo. */
  readonly folder: string;
  readonly temporary: string;
}

const NAMED_FILES = 5;

type Environment = Readonly<Record<string, string>>;

/** Of a task that becomes the message of its promotion. */
const MESSAGE_CHARACTERS = 10_000;

export class Promotions {
  readonly #all: PromotionParts;
  readonly #records: Records;
  readonly #writer: ProjectWriter;
  readonly #run: StageRun;
  readonly #branch: BranchPromotion;
  readonly #undo: UndoRun;
  readonly #audit: PromotionAudit;
  readonly #stopping = new AbortController();

  constructor(all: PromotionParts) {
    this.#all = all;
    this.#records = new Records(all.folder);
    this.#writer = new ProjectWriter(all.parts, all.transactions, this.#records, all.temporary);
    this.#run = new StageRun(all.verification, this.#writer, this.#stopping.signal);
    this.#branch = new BranchPromotion(all, this.#stopping.signal);
    this.#audit = new PromotionAudit(all.audit);
    this.#undo = new UndoRun(all, this.#records, this.#writer);
  }

  /** What a refresh of a sandbox starts from. */
  readonly common: CommonGround = (git, row, snapshot, sides) =>
    sinceEarlierPromotion({ store: this.#all.parts.store, records: this.#records, git }, { row, snapshot }, sides, []);

  /** What a promotion would do; nothing is kept of it. */
  async plan(asked: Pick<PromoteInput, "sandbox" | "experiment" | "only" | "include">): Promise<PromotionPlan> {
    const { parts, sandboxes, temporary } = this.#all;
    const source = await findSource(parts, sandboxes, asked);
    const folder = await mkdtemp(join(temporary, "plan-"));
    try {
      return (await prepare({ ...this.#all, records: this.#records }, source, folder)).plan;
    } finally {
      await rm(folder, { recursive: true, force: true });
      if (source.isOwn) await sandboxes.removeSnapshot(source.row.id, source.snapshot);
    }
  }

  async promote(input: PromoteInput): Promise<Promotion> {
    const { parts, sandboxes } = this.#all;
    const source = await findSource(parts, sandboxes, input);
    return this.#alone(source.row.project, async () => {
      await requireSettled(source.row.project);
      const view = await openProject(parts.store, source.row.project, parts.state);
      const stages = this.#planned(view, input, source.experiment);
      const { env = {}, ...kept } = input;
      const row = newRow(source, kept, stages);
      const target = input.branch === undefined ? targetOf(stages, input.to) : stages.length - 1;
      return shown(await this.#go(row, source, stages, target, env));
    });
  }

  /** Promotes what an experiment chose, as far as that goes without a person. */
  async promoteWinner({ id, input, project, attempts, winner }: ExperimentRow): Promise<Promotion> {
    const sandbox = attempts.find(({ index }) => index === winner)?.sandbox;
    // After a crash between the promotion and its record it is asked for again.
    const earlier = (await this.#all.parts.store.promotions.list({ project })).find(
      (row) => row.experiment === id && row.sandbox === sandbox && row.kind === "promotion" && (row.state === "applied" || isWaiting(row)),
    );
    if (earlier !== undefined) return shown(earlier);
    const message = input.attempts[(winner ?? 0) - 1]?.agent?.task.slice(0, MESSAGE_CHARACTERS);
    return this.promote({ experiment: id, allowRisky: false, ask: false, env: input.env, branch: input.branch, message });
  }

  /** Stages of the config, or of a branch that was asked for. */
  #planned(view: ProjectView, input: Omit<PromoteInput, "env">, experiment: ExperimentRow | null): PlannedStage[] {
    const lines = askedLines(view, input, experiment);
    return input.branch === undefined ? plannedStages(view.config, lines) : this.#branch.stages(input.branch, lines);
  }

  /** To a later stage, or on from where it waited. */
  async continue(id: string, to: string | undefined, approve: boolean, env: Environment): Promise<Promotion> {
    const { parts } = this.#all;
    const found = await this.#find(id);
    return this.#alone(found.project, async () => {
      const row = await this.#find(id);
      if (row.kind === "undo" || row.input === null || row.snapshot === null || !["waiting", "applied"].includes(row.state))
        throw new VivError(
          "illegal_transition",
          `Promotion ${id} is ${row.state} and does not go on${row.reason === null ? "." : `: ${row.reason}`}`,
          {
            remedy: "Look at `viv promotions`.",
          },
        );
      await requireSettled(row.project);
      const source = await this.#sourceOf(row, row.snapshot);
      const stages = this.#planned(await openProject(parts.store, row.project, parts.state), row.input, source?.experiment ?? null);
      if (stages.map(({ name }) => name).join() !== row.stages.map(({ name }) => name).join())
        throw new VivError("illegal_transition", "The stages of the config are others than when it began.", { remedy: "Promote again." });
      const waiting = row.stages.findIndex(({ state }) => state === "waiting");
      const target = to === undefined ? Math.max(waiting, 0) : targetOf(stages, to);
      const approved = approve && waiting >= 0 ? [approvalOf(stages[waiting]?.name ?? "", row), `risks:${row.plan?.hash ?? ""}`] : [];
      return shown(await this.#go({ ...row, approved: [...row.approved, ...approved], reason: null }, source, stages, target, env));
    });
  }

  /** What a promotion comes from. Once it lies in the folder, later stages do without; before that, it has failed. */
  async #sourceOf(row: PromotionRow, snapshot: string): Promise<Origin | undefined> {
    const { parts, sandboxes } = this.#all;
    try {
      return await findSource(parts, sandboxes, originalInput(row), snapshot);
    } catch (error) {
      if (!(error instanceof VivError) || error.code !== "not_found") throw error;
      if (row.written) return undefined;
      const reason = `${error.message} Nothing was applied.`;
      await parts.store.change((change) => change.promotions.put({ ...row, state: "failed", reason, endedAt: new Date().toISOString() }));
      throw error;
    }
  }

  async #go(
    row: PromotionRow,
    source: Origin | undefined,
    stages: readonly PlannedStage[],
    target: number,
    env: Environment,
  ): Promise<PromotionRow> {
    const { parts } = this.#all;
    await parts.store.change(async (change) => {
      await change.promotions.put(row);
      if (row.approved.length > 0)
        await change.event("approval.answered", row.sandbox, { approval: row.id, state: "approved", scope: "once" });
    });
    await this.#audit.before(row, "promotion.begin", row.approved.length > 0 ? "APPROVED" : "RECORDED");
    parts.reach("promotion.begun");
    const experiment = source?.experiment ?? null;
    const { checks, only, include } = row.input ?? {};
    const sameChecks = checks === undefined && only === undefined && include === undefined;
    const view = await openProject(parts.store, row.project, parts.state);
    const { setup, folders } = askedLines(view, row.input ?? {}, experiment);
    const { config, hash } = view;
    const ofConfig = config.stages !== undefined && row.input?.branch === undefined;
    const context: StageContext = {
      stages,
      target,
      env,
      setup,
      setupIn: folders.setup,
      checkTimeoutMs: experiment?.input.checkTimeoutMs ?? experiment?.input.timeoutMs,
      known: ({ plan }: PreparedPlan) => experiment !== null && sameChecks && !plan.moved,
      plan: async () => {
        const prepared = await prepare({ ...this.#all, records: this.#records }, required(source), await this.#records.fresh(row.id));
        await this.#records.save(row.id, prepared);
        return prepared;
      },
      distrust: async () => (ofConfig ? this.#distrust(row.project, hash) : undefined),
      takeBack: (failed, reason) => this.#takeBackAfter(failed, reason),
      branch: (now, prepared, stage) => this.#branch.run(now, required(source), prepared, stage, context),
      save: (now, event) =>
        parts.store.change(async (change) => {
          await change.promotions.put(now);
          if (event === "promotion.waiting")
            await change.event("approval.asked", now.sandbox, { approval: now.id, kind: "promotion", target: targetOfQuestion(now) });
          await change.event(event, now.sandbox, {
            promotion: now.id,
            project: now.project,
            state: now.state,
            reason: now.reason,
            hash: now.plan?.hash ?? null,
          });
        }),
    };
    try {
      const ended = await this.#run.go(row, context);
      this.#audit.after(ended);
      return ended;
    } catch (error) {
      const now = (await parts.store.promotions.get(row.id)) ?? row;
      const state = now.written ? "applied" : "failed";
      const ended = { ...now, state, writing: now.writing && !now.written, endedAt: new Date().toISOString() } as const;
      const failed = { ...ended, reason: `${now.written ? "The change is in the folder, but: " : ""}${errorText(error)}` };
      await context.save(failed, "promotion.failed");
      this.#audit.after(failed);
      throw error;
    }
  }

  /** Lines of a config run on this machine as long as they and what they run are what a person trusted. */
  async #distrust(project: string, hash: string | null): Promise<string | undefined> {
    const { trusted, runs, hash: now } = await openProject(this.#all.parts.store, project, this.#all.parts.state);
    // The lines are those of the config with this hash: one that was written or removed since says nothing about them.
    if (trusted && now === hash) return undefined;
    const named = runs.files.slice(0, NAMED_FILES);
    const which = named.length === 0 ? "" : ` (${named.join(", ")})`;
    return `What vivarium.json runs on this machine${which} is not what was trusted: look at it, then run \`viv trust\`.`;
  }

  async #takeBackAfter(failed: PromotionRow, reason: string): Promise<{ undone: boolean; said: string }> {
    const undo = await this.#undo.takeBack(failed, `Its checks failed: ${reason}`);
    if (undo.state === "applied") return { undone: true, said: "The folder is as it was before." };
    return { undone: false, said: `The folder could not be brought back: ${undo.reason ?? "unknown"}` };
  }

  /** Takes back a promotion, or the last one of a project. */
  async undo(id: string | undefined, project: string | undefined): Promise<Promotion> {
    const meant = id === undefined ? await this.#last(project) : await this.#find(id);
    return this.#alone(meant.project, async () => {
      const row = await this.#find(meant.id);
      requireUndoable(row);
      await requireSettled(row.project);
      await this.#audit.before(row, "promotion.undo", "RECORDED");
      const said = await this.#undo.stages(row);
      const undo = await this.#undo.takeBack(row, said);
      this.#audit.after(undo);
      return shown(undo);
    });
  }

  async #last(project: string | undefined): Promise<PromotionRow> {
    if (project === undefined) throw new VivError("invalid_input", "Name a promotion or a project.");
    const { parts } = this.#all;
    const view = await openProject(parts.store, project, parts.state);
    const rows = await parts.store.promotions.list({ project: view.row.path });
    const row = rows.find(({ state, written }) => state === "applied" && written);
    const last = rows.find(({ state, branch }) => state === "applied" && branch !== null);
    if (last !== undefined && (row === undefined || last.createdAt > row.createdAt)) throw notInFolder(last, row);
    if (row === undefined)
      throw new VivError("not_found", `Nothing was promoted to ${view.row.path} that could be undone.`, {
        remedy: "Look at `viv promotions --all`.",
      });
    return row;
  }

  async list(project: string | undefined, all: boolean): Promise<Promotion[]> {
    const rows = await this.#all.parts.store.promotions.list({ project }, { limit: all ? LIMITS.listedLeftOut : 20 });
    return rows.map(shown);
  }

  /** Those that wait for a person. */
  async questions(): Promise<Question[]> {
    return (await this.#all.parts.store.promotions.list({ open: true })).filter(isWaiting).map(asQuestion);
  }

  async question(id: string): Promise<Question> {
    return asQuestion(await this.#find(id));
  }

  /** Ends one that waits; what is in the folder stays there. */
  async discard(id: string, why: string): Promise<Promotion> {
    const found = await this.#find(id);
    return this.#alone(found.project, async () => {
      const ended = await this.#all.parts.store.change(async (change) => {
        const row = await change.promotions.get(id);
        if (row === undefined || !isWaiting(row))
          throw new VivError("illegal_transition", `Promotion ${id} is ${row?.state ?? "gone"} and waits for nothing.`, {
            remedy: "Look at `viv promotions`.",
          });
        return discard(change, row, why);
      });
      this.#audit.after(ended);
      return shown(ended);
    });
  }

  async inspect(id: string): Promise<Promotion> {
    return shown(await this.#find(id));
  }

  async #find(id: string): Promise<PromotionRow> {
    const row = await this.#all.parts.store.promotions.get(id);
    if (row === undefined) throw new VivError("not_found", `There is no promotion ${id}.`, { remedy: "Look at `viv promotions --all`." });
    return row;
  }

  /** Brings what an earlier server left to its end: the project is before or after, and the record says which. */
  async recover(): Promise<void> {
    const { store, log } = this.#all.parts;
    for (const row of await store.promotions.list({ open: true })) {
      if ((isWaiting(row) && !row.writing) || this.#all.parts.locks.busy(`promotion:${row.project}`)) continue;
      try {
        await this.#alone(row.project, () => this.#undo.settle(row));
        this.#audit.after((await store.promotions.get(row.id)) ?? row);
      } catch (error) {
        log.warn("a promotion can't be brought to its end yet", { promotion: row.id, project: row.project, error: errorText(error) });
      }
    }
    // A transaction that was committed and not cleaned up has no open row any more.
    for (const id of await this.#all.transactions.pending()) {
      const row = await store.promotions.get(id);
      if (row !== undefined && !row.writing) await this.#alone(row.project, () => this.#writer.recover(row));
    }
    await this.#all.transactions.clear();
    await this.#forgetOld();
  }

  /** Goes on with what could not be brought to its end, such as on a disk that was read-only. */
  async retry(): Promise<void> {
    const { store, locks } = this.#all.parts;
    const rows = await store.promotions.list({ open: true });
    if (rows.some((row) => row.writing && !locks.busy(`promotion:${row.project}`))) await this.recover();
  }

  /** Contents for an undo are not kept for ever. */
  async #forgetOld(): Promise<void> {
    const before = new Date(Date.now() - LIMITS.keptPromotionMs).toISOString();
    for (const row of await this.#all.parts.store.promotions.list())
      if (row.createdAt < before && !row.writing && row.state !== "waiting") await this.#writer.forget(row.id);
  }

  /** Two promotions to one project never meet. */
  async #alone<T>(project: string, work: () => Promise<T>): Promise<T> {
    return this.#all.parts.locks.run(`promotion:${project}`, work);
  }

  close(): void {
    this.#stopping.abort();
  }
}

function required(source: Origin | undefined): Origin {
  if (source === undefined)
    throw new VivError("not_found", "The sandbox that the change comes from is gone.", { remedy: "Promote another one." });
  return source;
}

/** A branch came last: a caller that says undo without an id may mean that one. */
function notInFolder({ id, branch, input }: PromotionRow, earlier: PromotionRow | undefined): VivError {
  const name = branch?.name ?? "";
  const remote = input?.branch === undefined ? undefined : remoteOf(input.branch);
  const pushed = branch?.pushedTo == null ? "" : `, the pushed one with \`git push ${remote ?? "REMOTE"} --delete ${name}\``;
  const before = earlier === undefined ? "" : ` \`viv undo ${earlier.id}\` takes back the promotion before it.`;
  return new VivError("illegal_transition", `Promotion ${id} is the branch ${name}: nothing of it is in the folder.`, {
    remedy: `Remove the branch with \`git branch -D ${name}\`${pushed}.${before}`,
  });
}

function requireUndoable(row: PromotionRow): void {
  const { id, kind, state, branch } = row;
  if (state === "applied" && row.written) return;
  if (branch !== null) throw notInFolder(row, undefined);
  const [what, remedy] =
    kind === "undo"
      ? ["an undo", "Promote the sandbox again."]
      : state === "applied"
        ? ["not in the folder", "Look at `viv promotions`."]
        : [state, "Look at `viv promotions`."];
  throw new VivError("illegal_transition", `Promotion ${id} is ${what} and can't be undone.`, { remedy });
}
