/** The face of this folder: runs of agents, those under way and those that ended, and what is said to them. */
import { errorText } from "../../base/host/log.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { Run, RunMessage, type AgentChoice, type MessageWay, type RunEvent } from "../../base/schema/run.ts";
import type { AutonomyLevel } from "../../base/schema/policy.ts";
import type { Experiment } from "../../base/schema/experiment.ts";
import type { RunRow, SandboxRow } from "../../base/store/rows.ts";
import { Patience } from "../../base/host/patience.ts";
import type { Change } from "../../base/store/store.ts";
import type { Approvals } from "../../rules/approvals/approvals.ts";
import type { Audit } from "../../rules/audit/audit.ts";
import type { Models } from "../../rules/models/models.ts";
import type { Conversations } from "../conversations/conversations.ts";
import type { Agents } from "./agents.ts";
import type { AgentEnd } from "./agent-end.ts";
import type { AgentParts } from "./agent-process.ts";
import type { DriftJudge } from "../guardian/guardian.ts";
import { missingForFullAutonomy } from "../guardian/settings.ts";
import { takenOver } from "./hand-over.ts";
import { Heartbeats } from "./heartbeats.ts";
import { MessageQueue, newMessage } from "./message-queue.ts";
import { companionOf, namedModels } from "./new-run.ts";
import { spentBy } from "./run-cost.ts";
import { RunFeed } from "./run-feed.ts";
import type { ReadConversation } from "./run-gateway.ts";
import { RunJournal, type RunListener } from "./run-journal.ts";
import { RunWork, type RunSignals } from "./run-work.ts";

export interface RunsParts extends AgentParts {
  readonly models: Models;
  readonly approvals: Approvals;
  readonly audit: Audit;
  readonly conversations: Conversations;
  readonly agents: Agents;
  /** Folder for what is taken out of sandboxes to be compared. */
  readonly temporary: string;
  /** Asked about drift; only where a model is configured. */
  readonly judge?: ((payer: SandboxRow) => DriftJudge) | undefined;
}

const LISTED = 100;

export class Runs {
  readonly #all: RunsParts;
  /** Runs that this server works on. */
  readonly #active = new Map<string, RunWork>();
  readonly #taken = new Set<string>();
  readonly #feed: RunFeed;
  readonly #heartbeats: Heartbeats;
  readonly #patience: Patience;
  #closed = false;

  constructor(all: RunsParts) {
    this.#all = all;
    this.#feed = new RunFeed(all.parts.store);
    this.#patience = new Patience(all.parts.log, { part: "runs" });
    this.#heartbeats = new Heartbeats(all.parts.live, all.parts.log);
  }

  /** The program of an agent that can work here; refuses what could not even begin. */
  check(
    { agent, guardian = "full", budget }: AgentChoice,
    { project, env, level }: { project: string; env: Readonly<Record<string, string>> | undefined; level: AutonomyLevel | undefined },
  ): { program: string } {
    const lacks = missingForFullAutonomy({
      level: level ?? null,
      guardian,
      timeoutMs: LIMITS.runTimeoutMs,
      budget: budget ?? this.#anyBudget(),
    });
    if (lacks !== null) throw new VivError("invalid_input", lacks, { remedy: "Give it with --budget, or take a lower level." });
    return this.#all.agents.ready(agent, { path: env?.["PATH"], project });
  }

