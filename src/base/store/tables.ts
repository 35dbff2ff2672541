/** Tables as kysely sees them: columns that are looked up, and the rest as JSON in `body`. */
import type { Generated } from "kysely";

interface SandboxTable {
  id: string;
  name: string;
  state: string;
  idempotency_key: string | null;
  created_at: string;
  project: string | null;
  base: string | null;
  refreshed_to: string | null;
  body: string;
}

interface CommandTable {
  id: string;
  sandbox: string;
  running: number;
  started_at: string;
  body: string;
}

interface SnapshotTable {
  id: string;
  sandbox: string;
  created_at: string;
  refreshed_to: string | null;
  body: string;
}

interface BaseTable {
  id: string;
  project: string;
  taken_at: string;
  body: string;
}

interface ExperimentTable {
  id: string;
  project: string;
  open: number;
  created_at: string;
  body: string;
}

interface PromotionTable {
  id: string;
  project: string;
  open: number;
  created_at: string;
  body: string;
}

interface ApprovalTable {
  id: string;
  state: string;
  hash: string;
  scope: string | null;
  asked_at: string;
  body: string;
}

interface AuditTable {
  sequence: number;
  sandbox: string | null;
  body: string;
}

interface EffectTable {
  id: string;
  sandbox: string;
  at: string;
  body: string;
}

interface SecretTable {
  name: string;
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

interface ProjectTable {
  id: string;
  path: string;
  trusted: string | null;
}

export interface EventTable {
  sequence: Generated<number>;
  at: string;
  type: string;
  sandbox: string | null;
  data: string;
}

export interface Tables {
  sandboxes: SandboxTable;
  commands: CommandTable;
  snapshots: SnapshotTable;
  bases: BaseTable;
  experiments: ExperimentTable;
  promotions: PromotionTable;
  approvals: ApprovalTable;
  audit: AuditTable;
  effects: EffectTable;
  secrets: SecretTable;
  usage: UsageTable;
  projects: ProjectTable;
  events: EventTable;
}
