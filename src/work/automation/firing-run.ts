/**
 * One firing from its turn to its end. Each state is on disk before what follows it begins, and what follows has an id that is known
 * before, or is found by what it was made for; so a server that takes over after a crash does nothing a second time:
 *
 * - triaged: nothing was begun. A direct look is made again, which changes nothing.
 * - working: the experiment has the id that the row names. It is started if there is none of that id, else listened to.
 * - verified: a promotion of the experiment is looked for; one that left nothing is begun again.
 * - promoted: reality is looked at again, and what is worse is undone once: the promotion says whether it was.
 */
import { errorText } from "../../base/host/log.ts";
import { Patience } from "../../base/host/patience.ts";
import type { FiringState } from "../../base/schema/automation.ts";
import type { CheckResult } from "../../base/schema/check.ts";
import { VivError } from "../../base/schema/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { isFinal as isFinalExperiment, type ExperimentEnds } from "./experiment-ends.ts";
import type { AutomationRow, ExperimentRow, FiringRow, PromotionRow } from "../../base/store/rows.ts";
import type { Change } from "../../base/store/store.ts";
import { openProject, type ProjectView } from "../../sandbox/projects/projects.ts";
import { runOutside } from "../promotion/outside.ts";
import { mayPromote, tells } from "./authority.ts";
import { environmentOf, experimentInput } from "./experiment-input.ts";
import { advanced, putFiring } from "./firing-record.ts";
import { isFinalState } from "./firing-state.ts";
import { tell, type Notice } from "./notice.ts";
import type { AutomationParts } from "./parts.ts";
import { lookAtReality, worseIn, type RealityLook } from "./reality.ts";

const LISTED_FILES = 50;
const OUTPUT_CHARACTERS = 16 * 1024;

export interface FiringRunParts extends AutomationParts {
  readonly ends: ExperimentEnds;
  /** Stops the automation of a firing from firing again, with the reason, in the same change. */
  readonly mute: (change: Change, automation: string, reason: string) => Promise<void>;
}

export class FiringRun {
  readonly #all: FiringRunParts;
  readonly #automation: AutomationRow;
  #row: FiringRow;
  /** Why it is ended before its time. */
  #stopped: string | undefined;
  readonly #stopping = new AbortController();
  readonly #closing = new AbortController();
  readonly #patience: Patience;
  /** Whether an earlier server had begun it. */
  readonly #isTakenOver: boolean;

  constructor(all: FiringRunParts, automation: AutomationRow, row: FiringRow, isTakenOver: boolean) {
    this.#all = all;
    this.#automation = automation;
    this.#row = row;
    this.#isTakenOver = isTakenOver;
    this.#patience = new Patience(all.parts.log, { firing: row.id });
  }

  get row(): FiringRow {
    return this.#row;
  }

