/**
 * What of a conversation fits a budget of tokens: task and decisions, the newest records whole, those before them shortened, and all that
 * is older in a few summaries. A call and its result are together in it, or both are not. Only what is chosen is held in memory,
 * and a part of what is being summarised.
 */
import { setImmediate as breathe } from "node:timers/promises";
import type { ContextEntry, ConversationKind, ConversationRecord } from "../../base/schema/conversation.ts";
import type { ConversationLog, ConversationSums, RecordHead } from "../../base/store/conversation-log.ts";
import { shorten } from "./shortening.ts";
import type { Summarizer } from "./summarizer.ts";
import { estimateTokens } from "./tokens.ts";

/** What role, kind and id of an entry take. */
const ENTRY_TOKENS = 6;
/** Of the budget; what one part leaves goes to the next. */
const SHARES = { pinned: 0.4, whole: 0.6, shortened: 0.5 };
const SHORTENED_TOKENS = 160;
/** Not worth an entry. */
const LEAST_TOKENS = 24;
const SUMMARY_TOKENS = 400;
const MOST_SUMMARIES = 32;
/** How much of a record a summary is made from: a few words of a tool, more of what was said. */
const READ_TOKENS: Readonly<Record<ConversationKind, number>> = {
  text: 300,
  decision: 300,
  summary: 500,
  "tool-call": 60,
  "tool-result": 100,
};
const HEADS_PAGE = 500;
const RECORDS_PAGE = 50;
const MOST_PINNED = 500;

type Form = ContextEntry["form"];

export class ViewBuilder {
  readonly #log: ConversationLog;
  readonly #summarizer: Summarizer;
  readonly #run: string;
  readonly #sums: ConversationSums;
  readonly #entries = new Map<number, ContextEntry>();
  #left: number;
  /** Records from here on are chosen. */
  #from: number;
  #tokensFrom = 0;

  constructor(log: ConversationLog, summarizer: Summarizer, run: string, sums: ConversationSums, budget: number) {
    this.#log = log;
    this.#summarizer = summarizer;
    this.#run = run;
    this.#sums = sums;
    this.#left = budget;
    this.#from = sums.records + 1;
  }

  async build(): Promise<ContextEntry[]> {
    const { records, tokens } = this.#sums;
    if (tokens + records * ENTRY_TOKENS <= this.#left) {
      await this.#addNewest(Infinity, wholeOf);
    } else {
      await this.#addPinned(this.#left * SHARES.pinned);
      await this.#addNewest(this.#left * SHARES.whole, wholeOf);
      await this.#addNewest(this.#left * SHARES.shortened, shortenedOf);
      await this.#addSummaries();
    }
    return [...this.#entries.values()].toSorted((one, other) => one.from - other.from);
  }

  /** Tasks come first, then decisions from the newest on. Where they don't fit, they are shortened. */
  async #addPinned(most: number): Promise<void> {
    const oldest = (await this.#log.list({ run: this.#run, limit: 1 })).filter(({ pinned }) => pinned);
    const others = await this.#log.pinned({ run: this.#run, after: oldest[0]?.sequence, before: this.#from, limit: MOST_PINNED });
    const isTask = ({ role }: RecordHead): boolean => role === "task";
    const heads = [...oldest, ...others.filter(isTask), ...others.filter((head) => !isTask(head))];
    let left = most;
    for (const head of heads) {
      if (left < LEAST_TOKENS) break;
      left -= await this.#addRecords([head], left, (record) => shortenedTo(record, Math.floor(left) - ENTRY_TOKENS));
    }
  }

  /** From the newest that is not chosen yet back to the first that does not fit. */
  async #addNewest(most: number, form: (record: ConversationRecord) => ContextEntry): Promise<void> {
    let left = most;
    for (;;) {
      const heads = await this.#log.heads({ run: this.#run, before: this.#from, limit: HEADS_PAGE });
      for (const head of heads) {
        if (!this.#entries.has(head.sequence)) {
          const taken = await this.#addRecords(await this.#together(head), left, form);
          if (taken === 0) return;
          left -= taken;
        }
        this.#from = head.sequence;
        this.#tokensFrom += head.tokens;
      }
      if (heads.length < HEADS_PAGE) return;
      await breathe();
    }
  }