  /** Refuses models that these agents, or those that they may ask, can't work with. */
  async requireModels(choices: readonly AgentChoice[]): Promise<void> {
    await Promise.all(namedModels(choices).map(({ agent, model }) => this.#all.agents.requireModel(agent, model)));
  }

  /** A budget of the user's config holds for runs, too. */
  #anyBudget(): number | null {
    return Object.values(this.#all.parts.user.budgets).find((dollars) => dollars !== undefined) ?? null;
  }

  /** Agents that it may ask, with the program of each; refuses those that could not even begin. */
  companions(choice: AgentChoice, place: Parameters<Runs["check"]>[1]): NonNullable<RunRow["with"]> {
    return (choice.with ?? []).map((asked) => {
      const { role } = asked;
      const { agent, model } = companionOf(choice, asked);
      const { program } = this.check({ ...choice, agent }, place);
      return { role, agent, program, ...(model === undefined ? {} : { model }) };
    });
  }

  /** Writes a new run down, together with what it is a part of. */
  async put(change: Change, row: RunRow): Promise<void> {
    await change.runs.put(row);
    await change.runMessages.put(newMessage(row.id, 1, "task", row.task, "steer"));
    await this.#all.conversations.append(change, { run: row.id, project: row.project }, [{ role: "task", kind: "text", text: row.task }]);
    await change.event("run.created", null, { run: row.id, agent: row.agent, experiment: row.experiment });
  }

  /** One agent on its task in this sandbox, to its end: from the start, or from where an earlier server was. */
  async work(id: string, sandbox: SandboxRow, protect: readonly string[] | null, signals: RunSignals): Promise<AgentEnd> {
    const { journal, messages } = await this.#take(id);
    try {
      if (journal.row.sandbox !== sandbox.id) await this.#anew(journal, messages, sandbox);
      const adapter = this.#all.agents.adapter(journal.row.agent);
      const work = new RunWork(this.#all, journal, messages, { sandbox, adapter, models: this.#all.models.inside(), protect });
      this.#active.set(id, work);
      if (this.#closed) work.close();
      const end = await work.run(signals, this.#heartbeats);
      messages.end();
      const cost = await this.spent(journal.row);
      const { outcome } = end;
      const reason = end.reason && this.#all.models.plainly(sandbox.id, end.reason);
      journal.change({ state: "completing", activity: "ended", activityUntil: null, outcome, reason, cost }, "run.completing");
      await journal.written();
      this.#all.parts.reach("run.ended");
      return { ...end, reason };
    } finally {
      this.#active.delete(id);
      this.#taken.delete(id);
    }
  }

  /** For a sandbox that it has not worked in: whatever it did in another one is gone with that. */
  async #anew(journal: RunJournal, messages: MessageQueue, sandbox: SandboxRow): Promise<void> {
    const again = journal.row.sandbox !== null;
    const context = await this.#handed(journal.row, sandbox);
    const { roleData } = await this.#all.actions.policy(sandbox);
    // An agent that takes over from this run in turn finds it there.
    if (context !== null && !again) journal.said({ role: "system", kind: "summary", text: context, pinned: true });
    journal.change({
      context,
      sandbox: sandbox.id,
      state: "creating",
      command: null,
      session: {},
      outbox: [],
      conversation: null,
      steps: 0,
      mostSteps: journal.row.mostSteps ?? roleData.maxSteps,
      read: { stdout: 0, stderr: 0, total: 0 },
      restarts: journal.row.restarts + (again ? 1 : 0),
    });
    if (again) messages.again();
    await journal.written();
    this.#all.parts.reach("run.placed");
  }

  /** What its agent has to know of the run that it takes over. */
  async #handed({ id, from, handed }: RunRow, paidBy: SandboxRow): Promise<string | null> {
    if (from == null || handed === undefined) return null;
    const before = await this.#all.parts.store.runs.get(from);
    if (before === undefined) return null;
    try {
      const { tokens: budgetTokens, records: first } = handed;
      const { entries } = await this.#all.conversations.view(from, { budgetTokens, first, paidBy });
      return takenOver(before, entries);
    } catch (error) {
      this.#all.parts.log.warn("an agent gets no conversation of the run that it takes over", { run: id, error: errorText(error) });
      return takenOver(before, []);
    }
  }

  /** A run whose files and conversation another one may take over, and how long its conversation is now. */
  async before(id: string): Promise<{ run: string; records: number } | undefined> {
    const row = await this.#all.parts.store.runs.get(id);
    if (row === undefined) return undefined;
    if (row.sandbox === null)
      throw new VivError("not_running", `Run ${id} is ${row.state}: there is nothing yet to take over.`, { remedy: "Wait until it runs." });
    return { run: id, records: (await this.#all.conversations.sums(id)).records };
  }

  /** What was said and done in a run, as an agent reads it; only the first records where that is all it was given. */
  async remembered(
    run: string,
    { budget, search, first }: { readonly budget: number; readonly search: string | undefined; readonly first?: number | undefined },
  ): Promise<ReadConversation> {
    const { conversations } = this.#all;
    const { records } = await conversations.sums(run, first);
    const about = { run, provenance: "record", records } as const;
    if (search === undefined)
      return { ...about, hits: [], entries: (await conversations.view(run, { budgetTokens: budget, first })).entries };
    const hits = await conversations.search(search, { run });
    return { ...about, entries: [], hits: hits.filter(({ sequence }) => sequence <= records) };
  }

  async #take(id: string): Promise<{ journal: RunJournal; messages: MessageQueue }> {
    if (this.#taken.has(id)) throw new VivError("busy", `Run ${id} is under way.`);
    const { store, log } = this.#all.parts;
    const row = await this.row(id);
    this.#taken.add(id);
    const heard: RunListener = (run, events) => {
      this.#feed.publish(run, events);
      this.#active.get(run)?.heard(events);
    };
    const journal = new RunJournal(store, this.#all.conversations, log, row, heard);
    return { journal, messages: new MessageQueue(journal, await store.runMessages.list({ run: id })) };
  }

  /** As it is now, with what is the server's own. */
  async row(id: string): Promise<RunRow> {
    const row = this.#active.get(id)?.journal.row ?? (await this.#all.parts.store.runs.get(id));
    if (row !== undefined) return row;
    throw new VivError("not_found", `There is no run ${id}.`, { remedy: "Look at `viv tasks`." });
  }

  async inspect(id: string): Promise<Run> {
    return this.#shown(await this.row(id));
  }

  async list({ project, all }: { readonly project?: string | undefined; readonly all: boolean }): Promise<Run[]> {
    const rows = await this.#all.parts.store.runs.list({ project }, { limit: all ? undefined : LISTED });
    return Promise.all(rows.map((row) => this.#shown(this.#active.get(row.id)?.journal.row ?? row)));
  }

  async #shown(row: RunRow): Promise<Run> {
    if (row.sandbox === null || row.endedAt !== null) return Run.parse(row);
    const { store } = this.#all.parts;
    const cost = await this.spent(row);
    // A person may have paused its sandbox.
    const isPaused = row.state === "running" && (await store.sandboxes.get(row.sandbox))?.state === "paused";
    return Run.parse({ ...row, cost, ...(isPaused ? { state: "paused" } : {}) });
  }

  /** Dollars that it spent on models, with those that it asked. */
  async spent(row: RunRow): Promise<number> {
    return spentBy(this.#all.parts.store, row);
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Lets those who follow a run look at it again. */
  wake(id: string): void {
    this.#feed.wake(id);
  }

  /** Events after a sequence number, then live ones, until the run has ended or the signal. */
  events(id: string, after: number, signal: AbortSignal): AsyncIterable<RunEvent> {
    return this.#feed.listen(id, after, signal, async () => (await this.row(id)).endedAt !== null);
  }

  async page(id: string, after: number, limit: number): Promise<RunEvent[]> {
    return this.#all.parts.store.runEvents.list({ run: (await this.row(id)).id, after, limit });
  }

  /** The last that the agent said. */
  async lastWords(id: string): Promise<{ text: string }> {
    const events = await this.#all.parts.store.runEvents.list({ run: id, after: 0, limit: LISTED, newest: true });
    const said = events.findLast((event) => event.type === "finished" || event.type === "error" || event.type === "message");
    return { text: said !== undefined && "text" in said ? said.text : "" };
  }

  async messages(id: string): Promise<RunMessage[]> {
    const rows = this.#active.get(id)?.messages.all ?? (await this.#all.parts.store.runMessages.list({ run: (await this.row(id)).id }));
    return rows.map((row) => RunMessage.parse(row));
  }

  /** Answers once the message is written down; the agent has it when its state says so. */
  async say(id: string, text: string, way: MessageWay): Promise<RunMessage> {
    const active = await this.#underWay(id);
    active.journal.requireRoom();
    const message = active.messages.add("person", text, way);
    await active.journal.written();
    this.#all.parts.reach("run.said");
    active.agent?.wake();
    return RunMessage.parse(message);
  }

  /** Ends what the agent does now; it goes on with what it is told next. */
  async interrupt(id: string): Promise<Run> {
    const { agent, journal } = await this.#underWay(id);
    if (agent === undefined) throw new VivError("not_running", `The agent of run ${id} has not started yet.`);
    agent.interrupt();
    return this.#shown(journal.row);
  }

  /** Ends the agent, and keeps its work. */
  async stop(id: string): Promise<Run> {
    const work = await this.#underWay(id);
    work.stop("cancelled", "A person stopped it.");
    return this.#shown(work.journal.row);
  }

  async #underWay(id: string): Promise<RunWork> {
    const active = this.#active.get(id);
    if (active !== undefined) return active;
    const row = await this.row(id);
    const remedy = row.endedAt === null ? "Wait until it runs." : `\`viv task "..." --from ${id}\` lets an agent go on from what it left.`;
    throw new VivError("not_running", `Run ${id} is ${row.state}, and takes no messages.`, { remedy });
  }

  /** The run that works in a sandbox. */
  in(sandbox: string): RunWork | undefined {
    return [...this.#active.values()].find((work) => work.sandbox.id === sandbox);
  }

  /** Brings a sandbox back together with the conversation of the run in it; false where there is none. */
  async rollBack(sandbox: string, reference: string): Promise<boolean> {
    const work = this.in((await this.#all.sandboxes.find(sandbox)).id);
    if (work === undefined || work.hasEnded) return false;
    const { id } = await this.#all.sandboxes.snapshots.findWhole(work.sandbox, reference);
    await work.rollBack(id, `The files and this conversation were brought back to an earlier state (${id}). Go on from there.`);
    return true;
  }

  /** The experiment that they were attempts of has ended. */
  async settle(experiment: Experiment, promotionFailed: boolean): Promise<void> {
    for (const row of await this.#all.parts.store.runs.list({ experiment: experiment.id, open: true })) {
      // A review ends by itself.
      if (row.review !== undefined) continue;
      const attempt = experiment.attempts.find(({ index }) => index === row.attempt);
      const isUnpromoted = promotionFailed && attempt?.index === experiment.winner;
      const isGood = row.outcome === "done" && attempt?.state === "done" && (attempt.checked?.passed ?? true) && !isUnpromoted;
      const state = isGood ? "completed" : "failed";
      const outcome =
        row.outcome === "done" && !isGood ? "failed" : (row.outcome ?? (experiment.state === "cancelled" ? "cancelled" : "failed"));
      const reason = isUnpromoted ? experiment.reason : isGood ? row.reason : (row.reason ?? attempt?.reason ?? "Its checks did not pass.");
      const snapshot = attempt?.snapshot ?? null;
      const ended: RunRow = { ...row, state, outcome, reason, snapshot, activity: "ended", endedAt: new Date().toISOString() };
      await this.#patience.until(() =>
        this.#all.parts.store.change(async (change) => {
          await change.runs.put(ended);
          await change.event(`run.${state}`, row.sandbox, { run: row.id, state, outcome, reason, agent: row.agent });
        }),
      );
      this.#feed.wake(row.id);
    }
  }

  /** Of an experiment that is removed. */
  async remove(change: Change, experiment: string): Promise<void> {
    for (const { id } of await change.runs.list({ experiment })) {
      await change.runEvents.remove(id);
      await change.conversations.remove(id);
      await change.runs.remove(id);
    }
  }

  /** What is under way goes on without this server. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#patience.giveUp();
    this.#heartbeats.close();
    for (const work of this.#active.values()) {
      await work.journal.finish().catch((error: unknown) => this.#all.parts.log.warn("run not written", { error: errorText(error) }));
      work.close();
    }
    this.#feed.close();
  }
}
