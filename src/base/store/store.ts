/** The database port. State rows and events are written in one transaction; only store/ knows SQL. */
import type { Approval } from "../schema/approval.ts";
import type { AuditRecord } from "../schema/audit.ts";
import type { Command } from "../schema/command.ts";
import type { EventType, VivEvent } from "../schema/event.ts";
import type { Effect } from "../schema/effect.ts";
import type { UsageRow } from "../schema/model.ts";
import type { Base, ExperimentRow, ProjectRow, PromotionRow, SandboxRow, SecretRow, SnapshotRow } from "./rows.ts";

export interface UsageFilter {
  readonly sandbox?: string | undefined;
  readonly task?: string | undefined;
  readonly project?: string | undefined;
  readonly day?: string | undefined;
}

export interface EventFilter {
  readonly after: number;
  readonly limit: number;
  readonly sandbox?: string | undefined;
}

export interface AuditFilter extends EventFilter {
  readonly before?: number | undefined;
  /** The newest of those that fit, instead of the oldest; in order all the same. */
  readonly newest?: boolean | undefined;
}

export interface RecordFilter {
  /** Path of a project. */
  readonly project?: string | undefined;
  /** Only those that are not at their end. */
  readonly open?: boolean;
  readonly limit?: number;
}

export interface ApprovalFilter {
  readonly state?: Approval["state"];
  readonly hash?: string;
  readonly scope?: "once" | "always";
}

export interface Read {
  sandbox(id: string): Promise<SandboxRow | undefined>;
  sandboxByName(name: string): Promise<SandboxRow | undefined>;
  sandboxByIdempotencyKey(key: string): Promise<SandboxRow | undefined>;
  sandboxes(): Promise<SandboxRow[]>;
  command(id: string): Promise<Command | undefined>;
  commands(sandbox: string, runningOnly: boolean): Promise<Command[]>;
  snapshot(id: string): Promise<SnapshotRow | undefined>;
  snapshots(sandbox?: string): Promise<SnapshotRow[]>;
  base(id: string): Promise<Base | undefined>;
  bases(): Promise<Base[]>;
  /** Whether a sandbox or a snapshot needs it. */
  isBaseNeeded(id: string): Promise<boolean>;
  /** Whether there is a sandbox of the project at this path. */
  isProjectUsed(path: string): Promise<boolean>;
  experiment(id: string): Promise<ExperimentRow | undefined>;
  /** The newest first. */
  experiments(filter: RecordFilter): Promise<ExperimentRow[]>;
  promotion(id: string): Promise<PromotionRow | undefined>;
  /** The newest first. */
  promotions(filter: RecordFilter): Promise<PromotionRow[]>;
  approval(id: string): Promise<Approval | undefined>;
  /** The newest first. */
  approvals(filter: ApprovalFilter): Promise<Approval[]>;
  audit(filter: AuditFilter): Promise<AuditRecord[]>;
  newestAudit(): Promise<AuditRecord | undefined>;
  /** The newest first. */
  effects(filter: { sandbox?: string | undefined; limit: number }): Promise<Effect[]>;
  secrets(): Promise<SecretRow[]>;
  /** What models were asked, summed up per sandbox, day, provider and model; the newest day first. */
  usage(filter: UsageFilter): Promise<UsageRow[]>;
  /** Millionths of a dollar. */
  spent(filter: UsageFilter): Promise<number>;
  project(id: string): Promise<ProjectRow | undefined>;
  projectByPath(path: string): Promise<ProjectRow | undefined>;
  projects(): Promise<ProjectRow[]>;
  events(filter: EventFilter): Promise<VivEvent[]>;
  eventRange(): Promise<{ oldest: number; newest: number }>;
}

export interface Change extends Read {
  putSandbox(row: SandboxRow): Promise<void>;
  removeSandbox(id: string): Promise<void>;
  putCommand(command: Command): Promise<void>;
  putSnapshot(snapshot: SnapshotRow): Promise<void>;
  removeSnapshot(id: string): Promise<void>;
  putBase(base: Base): Promise<void>;
  removeBase(id: string): Promise<void>;
  putExperiment(row: ExperimentRow): Promise<void>;
  removeExperiment(id: string): Promise<void>;
  putPromotion(row: PromotionRow): Promise<void>;
  putApproval(approval: Approval): Promise<void>;
  /** Audit records are only ever added. */
  appendAudit(records: readonly AuditRecord[]): Promise<void>;
  putEffect(effect: Effect): Promise<void>;
  putSecret(row: SecretRow): Promise<void>;
  removeSecret(name: string): Promise<void>;
  /** Adds to the sum of the same sandbox, day, provider and model. */
  addUsage(row: UsageRow): Promise<void>;
  putProject(project: ProjectRow): Promise<void>;
  removeProject(id: string): Promise<void>;
  event(type: EventType, sandbox: string | null, data?: VivEvent["data"]): Promise<void>;
}

export interface Store extends Read {
  /** One transaction, serialised with all others. Its events are published to listeners after the commit, in order. */
  change<T>(work: (change: Change) => Promise<T>): Promise<T>;
  /** Called after each commit with its events. */
  onEvents(listener: (events: readonly VivEvent[]) => void): () => void;
  /** Resolves once what was committed before survives a power failure, too. */
  sync(): Promise<void>;
  /** Drops events beyond the retention, and the oldest commands of sandboxes that have very many. */
  trim(): Promise<void>;
  close(): Promise<void>;
}
