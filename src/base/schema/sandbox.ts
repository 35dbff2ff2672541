import { z } from "zod";
import { SANDBOX_STATES } from "./choices.ts";
import { Name, SandboxId, SnapshotId } from "./ids.ts";
import { Autonomy, NO_CHOICE } from "./policy.ts";
import { StartingPoint } from "./start.ts";

export const SandboxState = z.enum(SANDBOX_STATES).describe("Where the sandbox is in its life.");
export type SandboxState = z.infer<typeof SandboxState>;

export const Outcome = z.enum(["done", "failed", "timeout", "cancelled", "lost"]).describe("How a finished sandbox ended.");
export type Outcome = z.infer<typeof Outcome>;

const bytes = (what: string) =>
  z
    .number()
    .int()
    .min(1024 ** 2)
    .max(2 ** 50)
    .describe(what);

export const Limits = z
  .strictObject({
    cpus: z.number().min(0.05).max(1024).describe("CPU cores, fractions allowed."),
    memoryBytes: bytes("Memory in bytes, page cache included."),
    diskBytes: bytes("Disk space of the sandbox's volume in bytes, its snapshots included."),
    processes: z.number().int().min(16).max(4_000_000).describe("Processes and threads."),
  })
  .describe("Hard caps of one sandbox.");
export type Limits = z.infer<typeof Limits>;

export const LimitsHeld = z
  .enum(["hard", "watched", "none"])
  .describe("hard: the kernel holds the limits. watched: the server does, seconds later. none: limits are not held.");

export const DriverName = z.enum(["native", "folder"]).describe("How the sandbox is isolated.");
export type DriverName = z.infer<typeof DriverName>;
/** Which drivers put walls around a sandbox; a config that asks for another one widens. */
export const IS_WALLED: Readonly<Record<DriverName, boolean>> = { native: true, folder: false };

export const LiveFolder = z
  .object({
    path: z.string().describe("Absolute path of the folder."),
    reason: z.enum(["ignored", "large"]).describe("ignored: large and git-ignored. large: over the capture limit."),
    entries: z.number().int().describe("Files and folders counted (a lower bound when large)."),
    bytes: z.number().int().describe("Bytes counted (a lower bound when large)."),
  })
  .describe("A folder shared copy-on-write with reality instead of being captured.");
export type LiveFolder = z.infer<typeof LiveFolder>;

export const CaptureReport = z
  .object({
    files: z.number().int().describe("Files in the base."),
    bytes: z.number().int().describe("Bytes in the base."),
    changed: z.number().int().describe("Files copied for this base."),
    removed: z.number().int().describe("Files gone since the base before."),
    live: z.array(LiveFolder).describe("Folders shared live."),
    readOnly: z.array(z.string()).describe("Files too large to capture, shown read-only."),
    torn: z.array(z.string()).describe("Files that kept changing while they were captured."),
    notes: z.array(z.string()).describe("What the user should know, a sentence each."),
  })
  .describe("What the base of a sandbox holds.");
export type CaptureReport = z.infer<typeof CaptureReport>;

export const Sandbox = z
  .object({
    id: SandboxId,
    name: Name,
    state: SandboxState,
    outcome: Outcome.nullable().describe("How it ended; null while it has not."),
    reason: z.string().nullable().describe("One sentence on why it is in this state, if there is something to say."),
    driver: DriverName,
    walled: z.boolean().describe("False: UNWALLED, a copy of the folder without isolation."),
    project: z.string().describe("Absolute path of the project in reality; an empty folder of the server's for a sandbox without one."),
    start: StartingPoint.nullable().default(null),
    readOnly: z.boolean().default(false).describe("Only the project and folders for temporary files can be written to."),
    parent: SandboxId.nullable().describe("The sandbox it was forked from."),
    limits: Limits,
    limitsHeld: LimitsHeld,
    storage: z.enum(["btrfs", "plain", "folder"]).describe("Where its volume lives."),
    createdAt: z.string().describe("ISO time of creation."),
    endedAt: z.string().nullable().describe("ISO time of the end."),
    expiresAt: z.string().nullable().describe("ISO time at which it ends by itself if it is idle from now on; null for never."),
    idleMs: z.number().int().describe("Idle time after which it ends by itself, 0 for never."),
    uses: z
      .array(z.string())
      .default([])
      .describe("What keeps it from being idle now: commands that were asked for, callers attached to commands, open ports."),
    labels: z.record(z.string(), z.string()).describe("Free labels of the caller."),
    autonomy: Autonomy.default(NO_CHOICE),
    notes: z.array(z.string()).default([]).describe("What its caller should know of this clone, a sentence each."),
    untrusted: z.array(z.string()).describe("Config keys that wait for `viv trust`."),
  })
  .describe("A sandbox: one isolated clone.")
  .meta({ id: "Sandbox" });
export type Sandbox = z.infer<typeof Sandbox>;

export const SandboxDetail = Sandbox.extend({
  baseTakenAt: z.string().describe("ISO time of the base it was cloned from."),
  capture: CaptureReport,
  limitsSeen: z.array(z.enum(["cpus", "memory"])).describe("Limits that programs inside find where they look for the size of the machine."),
  environmentLeftOut: z.array(z.string()).describe("Names of environment variables left out because they look secret."),
  masked: z.array(z.string()).describe("Paths of reality that do not exist inside."),
  use: z
    .object({
      memoryBytes: z.number().nullable().describe("Memory in use."),
      cpuMs: z.number().nullable().describe("CPU time used."),
      processes: z.number().nullable().describe("Processes and threads now."),
      diskBytes: z.number().nullable().describe("Disk space of its own."),
    })
    .describe("What it uses now."),
  processId: z.number().int().nullable().describe("Process 1 as reality sees it."),
}).meta({ id: "SandboxDetail" });
export type SandboxDetail = z.infer<typeof SandboxDetail>;

export const Snapshot = z
  .object({
    id: SnapshotId,
    name: Name.nullable().describe("Its name, if it was given one."),
    sandbox: SandboxId,
    parent: SnapshotId.nullable().describe("The snapshot before it in the tree."),
    current: z.boolean().describe("True for the one the sandbox's state descends from."),
    createdAt: z.string().describe("ISO time."),
    expiresAt: z.string().nullable().describe("ISO time after which it may be removed."),
    frozenMs: z.number().describe("How long the processes stood still, in milliseconds."),
  })
  .describe("A frozen volume.")
  .meta({ id: "Snapshot" });
export type Snapshot = z.infer<typeof Snapshot>;
