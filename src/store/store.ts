/** The database port. State rows and events are written in one transaction; only store/ knows SQL. */
import type { Base } from "../capture/capture.ts";
import type { Launched } from "../drivers/drivers.ts";
import type { Command } from "../schema/command.ts";
import type { Service } from "../schema/config.ts";
import type { EventType, VivEvent } from "../schema/event.ts";
import type { Sandbox, Snapshot } from "../schema/sandbox.ts";

/** A sandbox as it is kept: what the API shows, and what the server needs to go on after a crash. */
export interface SandboxRow extends Sandbox {
  readonly base: string;
  readonly range: number;
  readonly launched: Launched | null;
  readonly user: string;
  readonly env: Record<string, string>;
  readonly environmentLeftOut: string[];
  readonly untrusted: string[];
  readonly masked: string[];
  readonly exposed: string[];
  readonly sudo: boolean;
  /** Services of the trusted config, started whenever processes start. */
  readonly services: Record<string, Service>;
  readonly home: string;
  readonly currentSnapshot: string | null;
  readonly idempotencyKey: string | null;
  /** Set while a rollback is under way: a crash ends in the snapshot's state. */
  readonly restoring: string | null;
  /** Set once removal has begun: a crash ends in it being gone. */
  readonly removing: boolean;
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
  readonly sandbox?: string;
}

export interface Read {
  sandbox(id: string): Promise<SandboxRow | undefined>;
  sandboxByName(name: string): Promise<SandboxRow | undefined>;
  sandboxByIdempotencyKey(key: string): Promise<SandboxRow | undefined>;
  sandboxes(): Promise<SandboxRow[]>;
  command(id: string): Promise<Command | undefined>;
  commands(sandbox: string, runningOnly: boolean): Promise<Command[]>;
  snapshot(id: string): Promise<Snapshot | undefined>;
  snapshots(sandbox?: string): Promise<Snapshot[]>;
  base(id: string): Promise<Base | undefined>;
  bases(): Promise<Base[]>;
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
  putSnapshot(snapshot: Snapshot): Promise<void>;
  removeSnapshot(id: string): Promise<void>;
  putBase(base: Base): Promise<void>;
  removeBase(id: string): Promise<void>;
  putProject(project: ProjectRow): Promise<void>;
  removeProject(id: string): Promise<void>;
  event(type: EventType, sandbox: string | null, data?: VivEvent["data"]): Promise<void>;
}

export interface Store extends Read {
  /** One transaction, serialised with all others. Its events are published to listeners after the commit, in order. */
  change<T>(work: (change: Change) => Promise<T>): Promise<T>;
  /** Called after each commit with its events. */
  onEvents(listener: (events: readonly VivEvent[]) => void): () => void;
  /** Drops events beyond the retention, and the oldest commands of sandboxes that have very many. */
  trim(): Promise<void>;
  close(): Promise<void>;
}