  /** A result with its call. A call that stands here alone has no result: its result would be newer, and chosen with it. */
  async #together(head: RecordHead): Promise<RecordHead[]> {
    if (head.kind !== "tool-result" || head.callId === null) return [head];
    const call = await this.#log.callBefore(this.#run, head.callId, head.sequence);
    return call === undefined || this.#entries.has(call.sequence) ? [head] : [call, head];
  }

  /** All of them or none. Returns what they take. */
  async #addRecords(heads: readonly RecordHead[], most: number, form: (record: ConversationRecord) => ContextEntry): Promise<number> {
    // A record may be far larger than what is left: then it is not even read.
    if (form === wholeOf && heads.reduce((sum, { tokens }) => sum + tokens + ENTRY_TOKENS, 0) > most) return 0;
    const entries: ContextEntry[] = [];
    for (const { sequence } of heads) {
      const record = await this.#log.get(this.#run, sequence);
      if (record !== undefined) entries.push(form(record));
    }
    const taken = entries.reduce((sum, entry) => sum + entry.tokens, 0);
    if (taken > most) return 0;
    for (const entry of entries) this.#entries.set(entry.from, entry);
    this.#left -= taken;
    return taken;
  }

  async #addSummaries(): Promise<void> {
    const last = this.#from - 1;
    if (last < 1 || this.#left < 2 * LEAST_TOKENS) return;
    const number = Math.min(MOST_SUMMARIES, Math.max(1, Math.floor(this.#left / SUMMARY_TOKENS)));
    const size = Math.max(1, (this.#sums.tokens - this.#tokensFrom) / number);
    const each = Math.floor(this.#left / number);
    let episode: ConversationRecord[] = [];
    let tokens = 0;
    for await (const record of this.#unchosen(last)) {
      episode.push({ ...record, text: shorten(record.text, READ_TOKENS[record.kind]) });
      tokens += record.tokens;
      if (tokens < size) continue;
      await this.#addSummary(episode, tokens, each);
      episode = [];
      tokens = 0;
    }
    if (episode.length > 0) await this.#addSummary(episode, tokens, each);
  }

  async *#unchosen(last: number): AsyncGenerator<ConversationRecord> {
    for (let after = 0; after < last;) {
      const page = await this.#log.list({ run: this.#run, after, before: last + 1, limit: RECORDS_PAGE });
      for (const record of page) if (!this.#entries.has(record.sequence)) yield record;
      after = page.at(-1)?.sequence ?? last;
      await breathe();
    }
  }

  async #addSummary(episode: readonly ConversationRecord[], tokens: number, most: number): Promise<void> {
    const [first, last] = [episode[0], episode.at(-1)];
    const room = Math.min(most, this.#left) - ENTRY_TOKENS;
    if (first === undefined || last === undefined || room < LEAST_TOKENS) return;
    const title = `In short, records ${first.sequence} to ${last.sequence} (${tokens} tokens):\n`;
    const said = await this.#summarizer.summarize(episode, room - estimateTokens(title));
    const text = shorten(`${title}${said}`, room);
    const told = { ...last, role: "system", kind: "summary", text, tool: null, callId: null, pinned: false } as const;
    const entry: ContextEntry = { ...entryOf(told, "summary"), from: first.sequence };
    this.#entries.set(entry.from, entry);
    this.#left -= entry.tokens;
  }
}

function costOf(text: string): number {
  return estimateTokens(text) + ENTRY_TOKENS;
}

function entryOf({ sequence, ...record }: ConversationRecord, form: Form): ContextEntry {
  return { from: sequence, to: sequence, ...record, form, tokens: costOf(record.text) };
}

function wholeOf(record: ConversationRecord): ContextEntry {
  return entryOf(record, "whole");
}

function shortenedOf(record: ConversationRecord): ContextEntry {
  return shortenedTo(record, SHORTENED_TOKENS);
}

function shortenedTo(record: ConversationRecord, tokens: number): ContextEntry {
  const text = shorten(record.text, tokens);
  return entryOf({ ...record, text }, text === record.text ? "whole" : "shortened");
}
