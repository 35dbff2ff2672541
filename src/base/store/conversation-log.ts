/**
 * The part of the database port that holds conversations. The records of a run are numbered from 1 on, without gaps, and are only ever
 * added; all of a run's records go together when the run is removed.
 *
 * **Search.** By words, as each database does it best: word forms are folded (`failing` finds `fails`), and the record that fits best
 * comes first. By meaning, the store only keeps a vector beside a record for a reader that compares it. Vectors come later than
 * their records; those of different embedders live beside each other.
 */
import type { ConversationRecord } from "../schema/conversation.ts";

/** Whose records they are. */
export interface ConversationOf {
  readonly run: string;
  /** Folder of the project, by which searches narrow. */
  readonly project: string;
}

export interface ConversationSums {
  readonly project: string;
  readonly records: number;
  readonly tokens: number;
}

/** A record without its text: what a reader needs to choose. */
export type RecordHead = Pick<ConversationRecord, "sequence" | "role" | "kind" | "tokens" | "callId">;
export type NewRecord = Omit<ConversationRecord, "sequence">;

/** Records between two numbers, both left out themselves. */
export interface RecordRange {
  readonly run: string;
  readonly after?: number | undefined;
  readonly before?: number | undefined;
  readonly limit: number;
}

/** Where a search looks: in one run, in the runs of a project, or everywhere. */
export interface SearchScope {
  readonly run?: string | undefined;
  readonly project?: string | undefined;
}

/** A record as a search finds it. Its id is the store's own, and grows with every record. */
export interface FoundRecord extends ConversationOf {
  readonly id: number;
  readonly record: ConversationRecord;
}

export interface StoredVector {
  readonly id: number;
  readonly vector: Uint8Array;
}

export interface ConversationLog {
  /** Of the whole conversation, or of its first records. Undefined for a run without a record. */
  sums(run: string, first?: number): Promise<ConversationSums | undefined>;
  /** The oldest first. */
  list(range: RecordRange): Promise<ConversationRecord[]>;
  /** The newest first. */
  heads(range: RecordRange): Promise<RecordHead[]>;
  /** Pinned ones, the newest first. */
  pinned(range: RecordRange): Promise<RecordHead[]>;
  /** The newest call with this id before a record. */
  callBefore(run: string, callId: string, sequence: number): Promise<RecordHead | undefined>;
  get(run: string, sequence: number): Promise<ConversationRecord | undefined>;
  readonly search: ConversationSearch;
}

export interface ConversationSearch {
  /** Ids of records that have any of the words, the best first. A word is letters and digits alone. */
  words(words: readonly string[], scope: SearchScope, limit: number): Promise<number[]>;
  /** In the order of ids, after one. */
  vectors(embedder: string, scope: SearchScope, after: number, limit: number): Promise<StoredVector[]>;
  /** The oldest records that have no vector of this embedder. */
  withoutVector(embedder: string, limit: number): Promise<{ id: number; text: string }[]>;
  get(id: number): Promise<FoundRecord | undefined>;
}

export interface GrowingConversationLog extends ConversationLog {
  /** Gives the number of the last one. */
  append(conversation: ConversationOf, records: readonly NewRecord[]): Promise<number>;
  addVectors(embedder: string, vectors: readonly StoredVector[]): Promise<void>;
  /** Removes all records of a run. It is no error if there is none. */
  remove(run: string): Promise<void>;
}

/**
 * How a database finds records by words, within its transactions. SQLite has a table of FTS5 beside the records. PostgreSQL would have a
 * column `tsvector` made by `to_tsvector('english', ...)` with a GIN index; `find` would be `to_tsquery` of the words joined by `|`,
 * ordered by `ts_rank_cd`.
 */
export interface WordIndex {
  add(id: number, text: string): Promise<void>;
  /** Removes those of one conversation, while its records are still there. */
  removeOf(conversation: number): Promise<void>;
  find: ConversationSearch["words"];
}
