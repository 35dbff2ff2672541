/** What is to be said to the agent of a run: urgent first, then in order. Each message is written to the agent at most once. */
import { VivError } from "../../base/schema/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { MessageWay, RunMessage } from "../../base/schema/run.ts";
import type { RunMessageRow } from "../../base/store/rows.ts";
import type { RunJournal } from "./run-journal.ts";

export class MessageQueue {
  readonly #journal: RunJournal;
  readonly #messages: RunMessageRow[];
  #closed = false;
  #added = Promise.withResolvers<void>();

  constructor(journal: RunJournal, messages: readonly RunMessageRow[]) {
    this.#journal = journal;
    this.#messages = [...messages];
  }

  get all(): readonly RunMessageRow[] {
    return this.#messages;
  }

  /** Written down once the journal is. */
  add(from: RunMessage["from"], text: string, way: MessageWay): RunMessageRow {
    if (this.#closed) throw new VivError("not_running", "The agent has ended its work, and takes no more messages.");
    if (this.#messages.filter(({ state }) => state === "queued").length >= LIMITS.runMessages)
      throw new VivError("no_capacity", `${LIMITS.runMessages} messages wait for this agent already.`);
    const message = newMessage(this.#journal.row.id, this.#messages.length + 1, from, text, way);
    this.#messages.push(message);
    this.#journal.message(message);
    this.#wake();
    return message;
  }

  /** A word of the guardian's to an agent that is about to begin; where too many wait already, those are enough for it to go on. */
  tell(text: string): void {
    if (!this.#closed && this.#messages.filter(({ state }) => state === "queued").length < LIMITS.runMessages)
      this.add("guardian", text, "urgent");
  }

  /** Resolves when there is a new one, or when no more are taken. */
  get added(): Promise<void> {
    return this.#added.promise;
  }

  #wake(): void {
    this.#added.resolve();
    this.#added = Promise.withResolvers<void>();
  }

  /** The one that the agent gets now; those for the end of its turn only then. */
  next(turnEnded: boolean): RunMessageRow | undefined {
    const waiting = this.#messages.filter(({ state, way }) => state === "queued" && (turnEnded || way !== "after-turn"));
    // An agent that begins a new conversation gets its task first.
    return waiting.find(({ from }) => from === "task") ?? waiting.find(({ way }) => way === "urgent") ?? waiting[0];
  }

  sent(id: string): void {
    this.#settle(id, { state: "sent" });
  }

  /** The agent has it: from here on it is a part of the conversation. */
  delivered(id: string): void {
    const message = this.#settle(id, { state: "delivered", settledAt: new Date().toISOString() });
    if (message === undefined) return;
    const from = message.from === "guardian" ? "guardian" : "person";
    this.#journal.event({ type: "message", from, text: message.text, message: id });
  }

  failed(id: string, reason: string): void {
    this.#settle(id, { state: "failed", reason, settledAt: new Date().toISOString() });
  }

  /** It was written and never read. One that waited for the end of a turn has waited already. */
  lost(id: string): void {
    const way = this.#messages.find((message) => message.id === id)?.way;
    this.#settle(id, { state: "queued", ...(way === "after-turn" ? { way: "steer" } : {}) });
  }

  /** Whether some were written that the agent has not confirmed. */
  get unconfirmed(): readonly RunMessageRow[] {
    return this.#messages.filter(({ state }) => state === "sent");
  }

  /** The agent that goes on begins at an earlier moment: what it has not confirmed it is given again. */
  unsent(): void {
    this.#closed = false;
    for (const { id } of this.unconfirmed) this.lost(id);
  }

  /** A new agent begins: the task and what was never settled are for it. */
  again(): void {
    this.#closed = false;
    for (const [index, message] of this.#messages.entries()) {
      if (message.from !== "task" && message.state !== "sent") continue;
      const now: RunMessageRow = { ...message, state: "queued", reason: null, settledAt: null };
      this.#messages[index] = now;
      this.#journal.message(now);
    }
  }

  /** No more are taken: the agent is about to end. */
  close(): void {
    this.#closed = true;
    this.#wake();
  }

  /** The agent has ended: what it did not get it never will. */
  end(): void {
    this.close();
    for (const { id, state } of this.#messages) {
      if (state === "queued") this.failed(id, "The agent ended before it could be given the message.");
      if (state === "sent") this.failed(id, "The agent ended before it said that it has the message; it may have read it.");
    }
  }

  #settle(id: string, patch: Partial<RunMessageRow>): RunMessageRow | undefined {
    const index = this.#messages.findIndex((message) => message.id === id);
    const before = this.#messages[index];
    if (before === undefined || before.state === "delivered" || before.state === "failed") return undefined;
    const now = { ...before, ...patch };
    this.#messages[index] = now;
    this.#journal.message(now);
    return now;
  }
}

export function newMessage(run: string, sequence: number, from: RunMessage["from"], text: string, way: MessageWay): RunMessageRow {
  return {
    id: newId("message"),
    run,
    sequence,
    from,
    text,
    way,
    state: "queued",
    reason: null,
    createdAt: new Date().toISOString(),
    settledAt: null,
  };
}
