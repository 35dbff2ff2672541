/** What was said and done in runs: kept for good, read within a budget of tokens, found by words and by meaning. */
import type { Logger } from "../../base/host/log.ts";
import type { ContextEntry, ConversationHit, ConversationRecord } from "../../base/schema/conversation.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { ConversationOf, ConversationSums, NewRecord, SearchScope } from "../../base/store/conversation-log.ts";
import type { Change, Store } from "../../base/store/store.ts";
import type { Payer } from "../../rules/models/accounts.ts";
import type { Embedder } from "./embedder.ts";
import { Meaning } from "./meaning.ts";
import { searchRecords } from "./search.ts";
import type { Summarizer } from "./summarizer.ts";
import { estimateTokens } from "./tokens.ts";
import { ViewBuilder } from "./view.ts";

/** What a run says of a record; the rest follows from it. */
export interface SaidRecord extends Pick<ConversationRecord, "role" | "kind" | "text"> {
  /** ISO time; now if left out. */
  readonly at?: string;
  readonly tool?: string;
  readonly callId?: string;
  /** Every view is to show it. Tasks and decisions always are. */
  readonly pinned?: boolean;
}

export interface ViewOptions {
  readonly budgetTokens: number;
  /** Only so many records, from the first on; all if left out. */
  readonly first?: number | undefined;
  /** The sandbox that pays for summaries by a model, where one is configured. Left out, none is asked. */
  readonly paidBy?: Payer | undefined;
}

export interface Context extends ConversationSums {
  readonly entries: ContextEntry[];
}

export interface ConversationParts {
  readonly store: Store;
  readonly embedder: Embedder;
  readonly summarizer: Summarizer;
  /** Only where a model is configured. */
  readonly byModel?: ((payer: Payer) => Summarizer) | undefined;
  readonly log: Logger;
}

export class Conversations {
  readonly #store: Store;
  readonly #summarizer: Summarizer;
  readonly #byModel: ConversationParts["byModel"];
  readonly #meaning: Meaning;

  constructor({ store, embedder, summarizer, byModel, log }: ConversationParts) {
    this.#store = store;
    this.#summarizer = summarizer;
    this.#byModel = byModel;
    this.#meaning = new Meaning(store, embedder, log);
    // A server before may have ended before it came to the last ones.
    this.#meaning.wake();
  }

  /** Adds records within a change, so that they are kept together with what else the change writes. */
  async append(change: Change, conversation: ConversationOf, said: readonly SaidRecord[]): Promise<void> {
    if (said.length === 0) return;
    await change.conversations.append(conversation, said.map(recordOf));
    this.#meaning.wake();
  }

  /** The conversation within a budget of tokens. */
  async view(run: string, { budgetTokens, first, paidBy }: ViewOptions): Promise<Context> {
    const sums = await this.sums(run, first);
    const summarizer = (paidBy && this.#byModel?.(paidBy)) ?? this.#summarizer;
    const builder = new ViewBuilder(this.#store.conversations, summarizer, run, sums, budgetTokens);
    return { ...sums, entries: await builder.build() };
  }

  async sums(run: string, first?: number): Promise<ConversationSums> {
    const sums = await this.#store.conversations.sums(run, first);
    if (sums === undefined) throw new VivError("not_found", `There is no conversation of run ${run}.`);
    return sums;
  }

  search(query: string, scope: SearchScope, limit: number = LIMITS.conversationHits): Promise<ConversationHit[]> {
    return searchRecords(this.#store.conversations.search, this.#meaning, query, scope, limit);
  }

  close(): Promise<void> {
    return this.#meaning.close();
  }
}

function recordOf({ role, kind, text, at, tool, callId, pinned = false }: SaidRecord): NewRecord {
  const kept = bounded(text);
  // A call without its result, or the other way round, would confuse a model; so neither is ever shown for itself.
  const isOfTool = kind === "tool-call" || kind === "tool-result";
  return {
    at: at ?? new Date().toISOString(),
    role,
    kind,
    text: kept,
    tokens: estimateTokens(kept),
    tool: nameOf(tool),
    callId: nameOf(callId),
    pinned: !isOfTool && (pinned || role === "task" || kind === "decision"),
  };
}

/** The beginning and the end of what is longer than a record may be. */
function bounded(text: string): string {
  const most = LIMITS.recordCharacters;
  if (text.length <= most) return text;
  const [head, tail] = [text.slice(0, most * 0.7), text.slice(-most * 0.3)];
  const missing = text.length - head.length - tail.length;
  return `${head}\n[${missing} characters are not kept here; the log of the command may have them]\n${tail}`;
}

/** Names are compared and shown, so they are short and hold nothing that a database or a terminal chokes on. */
function nameOf(name: string | undefined): string | null {
  return name === undefined ? null : name.slice(0, LIMITS.recordNameCharacters).replace(/\p{C}/gu, "\ufffd");
}
