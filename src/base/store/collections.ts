/**
 * Every collection of the store, declared once. A new one is an entry here and a migration that makes its table: a column for the id,
 * one for each declared column (its name in snake case), and `body`, which holds the whole row as JSON. Where the way a column comes
 * from a row changes, a migration fills it anew.
 */
import type { Approval } from "../schema/approval.ts";
import type { BacklogTask } from "../schema/backlog.ts";
import type { Command } from "../schema/command.ts";
import type { Effect } from "../schema/effect.ts";
import type {
  AutomationRow,
  Base,
  BookmarkRow,
  ExperimentRow,
  FiringRow,
  JobRow,
  JobTextRow,
  NotificationRow,
  PreviewRow,
  ProjectRow,
  PromotionRow,
  PushBrowserRow,
  RunMessageRow,
  RunRow,
  SandboxRow,
  SecretRow,
  SessionRow,
  SightingRow,
  SnapshotRow,
} from "./rows.ts";

export type ColumnValue = string | number | boolean | null;

export interface Declaration<Row, Columns> {
  /** The field of a row that is its id. */
  readonly id: keyof Row & string;
  /** What rows are found and ordered by besides, and how it comes from a row. */
  readonly columns: { readonly [Name in keyof Columns]: (row: Row) => Columns[Name] };
  /** How rows are listed. Rows that are equal in it follow each other by their ids, in the same direction. */
  readonly order: { readonly by: NoInfer<keyof Columns & string> | "id"; readonly direction: "asc" | "desc" };
  /** Rows are removed together with the row whose id this column holds. */
  readonly partOf?: { readonly collection: string; readonly column: NoInfer<keyof Columns & string> };
}

function rowsOf<Row>() {
  return <const Columns extends Readonly<Record<string, ColumnValue>>>(declaration: Declaration<Row, Columns>) => declaration;
}

