/**
 * One process of a run, from its start to its end: what it says becomes events, what it asks is decided, what is said to it is written.
 * The process is a background command of the sandbox and goes on while no server is there; the next server attaches to it again.
 */
import { setImmediate as otherWork } from "node:timers/promises";
import { errorText } from "../../base/host/log.ts";
import type { CommandEnd } from "../../base/schema/command.ts";
import { VivError } from "../../base/schema/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { RunEventBody, RunOutcome } from "../../base/schema/run.ts";
import type { PolicyAction } from "../../base/schema/policy.ts";
import type { RunRow, SandboxRow } from "../../base/store/rows.ts";
import { Patience } from "../../base/host/patience.ts";
import type { Actions } from "../../rules/actions/actions.ts";
import type { StartOptions } from "../../sandbox/commands/exec-request.ts";
import type { CommandStream } from "../../sandbox/commands/stream.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import type { Adapter, AgentStart, Heard, Session, SessionState } from "./adapter.ts";
import { activityAfter } from "./activity.ts";
import { hasDied } from "./agent-death.ts";
import { outcomeOf, type AgentEnd, type AgentEnding } from "./agent-end.ts";
import { hasSome, removeMachineSettings, writeConfiguration, writeConfigurationAnew } from "./agent-configuration.ts";
import { AgentInput } from "./agent-input.ts";
import { MessageQueue } from "./message-queue.ts";
import { ModelWaits } from "./model-waits.ts";
import { OutputLines, type OutputLine } from "./output-lines.ts";
import type { RunJournal } from "./run-journal.ts";
import { unaskedReason } from "./unasked.ts";

export interface AgentParts {
  readonly parts: Pick<Parts, "store" | "log" | "live" | "reach" | "backends" | "user">;
  readonly sandboxes: Sandboxes;
  readonly actions: Actions;
}

/** What is done before the agent gets to act. */
export interface Before {
  /** Before it may do what it asked for. */
  action(action: PolicyAction): Promise<void>;
  /** Before it begins a turn. */
  turn(): Promise<void>;
}

export class AgentProcess {
  readonly #all: AgentParts;
  readonly #journal: RunJournal;
  readonly #session: Session;
  readonly #start: AgentStart;
  readonly #adapter: Adapter;
  readonly messages: MessageQueue;
  readonly #before: Before;
  #stream: CommandStream | undefined;
  #ending: AgentEnding | undefined;
  #over: NonNullable<RunRow["over"]> | undefined;
  #idle = false;
  readonly #waits: ModelWaits;
  readonly #asking = new AbortController();
  readonly #patience: Patience;
  /** Settled when this server lets go of it. */
  readonly #closed = Promise.withResolvers<never>();
  #isClosed = false;
  readonly #work = new Set<Promise<void>>();
  readonly #input: AgentInput;
  #giving: Promise<void> = Promise.resolve();
  /** The message that begins a turn for which all is prepared. A session that is not ready yet takes it later. */
  #begins: string | undefined;

  constructor(all: AgentParts, journal: RunJournal, adapter: Adapter, start: AgentStart, messages: MessageQueue, before: Before) {
    this.#before = before;
    this.#all = all;
    this.#journal = journal;
    this.#adapter = adapter;
    this.#start = start;
    this.messages = messages;
    this.#closed.promise.catch(() => undefined);
    this.#input = new AgentInput(all.parts.log);
    this.#patience = new Patience(all.parts.log, { run: journal.row.id });
    this.#asking.signal.addEventListener("abort", () => this.#patience.giveUp(), { once: true });
    const { command, session, idle, over } = journal.row;
    this.#waits = new ModelWaits(journal.row);
    this.#session = adapter.session(start, command === null ? undefined : (session as SessionState));
    if (command === null) return;
    // What the server before had heard.
    this.#idle = idle ?? false;
    this.#over = over ?? undefined;
  }

