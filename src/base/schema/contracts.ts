/** Every operation of the API once: HTTP routes, OpenAPI, client methods and CLI output derive from it. */
import { AUTOMATION_CONTRACTS } from "./automation.ts";
import { z } from "zod";
import { ACTION_CONTRACTS } from "./action.ts";
import { AUDIT_CONTRACTS } from "./audit.ts";
import { Command, CommandResult, CommandSpec, TerminalSize } from "./command.ts";
import { Duration } from "./config.ts";
import { DASHBOARD_CONTRACTS } from "./dashboard.ts";
import { CONVERSATION_CONTRACTS } from "./conversation.ts";
import { CallerEnvironment, contract, count, Done, flag, none, ProjectPath, type Contract } from "./contract.ts";
import { VivEvent } from "./event.ts";
import { Diff, FileEntry, RefreshReport, SandboxPath, SandboxStatus, Staleness, SystemDiff } from "./files.ts";
import { EXPERIMENT_CONTRACTS } from "./experiment.ts";
import { JOB_CONTRACTS } from "./job.ts";
import { NOTIFICATION_CONTRACTS } from "./notification.ts";
import { NETWORK_CONTRACTS, NetworkMode } from "./network.ts";
import { AUTONOMY_FIELDS, POLICY_CONTRACTS } from "./policy.ts";
import { DESKTOP_CONTRACTS } from "./desktop.ts";
import { NOTEBOOK_CONTRACTS } from "./notebook.ts";
import { PREVIEW_CONTRACTS } from "./preview.ts";
import { PROCESS_CONTRACTS } from "./process.ts";
import { EFFECT_CONTRACTS } from "./effect.ts";
import { MODEL_CONTRACTS } from "./model.ts";
import { PROMOTION_CONTRACTS } from "./promotion.ts";
import { QUESTION_CONTRACTS } from "./question.ts";
import { SECRET_CONTRACTS } from "./secret.ts";
import { ROUTES } from "./routes.ts";
import { AGENT_CALLER, AGENT_CONTRACTS } from "./agent-contracts.ts";
import { BACKLOG_CONTRACTS } from "./backlog.ts";
import { RUN_CONTRACTS } from "./run.ts";
import { Repository } from "./start.ts";
import { CommandId, Name, SandboxRef, SnapshotRef } from "./ids.ts";
import { LIMITS } from "./limits.ts";
import { Limits, Sandbox, SandboxDetail, SandboxState, Snapshot } from "./sandbox.ts";
import { Doctor, MachineSample, PruneReport, ServerStatus, TrustReport } from "./server.ts";

const ofSandbox = z.strictObject({ sandbox: SandboxRef });
const FileUser = z.string().max(256).optional().describe("User inside whose rights apply; the server's own if left out.");

const CreateFields = z.strictObject({
  project: ProjectPath.optional().describe("Absolute path of a folder in the project that is cloned, or of the project."),
  git: Repository.optional(),
  empty: z.boolean().optional().describe("An empty workspace on a read-only system, for a user without rights, instead of a project."),
  readOnly: z.boolean().optional().describe("Only the project and folders for temporary files can be written to."),
  name: Name.optional().describe("Name; one is made up if left out."),
  limits: Limits.partial().optional().describe("Caps; what is left out comes from the config or the defaults."),
  idleMs: z.number().int().min(0).optional().describe("Idle time after which it ends, 0 for never."),
  env: CallerEnvironment,
  network: NetworkMode.optional().describe("What it reaches, instead of the config's mode."),
  networkVariables: z.boolean().optional().describe("Whether its commands get variables that name the proxy, instead of the config's."),
  ...AUTONOMY_FIELDS,
  unwalled: z.boolean().optional().describe("Accept a copy of the folder without isolation where no walls can be had."),
  user: z.string().max(256).optional().describe("User inside that commands run as by default."),
  labels: z
    .record(z.string().max(63), z.string().max(256))
    .refine((labels) => Object.keys(labels).length <= LIMITS.maxLabels, `at most ${LIMITS.maxLabels} labels`)
    .optional()
    .describe(`Free labels, at most ${LIMITS.maxLabels}.`),
  held: z
    .boolean()
    .optional()
    .describe(
      "It is there for this caller alone: it is removed when the commands that the caller runs in it through a connection have ended, also when the caller was killed, and when the server starts again.",
    ),
  idempotencyKey: z.string().min(1).max(128).optional().describe("The same key gives the same sandbox."),
  run: CommandSpec.optional().describe("A command to run at once; its result is in the answer."),
});

export const CreateInput = CreateFields.refine(
  ({ project, git, empty }) => [project, git, empty === true ? empty : undefined].filter((one) => one !== undefined).length === 1,
  "a sandbox starts from one of project, git and empty",
);
export type CreateInput = z.infer<typeof CreateInput>;

