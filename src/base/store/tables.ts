/** Tables as kysely sees them. */
import type { Generated } from "kysely";
import type { CollectionName } from "./collections.ts";
import type { Stored } from "./statements.ts";

interface AuditTable {
  sequence: number;
  sandbox: string | null;
  body: string;
}

interface UsageTable {
  sandbox: string;
  day: string;
  provider: string;
  model: string;
  sandbox_name: string;
  task: string | null;
  project: string;
  requests: number;
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  micro_dollars: number;
}

export interface EventTable {
  sequence: Generated<number>;
  at: string;
  type: string;
  sandbox: string | null;
  data: string;
}

interface RunEventTable {
  run: string;
  sequence: number;
  body: string;
}

interface ConversationTable {
  id: Generated<number>;
  run: string;
  project: string;
  records: number;
  tokens: number;
}

interface ConversationRecordTable {
  id: Generated<number>;
  conversation: number;
  sequence: number;
  role: string;
  kind: string;
  tokens: number;
  call_id: string | null;
  pinned: number;
  body: string;
}

/** Of FTS5: its rowid is the id of a record. */
interface ConversationWordTable {
  rowid: number;
  text: string;
}

interface ConversationVectorTable {
  embedder: string;
  record: number;
  vector: Uint8Array;
}

/** The columns of a collection's table are known when its declaration is read. */
type CollectionTables = { [Name in CollectionName]: Record<string, Stored> };

export interface Tables extends CollectionTables {
  audit: AuditTable;
  usage: UsageTable;
  events: EventTable;
  run_events: RunEventTable;
  conversations: ConversationTable;
  conversation_records: ConversationRecordTable;
  conversation_words: ConversationWordTable;
  conversation_vectors: ConversationVectorTable;
}
