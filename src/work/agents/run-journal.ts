/**
 * What is written down of a run that is under way: its row, its events, its conversation and its messages. Changes that are made together are written
 * together, so that events, the place in the output that they come from, and what the adapter knows always fit.
 */
import { errorText, type Logger } from "../../base/host/log.ts";
import type { EventType } from "../../base/schema/event.ts";
import { EVENT_TEXT_CHARACTERS, type RunEvent, type RunEventBody } from "../../base/schema/run.ts";
import type { RunMessageRow, RunRow } from "../../base/store/rows.ts";
import type { Change, Store } from "../../base/store/store.ts";
import { Patience } from "../../base/host/patience.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Conversations, SaidRecord } from "../conversations/conversations.ts";
import { recordsOf } from "./event-records.ts";

/** Called with the events of a run once they are written. */
export type RunListener = (run: string, events: readonly RunEvent[]) => void;

export class RunJournal {
  readonly #store: Store;
  readonly #conversations: Conversations;
  readonly #log: Logger;
  readonly #listener: RunListener;
  #row: RunRow;
  #events: RunEvent[] = [];
  #messages = new Map<string, RunMessageRow>();
  #notes: EventType[] = [];
  #said: SaidRecord[] = [];
  #isDirty = false;
  #writing: Promise<void> | undefined;
  #closed = false;
  readonly #patience: Patience;

  constructor(store: Store, conversations: Conversations, log: Logger, row: RunRow, listener: RunListener) {
    this.#store = store;
    this.#conversations = conversations;
    this.#log = log;
    this.#row = row;
    this.#listener = listener;
    this.#patience = new Patience(log, { run: row.id });
  }

  get row(): RunRow {
    return this.#row;
  }

  /** With a note in the log of all events where one is named. */
  change(patch: Partial<RunRow>, note?: EventType): void {
    this.#row = { ...this.#row, ...patch };
    if (note !== undefined) this.#notes.push(note);
    this.#touch();
  }

  event(body: RunEventBody): void {
    if (this.#row.events >= LIMITS.runEvents) return;
    const sequence = this.#row.events + 1;
    this.#events.push({ ...shortened(body), sequence, at: new Date().toISOString() });
    this.#row = { ...this.#row, events: sequence };
    this.#touch();
  }

  /** Something that belongs to its conversation and is no event. */
  said(one: SaidRecord): void {
    this.#said.push(one);
    this.#touch();
  }

  message(message: RunMessageRow): void {
    this.#messages.set(message.id, message);
    this.#touch();
  }

  #touch(): void {
    this.#isDirty = true;
    this.#writing ??= this.#write().finally(() => (this.#writing = undefined));
    this.#writing.catch((error: unknown) => this.#log.warn("run not written", { run: this.#row.id, error: errorText(error) }));
  }

  async #write(): Promise<void> {
    while (this.#isDirty && !this.#closed) {
      await Promise.resolve();
      const [row, events, messages, notes] = [this.#row, this.#events, [...this.#messages.values()], this.#notes];
      const said = this.#said;
      this.#said = [];
      this.#events = [];
      this.#messages = new Map();
      this.#notes = [];
      this.#isDirty = false;
      try {
        await this.#patience.until(() =>
          this.#store.change(async (change) => {
            await record(change, row, events, messages, notes);
            await this.#conversations.append(change, { run: row.id, project: row.project }, [...said, ...recordsOf(row.task, events)]);
          }),
        );
      } catch (error) {
        this.#isDirty = true;
        this.#events = [...events, ...this.#events];
        this.#messages = new Map([...messages.map((message) => [message.id, message] as const), ...this.#messages]);
        this.#notes = [...notes, ...this.#notes];
        this.#said = [...said, ...this.#said];
        throw error;
      }
      if (events.length > 0) this.#listener(row.id, events);
    }
  }

  /** Resolves when everything is written, however long the disk is full; rejects if it can't be. */
  async written(): Promise<void> {
    if (this.#isDirty && this.#writing === undefined) this.#touch();
    await this.#writing;
  }

  /** Throws where nothing can be written now: what a person wants to add would wait unkept. */
  requireRoom(): void {
    if (this.#patience.trouble !== undefined) throw this.#patience.trouble;
  }

  /** Writes what there is, if that can be done now. */
  async finish(): Promise<void> {
    this.#patience.giveUp();
    await this.written();
  }

  /** Writes nothing more: what is on disk is what the next server goes on from. */
  close(): void {
    this.#closed = true;
    this.#patience.giveUp();
  }
}

async function record(
  change: Change,
  row: RunRow,
  events: readonly RunEvent[],
  messages: readonly RunMessageRow[],
  notes: readonly EventType[],
): Promise<void> {
  await change.runs.put(row);
  await change.runEvents.append(row.id, events);
  for (const message of messages) await change.runMessages.put(message);
  for (const note of notes)
    await change.event(note, row.sandbox, { run: row.id, state: row.state, outcome: row.outcome, reason: row.reason, agent: row.agent });
}

/** Texts of a hostile program are bounded; what a tool was given, too. */
function shortened(body: RunEventBody): RunEventBody {
  const entries = Object.entries(body).map(([name, value]) => {
    if (typeof value === "string") return [name, short(value)] as const;
    if (name !== "input") return [name, value] as const;
    const text = JSON.stringify(value) ?? "null";
    return [name, text.length <= EVENT_TEXT_CHARACTERS ? value : { shortened: short(text) }] as const;
  });
  return Object.fromEntries(entries) as RunEventBody;
}

export function short(text: string): string {
  if (text.length <= EVENT_TEXT_CHARACTERS) return text;
  const half = Math.floor(EVENT_TEXT_CHARACTERS / 2) - 40;
  return `${text.slice(0, half)}\n[${text.length - 2 * half} characters left out]\n${text.slice(-half)}`;
}