export const CONTRACTS = {
  createSandbox: contract(
    ROUTES.createSandbox,
    "Clone the machine",
    CreateInput,
    Sandbox.extend({ result: CommandResult.optional().describe("Result of `run`.") }),
    201,
  ),
  listSandboxes: contract(
    ROUTES.listSandboxes,
    "List sandboxes",
    z.strictObject({ state: SandboxState.optional(), project: z.string().optional().describe("Only those of this project.") }),
    z.object({ sandboxes: z.array(Sandbox) }),
  ),
  findSandbox: contract(ROUTES.findSandbox, "One sandbox as a list shows it; nothing of it is measured", ofSandbox, Sandbox),
  inspectSandbox: contract(ROUTES.inspectSandbox, "Everything about a sandbox", ofSandbox, SandboxDetail),
  removeSandbox: contract(ROUTES.removeSandbox, "Throw a sandbox away, with its snapshots", ofSandbox, Done),
  stopSandbox: contract(ROUTES.stopSandbox, "End a sandbox and keep a snapshot", ofSandbox, Sandbox),
  startSandbox: contract(ROUTES.startSandbox, "Start a sandbox that has ended again, from the files it left", ofSandbox, Sandbox),
  pauseSandbox: contract(ROUTES.pauseSandbox, "Freeze all processes", ofSandbox, Sandbox),
  resumeSandbox: contract(ROUTES.resumeSandbox, "Thaw all processes", ofSandbox, Sandbox),
  extendSandbox: contract(
    ROUTES.extendSandbox,
    "Give a sandbox more time",
    ofSandbox.extend({
      by: Duration.optional().describe("Time from now; the idle limit if left out."),
      idle: Duration.optional().describe("New idle limit, 0 for never."),
    }),
    Sandbox,
  ),
  limitSandbox: contract(
    ROUTES.limitSandbox,
    "Change the caps of a running sandbox, within this machine's ceilings",
    ofSandbox.extend({
      cpus: Limits.shape.cpus.optional(),
      memoryBytes: Limits.shape.memoryBytes.optional(),
      processes: Limits.shape.processes.optional(),
    }),
    Sandbox,
  ),
  forkSandbox: contract(
    ROUTES.forkSandbox,
    "New sandboxes from a snapshot or from the live state",
    ofSandbox.extend({
      snapshot: SnapshotRef.optional(),
      count: z.number().int().min(1).max(100).default(1).describe("How many."),
      names: z.array(Name).max(100).optional().describe("Their names."),
      ...AUTONOMY_FIELDS,
    }),
    z.object({ sandboxes: z.array(Sandbox) }),
    201,
  ),
  diffSandbox: contract(
    ROUTES.diffSandbox,
    "What changed in the project since the base",
    ofSandbox.extend({
      stat: flag.default(false).describe("Find renames and count lines, too."),
      promotable: flag.default(false).describe("Only what a promotion would take."),
    }),
    Diff,
  ),
  diffSystem: contract(ROUTES.diffSystem, "What changed outside the project: packages, /etc, the rest by folder", ofSandbox, SystemDiff),
  sandboxStatus: contract(
    ROUTES.sandboxStatus,
    "How it stands to reality: age, commits, what moved, what it changed, too",
    ofSandbox,
    SandboxStatus,
  ),
  refreshSandbox: contract(
    ROUTES.refreshSandbox,
    "Bring today's reality into it; its own changes stay, conflicts are marked inside",
    ofSandbox,
    RefreshReport,
  ),
  staleness: contract(ROUTES.staleness, "How far behind reality it is", ofSandbox, Staleness),

  runCommand: contract(
    ROUTES.runCommand,
    "Run a command to its end and return its output",
    ofSandbox.extend({
      ...CommandSpec.shape,
      stdin: z
        .string()
        .max(1024 ** 2)
        .optional()
        .describe("Text for its standard input."),
      background: z.boolean().optional().describe("Return at once; look again with the command's id."),
      terminal: TerminalSize.optional().describe("Give it a terminal of this size."),
    }),
    CommandResult,
  ),
  listCommands: contract(
    ROUTES.listCommands,
    "Commands that run or ran",
    ofSandbox.extend({ all: flag.default(false).describe("Also those that ended.") }),
    z.object({ commands: z.array(Command) }),
  ),
  inspectCommand: contract(
    ROUTES.inspectCommand,
    "One command with its logged output",
    ofSandbox.extend({ command: CommandId }),
    CommandResult,
  ),
  killCommand: contract(
    ROUTES.killCommand,
    "Send a signal to a command's process group",
    ofSandbox.extend({
      command: CommandId,
      signal: z
        .string()
        .regex(/^(SIG)?[A-Z0-9]+$|^\d+$/)
        .default("TERM")
        .describe("Signal name or number."),
    }),
    Done,
  ),

  createSnapshot: contract(
    ROUTES.createSnapshot,
    "Freeze the state of a sandbox",
    ofSandbox.extend({ name: Name.optional() }),
    Snapshot,
    201,
  ),
  listSnapshots: contract(ROUTES.listSnapshots, "Snapshots as a tree", ofSandbox, z.object({ snapshots: z.array(Snapshot) })),
  removeSnapshot: contract(ROUTES.removeSnapshot, "Remove a snapshot", ofSandbox.extend({ snapshot: SnapshotRef }), Done),
  rollback: contract(
    ROUTES.rollback,
    "Bring back the state of a snapshot; processes end",
    ofSandbox.extend({ snapshot: SnapshotRef }),
    Sandbox,
  ),

  listFiles: contract(
    ROUTES.listFiles,
    "List a folder",
    ofSandbox.extend({
      path: SandboxPath,
      depth: count(0, 100).default(1).describe("Levels below."),
      limit: count(0, 100_000).default(10_000).describe("Entries at most."),
      user: FileUser,
    }),
    z.object({ entries: z.array(FileEntry) }),
  ),
  statFile: contract(ROUTES.statFile, "One file", ofSandbox.extend({ path: SandboxPath, user: FileUser }), FileEntry),
  moveFile: contract(
    ROUTES.moveFile,
    "Rename a file or folder",
    ofSandbox.extend({
      path: SandboxPath,
      to: SandboxPath,
      replace: z.boolean().default(false).describe("Replace what is there."),
      user: FileUser,
    }),
    Done,
  ),
  removeFile: contract(
    ROUTES.removeFile,
    "Remove a file or folder",
    ofSandbox.extend({ path: SandboxPath, recursive: z.boolean().default(false).describe("Also what is in a folder."), user: FileUser }),
    Done,
  ),
  makeFolder: contract(
    ROUTES.makeFolder,
    "Make a folder",
    ofSandbox.extend({
      path: SandboxPath,
      parents: z.boolean().default(false).describe("Make missing parents; an existing folder is fine."),
      user: FileUser,
    }),
    Done,
  ),

  ...DESKTOP_CONTRACTS,
  ...PREVIEW_CONTRACTS,
  ...PROCESS_CONTRACTS,
  ...NOTEBOOK_CONTRACTS,
  ...JOB_CONTRACTS,
  ...EXPERIMENT_CONTRACTS,
  ...AUTOMATION_CONTRACTS,
  ...AGENT_CONTRACTS,
  ...RUN_CONTRACTS,
  ...BACKLOG_CONTRACTS,
  ...CONVERSATION_CONTRACTS,
  ...PROMOTION_CONTRACTS,
  ...NETWORK_CONTRACTS,
  ...QUESTION_CONTRACTS,
  ...AUDIT_CONTRACTS,
  ...POLICY_CONTRACTS,
  ...ACTION_CONTRACTS,
  ...SECRET_CONTRACTS,
  ...MODEL_CONTRACTS,
  ...EFFECT_CONTRACTS,
  ...DASHBOARD_CONTRACTS,
  ...NOTIFICATION_CONTRACTS,

  listEvents: contract(
    ROUTES.listEvents,
    "Events after a sequence number",
    z.strictObject({
      after: count(0).default(0).describe("Sequence number."),
      limit: count(1, 1000).default(200).describe("At most."),
      sandbox: SandboxRef.optional(),
    }),
    z.object({
      events: z.array(VivEvent),
      oldest: z.number().int().describe("Oldest sequence number still kept."),
      newest: z.number().int().describe("Newest sequence number."),
    }),
  ),

  machineHistory: contract(
    ROUTES.machineHistory,
    "What was used of the machine in the last day, as far back as the server runs",
    none,
    z.object({ samples: z.array(MachineSample).describe("The oldest first, one a minute.") }),
  ),
  status: contract(ROUTES.status, "The server and its machine", none, ServerStatus),
  doctor: contract(ROUTES.doctor, "What this machine can do", z.strictObject(AGENT_CALLER), Doctor),
  trust: contract(
    ROUTES.trust,
    "Trust the present content of a project's vivarium.json",
    z.strictObject({
      project: z.string().startsWith("/").max(4096).describe("Absolute path in the project."),
      hash: z.string().max(256).optional().describe("Only if the content has this hash, as a dry run told it; whatever it is if left out."),
      dryRun: z.boolean().default(false).describe("Only say what would be trusted."),
    }),
    TrustReport,
  ),
  prune: contract(
    ROUTES.prune,
    "Remove finished sandboxes, expired snapshots and leftovers",
    z.strictObject({ all: z.boolean().default(false).describe("Also running sandboxes.") }),
    PruneReport,
  ),
  shutdown: contract(ROUTES.shutdown, "Stop the server; sandboxes go on", none, Done),
} as const satisfies Record<string, Contract>;

export type Contracts = typeof CONTRACTS;
export type OperationName = keyof Contracts;
/** What a caller passes. */
export type InputOf<Operation extends OperationName> = z.input<Contracts[Operation]["input"]>;
/** What a handler gets, after parsing. */
export type ParsedOf<Operation extends OperationName> = z.output<Contracts[Operation]["input"]>;
export type OutputOf<Operation extends OperationName> = z.output<Contracts[Operation]["output"]>;