  /** To its end, or until it waits for a person, or until this server lets go of it. */
  async work(): Promise<void> {
    while (this.#row.endedAt === null && this.#row.state !== "waiting" && !this.#closing.signal.aborted) {
      try {
        await this.#step();
      } catch (error) {
        if (this.#closing.signal.aborted) return;
        await this.#failed(error);
      }
    }
    if (this.#row.endedAt !== null) await this.#letGo();
  }

  /** Ends it; what was done so far is kept. */
  async stop(why: string): Promise<void> {
    this.#stopped = why;
    this.#stopping.abort();
    const { experiment } = this.#row;
    if (experiment === null || (await this.#all.parts.store.experiments.get(experiment)) === undefined) return;
    await this.#all.experiments.cancel(experiment, false);
  }

  /** Lets go of it: the next server goes on. */
  close(): void {
    this.#closing.abort();
    this.#patience.giveUp();
  }

  async #step(): Promise<void> {
    if (this.#stopped !== undefined && ["triaged", "working", "verified"].includes(this.#row.state))
      return this.#to("failed", this.#stopped);
    switch (this.#row.state) {
      case "triaged":
        return this.#begin();
      case "working":
        return this.#follow();
      case "verified":
        return this.#promote();
      case "promoted":
        return this.#judge();
      default:
        throw new VivError("internal", `Firing ${this.#row.id} is ${this.#row.state} and was begun.`);
    }
  }

  async #begin(): Promise<void> {
    const { triage } = this.#row;
    if (triage?.way === "alert") return this.#to("alerted", `${this.#what()} Nothing was done: ${lower(triage.reason)}`);
    if (triage?.way === "direct") return this.#look();
    await this.#to("working", null, { experiment: newId("experiment") });
    this.#all.parts.reach("firing.working");
  }

  /** Lines that only look run where they look: in reality. */
  async #look(): Promise<void> {
    const env = environmentOf(this.#automation, this.#all.env);
    const results: CheckResult[] = [];
    for (const line of this.#automation.spec.run ?? [])
      results.push(await runOutside(this.#automation.project, line, env, this.#bounds(LIMITS.directLookMs)));
    const output = results.map((each) => each.output).join("");
    const failed = results.find(({ passed }) => !passed);
    const cut = output.slice(-OUTPUT_CHARACTERS);
    if (failed === undefined) await this.#to("done", "It looked; what it saw is in the record.", { output: cut });
    else await this.#to("failed", `\`${failed.command}\` ended with ${failed.exitCode}.`, { output: cut });
  }

  /** What runs in reality ends with its time, with its automation, and with the server. */
  #bounds(timeoutMs: number): { timeoutMs: number; signal: AbortSignal } {
    return { timeoutMs, signal: AbortSignal.any([this.#closing.signal, this.#stopping.signal]) };
  }

  async #follow(): Promise<void> {
    const { store, reach } = this.#all.parts;
    const id = this.#row.experiment ?? "";
    if ((await store.experiments.get(id)) === undefined) {
      await this.#all.experiments.start(experimentInput(this.#automation, this.#row, this.#all.env), id);
      reach("firing.started");
    }
    const ended = await this.#all.ends.of(id, this.#closing.signal);
    const experiment = ended.state === "choosing" && this.#stopped === undefined ? await this.#choose(ended) : ended;
    const cost = experiment.attempts.reduce((sum, attempt) => sum + (attempt.cost ?? 0), 0);
    if (this.#stopped !== undefined) return this.#to("failed", this.#stopped, { cost });
    const winner = experiment.attempts.find(({ index }) => index === experiment.winner);
    if (winner !== undefined) {
      await this.#to("verified", experiment.reason, { cost, before: experiment.baseline?.checks ?? [] });
      reach("firing.verified");
    } else if (changedNothing(experiment)) await this.#to("done", "There was nothing to change.", { cost });
    else await this.#to("failed", experiment.reason ?? `The experiment is ${experiment.state}.`, { cost });
  }

  /** The best of those whose change alone passes; the rules of the experiment put them in order. */
  async #choose(ended: ExperimentRow): Promise<ExperimentRow> {
    const [best] = ended.attempts
      .filter(({ verified }) => verified?.passed === true)
      .toSorted((one, other) => (one.rank ?? Infinity) - (other.rank ?? Infinity));
    if (best === undefined) throw new VivError("internal", "No attempt of the experiment can be chosen.");
    const by = `the automation ${this.#automation.name}, as the best whose change passes alone`;
    await this.#all.ends.resting(ended.id, this.#closing.signal, () => this.#all.experiments.pick(ended.id, best.index, by));
    return this.#all.experiments.row(ended.id);
  }

  async #promote(): Promise<void> {
    const { promotions, parts } = this.#all;
    if (promotions === undefined) throw new VivError("unsupported", "This machine has no cell, and promotions need it.");
    if (this.#automation.spec.dryRun) return this.#dryRun();
    const earlier = await this.#earlierPromotion();
    if (earlier !== undefined) return this.#promotedAs(earlier);
    const acts = this.#row.triage?.way === "sandbox" && mayPromote(this.#row.authority ?? "alert-only");
    const view = await this.#view();
    if (this.#automation.source === "config" && view.config.automations[this.#automation.name] === undefined)
      throw new VivError("not_found", "The automation was removed from vivarium.json; what was tried is kept.");
    const same = await this.#sameProposal();
    if (same !== undefined) return this.#to("done", `The same change waits for a person already, as the promotion ${same}.`);
    if (this.#automation.spec.reality.length > 0 && acts) {
      const { results } = await this.#reality(view);
      await this.#write({ ...this.#row, before: results });
    }
    parts.reach("firing.promoting");
    const message = `Automation ${this.#automation.name}: ${this.#row.seen[0]?.text ?? this.#row.kind}`.slice(0, LIMITS.seenCharacters);
    const experiment = this.#row.experiment ?? "";
    const env = environmentOf(this.#automation, this.#all.env);
    const { id } = await promotions.promote({ experiment, allowRisky: false, ask: !acts, env, message });
    parts.reach("firing.applied");
    const row = await parts.store.promotions.get(id);
    if (row === undefined) throw new VivError("internal", `The promotion ${id} is gone.`);
    return this.#promotedAs(row);
  }

  async #dryRun(): Promise<void> {
    const { promotions } = this.#all;
    const plan = await promotions?.plan({ experiment: this.#row.experiment ?? "" });
    const files = plan?.changes.map(({ path }) => path).slice(0, LISTED_FILES) ?? [];
    await this.#to("done", `Dry run: ${plan?.files ?? 0} files would have been promoted.`, { files });
  }

  /** One that was begun before a crash and left something, or waits. */
  async #earlierPromotion(): Promise<PromotionRow | undefined> {
    if (!this.#isTakenOver) return undefined;
    const rows = await this.#all.parts.store.promotions.list({ project: this.#row.project });
    return rows.find(
      ({ kind, experiment, state }) =>
        kind === "promotion" && experiment === this.#row.experiment && (state === "applied" || state === "waiting"),
    );
  }

  /** The promotion of an earlier firing that waits for a person, and would change the same. */
  async #sameProposal(): Promise<string | undefined> {
    const { parts, promotions } = this.#all;
    const rows = await parts.store.firings.list({ automation: this.#automation.id, state: "waiting" });
    if (rows.length === 0) return undefined;
    const plan = await promotions?.plan({ experiment: this.#row.experiment ?? "" });
    for (const { promotion } of rows) {
      const waiting = promotion === null ? undefined : await parts.store.promotions.get(promotion);
      if (waiting?.state === "waiting" && waiting.plan?.hash === plan?.hash) return waiting.id;
    }
    return undefined;
  }

  async #promotedAs(promotion: PromotionRow): Promise<void> {
    const { id, state, reason, plan } = promotion;
    const files = plan?.changes.map(({ path }) => path).slice(0, LISTED_FILES) ?? [];
    const found = { promotion: id, files };
    if (state === "waiting") return this.#to("waiting", reason ?? "A person has to approve it.", found);
    if (state !== "applied") return this.#to("failed", reason ?? `Its promotion is ${state}.`, found);
    await this.#to("promoted", null, found);
    this.#all.parts.reach("firing.promoted");
  }

  /** Reality after the promotion, against before; what is worse is taken back, and the trigger is muted. */
  async #judge(): Promise<void> {
    const { parts, promotions } = this.#all;
    if (this.#row.worse === undefined) {
      const look = await this.#reality(await this.#view());
      const reason = worseIn(this.#row.before, look);
      const after = look.results;
      if (reason === undefined) return this.#end({ ...this.#row, after, worse: false });
      await this.#write({ ...this.#row, after, worse: true, reason });
      parts.reach("firing.judged");
    }
    const promotion = await parts.store.promotions.get(this.#row.promotion ?? "");
    if (promotion?.state === "undone") return this.#undone(await this.#undoOf(promotion.id));
    const undo = await promotions?.undo(promotion?.id, undefined);
    parts.reach("firing.taken-back");
    if (undo?.state === "applied") return this.#undone(undo.id);
    const why = undo?.reason ?? "there is nothing that could.";
    const said = `${this.#row.reason ?? ""} It could not be undone: ${why} The automation is muted.`;
    await this.#end({ ...this.#row, reason: said, undo: undo?.id ?? null }, said);
  }

  async #undoOf(promotion: string): Promise<string | null> {
    const rows = await this.#all.parts.store.promotions.list({ project: this.#row.project });
    return rows.find(({ undoes, state }) => undoes === promotion && state === "applied")?.id ?? null;
  }

  async #undone(undo: string | null): Promise<void> {
    const reason = `${this.#row.reason ?? ""} It was undone, and the automation is muted.`;
    await this.#to("undone", reason, { undo }, reason);
  }

  /** The end of a promotion that stands. */
  async #end(row: FiringRow, mute?: string): Promise<void> {
    const ended = { ...row, endedAt: this.#now.toISOString() };
    await this.#write(ended, async (change) => {
      if (mute !== undefined) await this.#all.mute(change, row.automation, mute);
      const many = `${row.files.length} ${row.files.length === 1 ? "file" : "files"}`;
      const text = mute ?? `Promoted ${many} into ${row.project}.`;
      if (mute !== undefined || tells(row.authority ?? "alert-only"))
        await tell(change, this.#notice(mute === undefined ? "done" : "alert", text));
    });
    this.#all.parts.reach("firing.ended");
  }

  async #view(): Promise<ProjectView> {
    const { store, state } = this.#all.parts;
    const view = await openProject(store, this.#automation.project, state);
    // Lines of a config run on this machine as long as they and what they run are what a person trusted.
    if (this.#automation.source === "config" && !view.trusted)
      throw new VivError("untrusted_config", "What vivarium.json runs on this machine is not what was trusted.");
    return view;
  }

  async #reality({ config }: ProjectView): Promise<RealityLook> {
    const { reality, checks = config.checks, setup = config.setup, timeout: checkTimeoutMs } = this.#automation.spec;
    const env = environmentOf(this.#automation, this.#all.env);
    return lookAtReality(
      this.#all.verification,
      this.#automation,
      { lines: reality, checks, checkTimeoutMs, setup, env },
      this.#bounds(LIMITS.stageTimeoutMs),
    );
  }

  async #failed(error: unknown): Promise<void> {
    const { code, message } = VivError.from(error);
    if (code === "internal") this.#all.parts.log.warn("a firing failed", { firing: this.#row.id, error: errorText(error) });
    const reason = this.#stopped ?? message;
    if (this.#row.state !== "promoted") return this.#to("failed", reason);
    const said = `The change is in the folder, and could not be judged: ${reason} The automation is muted.`;
    await this.#end({ ...this.#row, reason: said }, said);
  }

  /** Into the next state, on disk; `mute` also stops the automation. */
  async #to(state: FiringState, reason: string | null, patch: Partial<FiringRow> = {}, mute?: string): Promise<void> {
    const row = advanced(this.#row, state, reason, this.#now, patch);
    await this.#patience.until(async () => {
      await this.#all.parts.store.change(async (change) => {
        await putFiring(change, row);
        if (mute !== undefined) await this.#all.mute(change, row.automation, mute);
        const notice = this.#noticeOf(row);
        if (notice !== undefined) await tell(change, notice);
      });
    });
    this.#row = row;
    if (isFinalState(state)) this.#all.parts.reach("firing.ended");
  }

  /** In the same state. */
  async #write(row: FiringRow, also: (change: Change) => Promise<void> = async () => undefined): Promise<void> {
    await this.#patience.until(() =>
      this.#all.parts.store.change(async (change) => {
        await change.firings.put(row);
        await also(change);
      }),
    );
    this.#row = row;
  }

  #noticeOf({ state, reason }: FiringRow): Notice | undefined {
    if (state === "waiting") return this.#notice("question", reason ?? "");
    if (state === "alerted" || state === "failed" || state === "undone") return this.#notice("alert", reason ?? "");
    return undefined;
  }

  #notice(kind: Notice["kind"], text: string): Notice {
    const { name, project, id } = this.#row;
    return { kind, title: `Automation ${name}`, text, link: `/firing/${id}`, project };
  }

  #what(): string {
    const { seen, count } = this.#row;
    const more = count > 1 ? ` (and ${count - 1} more)` : "";
    return `${(seen[0]?.text ?? "It was started.").split("\n")[0] ?? ""}${more}`.replace(/[.:]?$/, ".");
  }

  get #now(): Date {
    return new Date(this.#all.clock.now());
  }

  /** Sandboxes that hold nothing that is still needed; those of work that failed end like any idle sandbox. */
  async #letGo(): Promise<void> {
    const { state, experiment } = this.#row;
    if (experiment === null || !["promoted", "undone", "done"].includes(state)) return;
    const row = await this.#all.parts.store.experiments.get(experiment);
    if (row === undefined || !isFinalExperiment(row.state)) return;
    for (const { sandbox } of row.attempts) if (sandbox !== null) await this.#remove(sandbox);
  }

  async #remove(sandbox: string): Promise<void> {
    try {
      await this.#all.sandboxes.remove(sandbox);
    } catch (error) {
      if (error instanceof VivError && error.code === "not_found") return;
      this.#all.parts.log.warn("the sandbox of a firing was not removed", { firing: this.#row.id, sandbox, error: errorText(error) });
    }
  }
}

function lower(sentence: string): string {
  return `${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}`;
}

/** Every attempt ended well, and none changed anything. */
function changedNothing({ attempts }: ExperimentRow): boolean {
  return attempts.every(({ exitCode, diff }) => exitCode === 0 && diff?.files === 0);
}
