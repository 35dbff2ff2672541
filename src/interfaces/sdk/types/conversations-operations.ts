// Made from the contracts by scripts/sdk-types.ts.
import type { ContextEntry, ConversationHit } from "./conversations.ts";

/** Input of: The conversation of a run, within a budget of tokens; or what of it fits a search. */
export interface ReadContextInput {
  /** Id of a run. */
  run: string;
  /** Tokens that the entries may take together. */
  budget?: number | undefined;
  /** Answer the records that fit this instead of a view. */
  search?: string | undefined;
}

/** Answer of: The conversation of a run, within a budget of tokens; or what of it fits a search. */
export interface ReadContextOutput {
  /** Id of the run. */
  run: string;
  /** Records of the whole conversation. */
  records: number;
  /** Tokens of the whole conversation. */
  tokens: number;
  /** In their order: task and decisions, older records in short, the newest ones whole. */
  entries: ContextEntry[];
  /** The best first. */
  hits: ConversationHit[];
}

/** Input of: Records of all conversations that fit a search, by words and by meaning. */
export interface SearchConversationsInput {
  /** Words to search for, in any form and order. */
  query: string;
  /** Only runs of this project. */
  project?: string | undefined;
  /** At most. */
  limit?: number | undefined;
}

/** Answer of: Records of all conversations that fit a search, by words and by meaning. */
export interface SearchConversationsOutput {
  /** The best first. */
  hits: ConversationHit[];
}