  /** Starts it, or listens to it again where it runs already; resolves at its end. */
  async run(row: SandboxRow): Promise<AgentEnd> {
    const { command } = this.#journal.row;
    const before = command === null ? undefined : await this.#all.sandboxes.commands.again(row, this.#command(command));
    const stream = before ?? (await this.#begin(row));
    this.#stream = stream;
    this.#flush();
    if (before !== undefined) this.#goOn(row);
    if (this.#ending !== undefined) this.#signal();
    return this.#listen(row, stream);
  }

  /** What an earlier server left open: questions of the agent, and messages that may not have been written. */
  #goOn(row: SandboxRow): void {
    this.#do(row, this.#session.pending());
    if (this.messages.unconfirmed.length === 0) return;
    const line = this.#session.probe();
    if (line !== undefined) this.#write(line);
  }

  #command(id: string, launch = this.#adapter.launch(this.#start)): StartOptions & { readonly id: string } {
    const { command, env, input } = launch;
    const { timeoutMs: wholeMs, startedAt, restarts } = this.#journal.row;
    // All agents of a run share its time.
    const spentMs = restarts === 0 || startedAt === null ? 0 : Date.now() - Date.parse(startedAt);
    const timeoutMs = Math.max(1, Math.round(wholeMs - spentMs));
    return { id, command: [...command], env: { ...env }, stdin: input, timeoutMs, onDisconnect: "keep" };
  }

  /** Lets go of it: it goes on, and the next server listens again. */
  close(): void {
    this.#isClosed = true;
    this.#asking.abort();
    this.#journal.close();
    this.#closed.reject(new VivError("cancelled", "The server stops; the agent goes on."));
  }

  /** A message came, or the run is to be looked at again. */
  wake(): void {
    this.#pump().catch((error: unknown) => this.#all.parts.log.warn("an agent was not given its messages", { error: errorText(error) }));
  }

  /** Something that the agent tells of itself, beside its output. */
  told(event: RunEventBody): void {
    this.#event(event);
  }

