/**
 * The database port: collections of rows, four logs, conversations (`conversation-log.ts`), and transactions.
 *
 * **Rows.** A collection (`collections.ts` declares each) holds rows by their id. A row is given back as JSON keeps it: a field that is
 * undefined is absent. What the store wrote it trusts when it reads.
 *
 * **Reads.** What is asked of the store itself sees what was committed before, and nothing of a change under way. What is asked of a
 * change sees that change's own writes too. Strings are ordered by their bytes.
 *
 * **Changes.** One change is one transaction. All changes are serialised, in the order in which they were asked for: no other one is
 * between a change's reads and its writes. Either all it wrote is kept, or nothing. A change that was acknowledged survives the death
 * of the server; `sync()` makes it survive a power failure. A change must not wait for another one, which would wait for it, and
 * must not catch what an operation of the change throws: some databases do nothing more in such a transaction.
 *
 * **Events.** A change may add events. They get the next numbers of one sequence, which grows with every event and repeats none, also
 * after old events were dropped. Listeners hear them after the commit and before `change()` resolves: all of one change in one call,
 * changes in the order of their commits. A change that fails leaves no event.
 *
 * **Errors.** What the work of a change throws is thrown by `change()`. The store itself throws VivErrors: `exists` where another row
 * has what only one may have (`name_taken` for the name of a sandbox), `store_busy` where something else held the database for too
 * long, `disk_full`, `store_corrupt`, and on opening `store_newer`.
 */
import type { AuditRecord } from "../schema/audit.ts";
import type { EventType, VivEvent } from "../schema/event.ts";
import type { UsageRow } from "../schema/model.ts";
import type { RunEvent } from "../schema/run.ts";
import type { CollectionName, ColumnsOf, RowOf } from "./collections.ts";
import type { ConversationLog, GrowingConversationLog } from "./conversation-log.ts";

/** The rows whose columns all have these values. A value that is undefined asks for nothing. */
export type Where<Columns> = { readonly [Name in keyof Columns]?: Exclude<Columns[Name], null> | undefined };

export interface Collection<Row, Columns> {
  get(id: string): Promise<Row | undefined>;
  /** The first of `list`. */
  find(where: Where<Columns>): Promise<Row | undefined>;
  /** In the order of the collection; the first `limit` of them, if there is one. */
  list(where?: Where<Columns>, options?: { readonly limit?: number | undefined }): Promise<Row[]>;
  count(where?: Where<Columns>): Promise<number>;
  has(where: Where<Columns>): Promise<boolean>;
}

export interface ChangeableCollection<Row, Columns> extends Collection<Row, Columns> {
  /** Adds the row, or takes the place of the whole row with this id. */
  put(row: Row): Promise<void>;
  /** Removes the row and those that are part of it. It is no error if there is none. */
  remove(id: string): Promise<void>;
}

export interface EventFilter {
  /** Number of the last event that is not asked for. */
  readonly after: number;
  readonly limit: number;
  readonly sandbox?: string | undefined;
}

export interface EventLog {
  /** The oldest first. */
  list(filter: EventFilter): Promise<VivEvent[]>;
  /** Numbers of the events that are kept. An empty log is the range 1 to 0. */
  range(): Promise<{ oldest: number; newest: number }>;
}

export interface AuditFilter extends EventFilter {
  readonly before?: number | undefined;
  /** Of this action; with `.*` at its end, of every action that begins with what stands before the star. */
  readonly action?: string | undefined;
  /** The newest of those that fit, instead of the oldest; in order all the same. */
  readonly newest?: boolean | undefined;
}

export interface AuditLog {
  /** The oldest first. */
  list(filter: AuditFilter): Promise<AuditRecord[]>;
  newest(): Promise<AuditRecord | undefined>;
}

/** Records are only ever added: a number that is there already is refused with `exists`. */
export interface GrowingAuditLog extends AuditLog {
  append(records: readonly AuditRecord[]): Promise<void>;
}

export interface UsageFilter {
  readonly sandbox?: string | undefined;
  readonly task?: string | undefined;
  readonly project?: string | undefined;
  readonly day?: string | undefined;
}

/** What models were asked, summed up per sandbox, day, provider and model. */
export interface UsageSums {
  /** The newest day first. */
  list(filter: UsageFilter): Promise<UsageRow[]>;
  /** Millionths of a dollar. */
  spent(filter: UsageFilter): Promise<number>;
}

export interface GrowingUsageSums extends UsageSums {
  /** Adds to the sum of the same sandbox, day, provider and model. */
  add(row: UsageRow): Promise<void>;
}

export interface RunEventFilter {
  readonly run: string;
  /** Number of the last event that is not asked for. */
  readonly after: number;
  readonly limit: number;
  /** The newest of those that fit, instead of the oldest; in order all the same. */
  readonly newest?: boolean | undefined;
}

/** What agents did, run by run. */
export interface RunEvents {
  /** The oldest first. */
  list(filter: RunEventFilter): Promise<RunEvent[]>;
}

export interface GrowingRunEvents extends RunEvents {
  /** A number that the run has already is refused with `exists`. */
  append(run: string, events: readonly RunEvent[]): Promise<void>;
  remove(run: string): Promise<void>;
}

type Collections = { readonly [Name in CollectionName]: Collection<RowOf<Name>, ColumnsOf<Name>> };
export type ChangeableCollections = { readonly [Name in CollectionName]: ChangeableCollection<RowOf<Name>, ColumnsOf<Name>> };

export interface Read extends Collections {
  readonly events: EventLog;
  readonly audit: AuditLog;
  readonly usage: UsageSums;
  readonly runEvents: RunEvents;
  readonly conversations: ConversationLog;
}

export interface Change extends ChangeableCollections {
  readonly events: EventLog;
  readonly audit: GrowingAuditLog;
  readonly usage: GrowingUsageSums;
  readonly runEvents: GrowingRunEvents;
  readonly conversations: GrowingConversationLog;
  /** Adds an event, which listeners hear once the change is committed. */
  event(type: EventType, sandbox: string | null, data?: VivEvent["data"]): Promise<void>;
}

export interface Store extends Read {
  change<T>(work: (change: Change) => Promise<T>): Promise<T>;
  /** The listener must not throw. Returns what ends its listening. */
  onEvents(listener: (events: readonly VivEvent[]) => void): () => void;
  /** Resolves once what was committed before survives a power failure, too. */
  sync(): Promise<void>;
  /** Drops events beyond the retention, and the oldest commands of sandboxes that have very many. */
  trim(): Promise<void>;
  close(): Promise<void>;
}
