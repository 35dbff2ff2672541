/** The database port. State rows and events are written in one transaction; only store/ knows SQL. */
import type { Base } from "../capture/capture.ts";
import type { Launched } from "../drivers/drivers.ts";
import type { Approval } from "../schema/approval.ts";
import type { AuditRecord } from "../schema/audit.ts";
import type { Command } from "../schema/command.ts";
import type { Service } from "../schema/config.ts";
import type { EventType, VivEvent } from "../schema/event.ts";
import type { Experiment, ExperimentInput } from "../schema/experiment.ts";
import type { ChosenNetwork, NetworkRules } from "../schema/network.ts";
import type { Autonomy } from "../schema/policy.ts";
import type { PromoteInput, Promotion } from "../schema/promotion.ts";
import type { Limits, Sandbox, Snapshot } from "../schema/sandbox.ts";
import type { Effect } from "../schema/effect.ts";
import type { UsageRow } from "../schema/model.ts";
import type { Secret } from "../schema/secret.ts";

/** A sandbox as it is kept: what the API shows, and what the server needs to go on after a crash. */
export interface SandboxRow extends Omit<Sandbox, "autonomy" | "uses" | "notes"> {
  /** Nobody chose where this is missing, as in rows of earlier versions. */
  readonly autonomy?: Autonomy | undefined;
  /** What a person chose for it of what its agents may ask more of; rows of earlier versions don't say. */
  readonly givenLimits?: Partial<Pick<Limits, "cpus" | "memoryBytes">> | undefined;
  /** What its volume was made from. */
  readonly base: string;
  /** The base whose changes were merged into it last, if any: what it changed is told against that one. */
  readonly refreshedTo?: string | undefined;
  readonly range: number;
  readonly launched: Launched | null;
  readonly user: string;
  readonly env: Record<string, string>;
  readonly environmentLeftOut: string[];
  /** Names of variables that its config set; rows of earlier versions don't say. */
  readonly environmentSet?: readonly string[] | undefined;
  /** Rows of earlier versions have none. */
  readonly notes?: string[] | undefined;
  readonly untrusted: string[];
  readonly masked: string[];
  readonly exposed: string[];
  readonly sudo: boolean;
  /** What it reaches; nothing where this is missing, as in rows of earlier versions. */
  readonly network?: NetworkRules | undefined;
  /** What of that a person chose beside the configs; rows of earlier versions don't say. */
  readonly networkChosen?: ChosenNetwork | undefined;
  /** Services of the trusted config, started whenever processes start. */
  readonly services: Record<string, Service>;
  readonly home: string;
  readonly currentSnapshot: string | null;
  readonly idempotencyKey: string | null;
  /** Whether it goes with the caller that made it. */
  readonly held?: boolean | undefined;
  /** Set while a rollback is under way: a crash ends in the snapshot's state. */
  readonly restoring: string | null;
  /** Set once removal has begun: a crash ends in it being gone. */
  readonly removing: boolean;
}

/** A snapshot as it is kept. */
export interface SnapshotRow extends Snapshot {
  /** What its volume said of it when it was made; absent where it says nothing. */
  readonly seal?: string | undefined;
  /** As of its sandbox, when it was made. */
  readonly refreshedTo?: string | undefined;
}

/** An experiment as it is kept. */
export interface ExperimentRow extends Experiment {
  /** What was asked for; without the caller's environment once the origin has it. */
  readonly input: ExperimentInput;
  /** Frozen reality that all attempts start from: a snapshot, and the sandbox of the experiment that holds it. */
  readonly origin: { readonly sandbox: string; readonly snapshot: string } | null;
  /** Patterns of protected files; null stands for tests and their configuration. */
  readonly protect: readonly string[] | null;
}

/** A promotion as it is kept. */
export interface PromotionRow extends Omit<Promotion, "kept"> {
  /** Absent where there are none. */
  readonly kept?: readonly string[];
  /** What was asked for, without the caller's environment. */
  readonly input: PromoteInput | null;
  /** Snapshot that holds the state being promoted. */
  readonly snapshot: string | null;
  /** What a person approved: stages, and accepted risks, each with the hash of the plan. */
  readonly approved: readonly string[];
  /** Hash of the plan that the checks were run on. */
  readonly verified: string | null;
  /** Set once the project is being written to, until that is known to have ended. */
  readonly writing: boolean;
  /** Whether the change lies in the project's folder, and an undo has something to take back. */
  readonly written: boolean;
}

/** A secret as it is kept. */
export interface SecretRow extends Secret {
  /** Its value, encrypted. */
  readonly sealed: string;
}

export interface UsageFilter {
  readonly sandbox?: string | undefined;
  readonly task?: string | undefined;
  readonly project?: string | undefined;
  readonly day?: string | undefined;
}

export interface ProjectRow {
  readonly id: string;
  readonly path: string;
  /** Hash of the trusted config content. */
  readonly trusted: string | null;
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