  /** A model answered it, so that no limit keeps it waiting any more. */
  modelAnswered(): void {
    if (this.#waits.for !== undefined) this.#event({ type: "resumed", for: this.#waits.for });
  }

  /** Ends its turn. */
  interrupt(): void {
    const line = this.#session.interrupt();
    if (line === undefined) this.#stream?.signal("INT");
    else this.#write(line);
  }

  /** Ends it: its turn first, then the process. */
  stop(outcome: RunOutcome, reason: string): void {
    if (this.#ending !== undefined || this.#isClosed) return;
    this.#ending = { outcome, reason };
    this.#signal();
  }

  /** Kills it. */
  kill(): void {
    if (this.#isClosed) return;
    this.#ending ??= { outcome: "cancelled", reason: "It was cancelled." };
    this.#stream?.signal("KILL");
  }

  #signal(): void {
    if (this.#stream === undefined) return;
    if (this.#adapter.abilities.interrupt) this.interrupt();
    this.#stream.endInput();
    this.#stream.signal("TERM");
    this.#killLater();
  }

  #killLater(): void {
    const timer = setTimeout(() => this.#stream?.signal("KILL"), LIMITS.agentEndMs);
    this.#stream?.end.finally(() => clearTimeout(timer)).catch(() => undefined);
  }

  async #begin(row: SandboxRow): Promise<CommandStream> {
    const { files } = this.#all.parts.live.require(row).walls;
    const hasProjectSettings = await hasSome(files, row.user, this.#start.project, this.#adapter.projectSettings);
    const launch = this.#adapter.launch({ ...this.#start, hasProjectSettings });
    const write = this.#journal.row.restarts === 0 ? writeConfiguration : writeConfigurationAnew;
    // As the user that the agent runs as: it keeps its conversation beside what is written here.
    await Promise.all([
      write(files, row.user, this.#start.folder, launch),
      removeMachineSettings(files, launch),
      this.#all.sandboxes.commands.prepare(row),
    ]);
    const id = this.#journal.row.command ?? newId("command");
    // Chosen before it starts, so that the next server finds it whenever this one dies.
    if (this.#journal.row.command === null) this.#apply(row, this.#session.begin());
    this.#journal.change({ command: id, read: { stdout: 0, stderr: 0, total: 0 }, session: this.#session.state });
    await this.#journal.written();
    this.#all.parts.reach("run.chosen");
    const stream = await this.#all.sandboxes.commands.start(row, this.#command(id, launch));
    this.#all.parts.reach("run.started");
    return stream;
  }

  async #listen(row: SandboxRow, stream: CommandStream): Promise<AgentEnd> {
    const lines = new OutputLines(this.#journal.row.read);
    this.wake();
    const output = stream.output[Symbol.asyncIterator]();
    for (;;) {
      const next = await Promise.race([output.next(), this.#closed.promise]);
      if (next.done === true) break;
      let heard = 0;
      for (const line of lines.feed(next.value)) {
        this.#hear(row, line);
        heard += 1;
        if (heard % LIMITS.runLinesAtOnce !== 0) continue;
        // A change of the database lets nothing else run meanwhile: a flood of short lines is written in many.
        await this.#commit(lines);
        await otherWork();
      }
      await this.#commit(lines);
      await this.#input.untilRead(stream, this.#closed.promise);
    }
    for (const line of lines.end()) this.#hear(row, line);
    const end = await stream.end;
    // Nothing more is given to it: another one may follow, and gets what waits.
    this.#stream = undefined;
    const died = this.#hasDied(end);
    this.#apply(row, this.#session.end(end.exitCode));
    this.#asking.abort();
    await Promise.allSettled(this.#work);
    await this.#commit(lines);
    const outcome = outcomeOf(end, { ending: this.#ending, over: this.#over, isIdle: this.#idle });
    return { ...outcome, command: end, died };
  }

  async #commit(lines: OutputLines): Promise<void> {
    // Adapters bound what they know. Whatever got past that must not grow the row.
    if (JSON.stringify(this.#session.state).length > LIMITS.runSessionCharacters) this.stop("failed", "It left too much open at once.");
    this.#journal.change({ read: lines.read, session: this.#session.state });
    await this.#journal.written();
    this.#all.parts.reach("run.heard");
    this.#flush();
    await this.#pump();
  }

  #hear(row: SandboxRow, line: OutputLine): void {
    if ("lost" in line) {
      this.#journal.event({ type: "gap", bytes: line.lost });
      return;
    }
    if (line.cut) {
      this.#journal.event({ type: "raw", stream: line.stream, text: line.text });
      return;
    }
    this.#apply(row, line.stream === "stdout" ? this.#session.line(line.text) : this.#session.errorLine(line.text));
  }

  /** Notes what came of a line; what has to be written is written once that is on disk. */
  #apply(row: SandboxRow, heard: readonly Heard[]): void {
    for (const each of heard) {
      if ("event" in each) this.#event(each.event);
      else if ("write" in each) this.#journal.change({ outbox: [...this.#journal.row.outbox, each.write] });
      else if ("delivered" in each) this.messages.delivered(each.delivered);
      else if ("lost" in each) this.messages.lost(each.lost);
      else if ("refused" in each) this.messages.failed(each.refused, each.reason);
      else if ("conversation" in each) this.#journal.change({ conversation: each.conversation });
      else if ("turnEnded" in each) this.#rest(true);
      else if ("breach" in each) this.#breached(each.breach);
      // The first cause counts: an agent that gave up ends with an error, too.
      else if ("over" in each) this.#isOver(each);
    }
    this.#do(row, heard);
  }

  #rest(idle: boolean): void {
    this.#idle = idle;
    if (this.#journal.row.idle !== idle) this.#journal.change({ idle });
  }

  #isOver({ over, reason }: Extract<Heard, { over: string }>): void {
    if (this.#over !== undefined) return;
    this.#over = { over, reason };
    this.#journal.change({ over: this.#over });
  }

  #event(event: Extract<Heard, { event: unknown }>["event"]): void {
    const { rawBytes, steps, mostSteps, startedAt, activity } = this.#journal.row;
    if (!this.#waits.isNews(event, Date.now())) return;
    if (event.type === "raw") {
      if (rawBytes > LIMITS.runRawBytes) return;
      this.#journal.change({ rawBytes: rawBytes + event.text.length });
    }
    this.#journal.event(event);
    if (event.type === "turn" && event.state === "began") this.#rest(false);
    if (event.type === "tool_call") {
      this.#journal.change({ steps: steps + 1 });
      if (mostSteps !== null && steps + 1 > mostSteps) this.stop("failed", `It used its ${mostSteps} steps.`);
    }
    this.#journal.change({ ...activityAfter(activity, event) });
    // The first heartbeat.
    if (startedAt === null) this.#journal.change({ startedAt: new Date().toISOString(), state: "running" }, "run.running");
  }

  /** Its questions no longer stand before what it does: it is not given the time that another agent gets to end. */
  #breached(reason: string): void {
    this.#event({ type: "error", text: reason, passing: false });
    this.#isOver({ over: "failed", reason });
    this.#ending ??= { outcome: "failed", reason };
    this.#stream?.signal("KILL");
  }

  /** What needs the rest of the server. */
  #do(row: SandboxRow, heard: readonly Heard[]): void {
    for (const each of heard) {
      const doing = "request" in each ? this.#decide(row, each) : "unasked" in each ? this.#judge(row, each) : undefined;
      if (doing === undefined) continue;
      const work = doing
        .catch((error: unknown) => this.#all.parts.log.warn("an action of an agent was not decided", { error: errorText(error) }))
        .finally(() => this.#work.delete(work));
      this.#work.add(work);
    }
  }

  async #decide(row: SandboxRow, { request, action }: Extract<Heard, { request: string }>): Promise<void> {
    const { signal } = this.#asking;
    let asked = false;
    for (;;) {
      const now = (await this.#all.parts.store.sandboxes.get(row.id)) ?? row;
      // What can't be recorded is not done: the agent waits until it can.
      const decide = () => this.#all.actions.decide(now, { action, wait: asked ? 60 : 0 }, signal);
      const answer = await this.#patience.until(decide).catch((error: unknown) => {
        if (signal.aborted) return undefined;
        return { verdict: "deny" as const, reason: `It could not be decided: ${errorText(error)}` };
      });
      if (answer === undefined || signal.aborted) return;
      if (answer.verdict !== "ask") {
        if (asked) this.#event({ type: "resumed", for: "person" });
        if (answer.verdict === "allow") await this.#before.action(action);
        return this.#answer(request, answer.verdict === "allow", answer.reason);
      }
      if (!asked) this.#event({ type: "waiting", for: "person", until: answer.approval?.deadline ?? null, text: answer.reason });
      asked = true;
    }
  }

  async #judge(row: SandboxRow, { unasked, tool }: Extract<Heard, { unasked: unknown }>): Promise<void> {
    const { verdict, reason } = await this.#patience.until(() => this.#all.actions.afterwards(row, unasked));
    if (verdict !== "allow") this.#breached(unaskedReason(this.#adapter.title, tool, reason));
  }

  async #answer(request: string, allowed: boolean, reason: string): Promise<void> {
    const line = this.#session.answer(request, allowed, reason);
    this.#journal.change({ outbox: [...this.#journal.row.outbox, line], session: this.#session.state });
    await this.#journal.written();
    this.#flush();
  }

  /** Writes what is on disk; that it was written is noted with the next change. */
  #flush(): void {
    const { outbox } = this.#journal.row;
    if (outbox.length === 0 || this.#stream === undefined) return;
    for (const line of outbox) this.#write(line);
    this.#all.parts.reach("run.written");
    this.#journal.change({ outbox: [] });
  }

  #write(line: string): void {
    this.#input.write(this.#stream, line);
  }

  /** One after the other: two at once would both find the same message waiting. */
  #pump(): Promise<void> {
    const given = this.#giving.then(() => this.#give());
    this.#giving = given.catch(() => undefined);
    return given;
  }

  /** Gives the agent what waits for it, and ends it when nothing does. */
  async #give(): Promise<void> {
    if (this.#stream === undefined || this.#ending !== undefined) return;
    for (let next = this.messages.next(this.#idle); next !== undefined; next = this.messages.next(this.#idle)) {
      if ((this.#idle || next.from === "task") && this.#begins !== next.id) await this.#before.turn();
      this.#begins = next.id;
      // Another way to the agent may have taken it meanwhile.
      if (this.messages.next(this.#idle)?.id !== next.id) continue;
      const line = this.#session.message(next.id, next.text);
      if (line === undefined) return;
      this.#rest(false);
      this.messages.sent(next.id);
      this.#journal.change({ session: this.#session.state });
      await this.#journal.written();
      this.#all.parts.reach("run.message");
      this.#write(line);
    }
    if (!this.#idle && this.#over === undefined) return;
    this.messages.close();
    this.#stream.endInput();
    this.#killLater();
  }

  /** Asked before the session hears of the end. */
  #hasDied(end: CommandEnd): boolean {
    if (this.#ending !== undefined || this.#over !== undefined || this.#idle) return false;
    return hasDied(end, this.#journal.row.activity, !this.#adapter.abilities.asks);
  }
}