export const COLLECTIONS = {
  sandboxes: rowsOf<SandboxRow>()({
    id: "id",
    columns: {
      name: (row) => row.name,
      state: (row) => row.state,
      idempotencyKey: (row) => row.idempotencyKey,
      createdAt: (row) => row.createdAt,
      project: (row) => row.project,
      base: (row) => row.base,
      refreshedTo: (row) => row.refreshedTo ?? null,
    },
    order: { by: "createdAt", direction: "asc" },
  }),
  commands: rowsOf<Command>()({
    id: "id",
    columns: {
      sandbox: (command) => command.sandbox,
      running: (command) => command.running,
      startedAt: (command) => command.startedAt,
    },
    order: { by: "startedAt", direction: "asc" },
    partOf: { collection: "sandboxes", column: "sandbox" },
  }),
  snapshots: rowsOf<SnapshotRow>()({
    id: "id",
    columns: {
      sandbox: (row) => row.sandbox,
      createdAt: (row) => row.createdAt,
      refreshedTo: (row) => row.refreshedTo ?? null,
    },
    order: { by: "createdAt", direction: "asc" },
  }),
  bases: rowsOf<Base>()({
    id: "id",
    columns: { project: (base) => base.project, takenAt: (base) => base.takenAt },
    order: { by: "takenAt", direction: "asc" },
  }),
  projects: rowsOf<ProjectRow>()({
    id: "id",
    columns: { path: (row) => row.path },
    order: { by: "path", direction: "asc" },
  }),
  experiments: rowsOf<ExperimentRow>()({
    id: "id",
    columns: {
      project: (row) => row.project,
      /** Not at its end. */
      open: (row) => ["queued", "running", "choosing"].includes(row.state),
      createdAt: (row) => row.createdAt,
    },
    order: { by: "createdAt", direction: "desc" },
  }),
  promotions: rowsOf<PromotionRow>()({
    id: "id",
    columns: {
      project: (row) => row.project,
      /** Not at its end: the project is being written to, or a stage is still to come. */
      open: (row) =>
        row.writing || row.stages.some(({ state }) => state === "waiting") || ["planning", "waiting", "applying"].includes(row.state),
      createdAt: (row) => row.createdAt,
    },
    order: { by: "createdAt", direction: "desc" },
  }),
  approvals: rowsOf<Approval>()({
    id: "id",
    columns: {
      state: (approval) => approval.state,
      sandbox: (approval) => approval.sandbox,
      hash: (approval) => approval.hash,
      scope: (approval) => approval.scope,
      askedAt: (approval) => approval.askedAt,
    },
    order: { by: "askedAt", direction: "desc" },
  }),
  effects: rowsOf<Effect>()({
    id: "id",
    columns: { sandbox: (effect) => effect.sandbox, at: (effect) => effect.at },
    order: { by: "at", direction: "desc" },
  }),
  runs: rowsOf<RunRow>()({
    id: "id",
    columns: {
      project: (row) => row.project,
      sandbox: (row) => row.sandbox,
      experiment: (row) => row.experiment,
      /** Not at its end. */
      open: (row) => row.endedAt === null,
      createdAt: (row) => row.createdAt,
    },
    order: { by: "createdAt", direction: "desc" },
  }),
  runMessages: rowsOf<RunMessageRow>()({
    id: "id",
    columns: { run: (row) => row.run, sequence: (row) => row.sequence },
    order: { by: "sequence", direction: "asc" },
    partOf: { collection: "runs", column: "run" },
  }),
  jobs: rowsOf<JobRow>()({
    id: "id",
    columns: {
      sequence: (row) => row.sequence,
      state: (row) => row.state,
      project: (row) => row.project,
      idempotencyKey: (row) => row.idempotencyKey,
    },
    order: { by: "sequence", direction: "desc" },
  }),
  jobTexts: rowsOf<JobTextRow>()({
    id: "id",
    columns: { job: (row) => row.id },
    order: { by: "id", direction: "asc" },
    partOf: { collection: "jobs", column: "job" },
  }),
  automations: rowsOf<AutomationRow>()({
    id: "id",
    columns: { project: (row) => row.project, name: (row) => row.name },
    order: { by: "name", direction: "asc" },
  }),
  firings: rowsOf<FiringRow>()({
    id: "id",
    columns: {
      sequence: (row) => row.sequence,
      automation: (row) => row.automation,
      project: (row) => row.project,
      state: (row) => row.state,
      /** Not at its end. */
      open: (row) => row.endedAt === null,
    },
    order: { by: "sequence", direction: "desc" },
  }),
  sightings: rowsOf<SightingRow>()({
    id: "id",
    columns: { firing: (row) => row.firing },
    order: { by: "id", direction: "asc" },
    partOf: { collection: "firings", column: "firing" },
  }),
  backlog: rowsOf<BacklogTask>()({
    id: "id",
    columns: { project: (task) => task.project, sandbox: (task) => task.sandbox, createdAt: (task) => task.createdAt },
    order: { by: "createdAt", direction: "desc" },
  }),
  sessions: rowsOf<SessionRow>()({
    id: "id",
    columns: { secretHash: (row) => row.secretHash, createdAt: (row) => row.createdAt },
    order: { by: "createdAt", direction: "desc" },
  }),
  previews: rowsOf<PreviewRow>()({
    id: "id",
    columns: { createdAt: (row) => row.createdAt },
    order: { by: "createdAt", direction: "asc" },
  }),
  notifications: rowsOf<NotificationRow>()({
    id: "id",
    columns: { state: (row) => row.state, channel: (row) => row.channel, createdAt: (row) => row.createdAt },
    order: { by: "createdAt", direction: "asc" },
  }),
  pushBrowsers: rowsOf<PushBrowserRow>()({
    id: "id",
    columns: { session: (row) => row.session, createdAt: (row) => row.createdAt },
    order: { by: "createdAt", direction: "asc" },
    partOf: { collection: "sessions", column: "session" },
  }),
  bookmarks: rowsOf<BookmarkRow>()({
    id: "id",
    columns: {},
    order: { by: "id", direction: "asc" },
  }),
  secrets: rowsOf<SecretRow>()({
    id: "name",
    columns: {},
    order: { by: "id", direction: "asc" },
  }),
};

export type CollectionName = keyof typeof COLLECTIONS;
export type RowOf<Name extends CollectionName> = (typeof COLLECTIONS)[Name] extends Declaration<infer Row, infer _> ? Row : never;
export type ColumnsOf<Name extends CollectionName> =
  (typeof COLLECTIONS)[Name] extends Declaration<infer _, infer Columns> ? Columns : never;
