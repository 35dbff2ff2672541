/** Experiments: several approaches at once, judged by the same checks. */
import { z } from "zod";
import { CheckResult, ShellLine } from "./check.ts";
import { KEEPS, PICKS, RANKING_RULES } from "./choices.ts";
import { Duration } from "./config.ts";
import { CallerEnvironment, CallerFolder, contract, Done, ProjectPath, flag } from "./contract.ts";
import { ExperimentId, Name, RunId, SandboxId, SandboxRef, SnapshotId, SnapshotRef } from "./ids.ts";
import { AUTONOMY_FIELDS } from "./policy.ts";
import { BranchInput } from "./promotion.ts";
import { LIMITS } from "./limits.ts";
import { ROUTES } from "./routes.ts";
import { AgentChoice } from "./run.ts";
import { Limits } from "./sandbox.ts";
import { Repository } from "./start.ts";

export const Rule = z
  .enum(RANKING_RULES)
  .describe(
    "What is better: checks that pass, fewer tests that fail or do not run, protected files untouched, the measure, a smaller diff, less time, CPU, memory or money.",
  );
export type Rule = z.infer<typeof Rule>;
export const DEFAULT_RULES: readonly Rule[] = ["checks", "tests", "protected", "measure", "diff", "time"];

export const Measure = z
  .strictObject({
    command: ShellLine.describe("Prints a number as its last line."),
    goal: z.enum(["min", "max"]).default("min").describe("Whether less or more is better."),
  })
  .describe("A number that tells how good a state is.");
export type Measure = z.infer<typeof Measure>;

export const Pick = z.enum(PICKS).describe("Who chooses the winner: auto, the rules; ask, a person; none, no winner is chosen.");

const GivenInput = z.strictObject({
  path: z.string().min(1).max(4096).describe("Relative to the project."),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .describe("Of its content, in hex."),
});

export const ExperimentInput = z.strictObject({
  project: ProjectPath.optional().describe(
    "Absolute path of a folder in the project, or of the project; left out where `git`, `empty` or `from` says where attempts begin.",
  ),
  git: Repository.optional(),
  empty: z.boolean().optional().describe("Start from an empty workspace on a read-only system, as user 1000."),
  attempts: z
    .array(
      z
        .strictObject({
          name: Name.optional().describe("What to call it; a number if left out."),
          command: ShellLine.optional().describe("What it does, a line for the shell."),
          agent: AgentChoice.optional().describe("An agent that does it, instead of a command."),
        })
        .refine(({ command, agent }) => (command === undefined) !== (agent === undefined), "an attempt is a command or an agent"),
    )
    .min(1)
    .max(64)
    .describe("The approaches."),
  checks: z.array(ShellLine).max(32).optional().describe("Lines whose exit code judges; those of the config if left out."),
  setup: ShellLine.optional().describe("Prepares a fresh clone before its checks, such as `npm ci`."),
  pick: Pick.optional().describe("auto where there are checks, else none."),
  promote: z.boolean().default(false).describe("Promote the winner at once."),
  branch: BranchInput.optional().describe("With promote: make a branch of it instead of writing into the folder."),
  from: z
    .union([SandboxRef, SnapshotRef, RunId])
    .optional()
    .describe(
      "Attempts begin as this sandbox is now, or as this snapshot, instead of as the project is. With the id of a run they begin as that left its sandbox, and agents get its conversation, too.",
    ),
  inputs: z
    .array(GivenInput)
    .max(LIMITS.maxGivenFiles)
    .optional()
    .describe("With `from`: files that the caller put there; as long as they are as they were, they are no result of an attempt."),
  maxParallel: z.number().int().min(1).max(64).optional().describe("Attempts at once; by the machine if left out."),
  timeoutMs: Duration.optional().describe("Time for one attempt's command; 10 minutes if left out."),
  checkTimeoutMs: Duration.optional().describe("Time for one check; as for the command if left out."),
  keep: z.enum(KEEPS).default("all").describe("Which sandboxes stay when it is over."),
  rank: z.array(Rule).min(1).max(9).optional().describe("Rules in their order."),
  repeat: z.number().int().min(1).max(20).default(1).describe("How often each check runs, to find flaky ones."),
  include: z
    .array(z.string().min(1).max(4096))
    .max(64)
    .default([])
    .describe("Ignored paths of the project that count as its change all the same."),
  protect: z
    .array(z.string().min(1).max(4096))
    .max(256)
    .optional()
    .describe("Paths or patterns of files the checks depend on; tests and their configuration if left out."),
  ignoreExit: z.boolean().default(false).describe("Whether an attempt whose command failed may win."),
  measure: Measure.optional(),
  priority: z.number().int().min(-100).max(100).default(0).describe("Larger goes first where attempts wait."),
  cwd: CallerFolder,
  env: CallerEnvironment,
  limits: Limits.partial().optional().describe("Caps of each attempt."),
  ...AUTONOMY_FIELDS,
  unwalled: z.boolean().optional().describe("Accept copies of the folder without isolation where no walls can be had."),
});
export type ExperimentInput = z.output<typeof ExperimentInput>;

export const AttemptState = z
  .enum(["queued", "cloning", "running", "freezing", "checking", "verifying", "done", "failed", "cancelled"])
  .describe("queued, then cloning, running, freezing, checking, perhaps verifying; then done, failed or cancelled.");
export type AttemptState = z.infer<typeof AttemptState>;

export const DiffStat = z
  .object({ files: z.number().int(), added: z.number().int().describe("Lines."), removed: z.number().int().describe("Lines.") })
  .describe("Size of a change; of what is no text, 80 bytes count as a line.");
export type DiffStat = z.infer<typeof DiffStat>;

/** The checks in one state: of an attempt, of the baseline, or of the promotable change alone. */
export const Verdict = z
  .object({
    passed: z.boolean(),
    checks: z.array(CheckResult),
    measure: z.number().nullable().describe("What the measure printed."),
    setup: CheckResult.nullable().describe("The setup step, where one ran and failed."),
  })
  .describe("What the checks said of a state.")
  .meta({ id: "Verdict" });
export type Verdict = z.infer<typeof Verdict>;

export const Attempt = z
  .object({
    index: z.number().int().describe("From 1."),
    name: z.string(),
    command: z.string().describe("The line for the shell, or the agent and its task."),
    run: RunId.nullable().optional().describe("The run, where an agent does it."),
    state: AttemptState,
    reason: z.string().nullable().describe("Why it failed or was cancelled, one sentence."),
    sandbox: SandboxId.nullable().describe("Where it ran; null before and once it is gone."),
    snapshot: SnapshotId.nullable().describe("The state its command left."),
    exitCode: z.number().int().nullable().describe("Of its command."),
    output: z.string().describe("The last part of its command's output."),
    wallMs: z.number().nullable(),
    cpuMs: z.number().nullable(),
    peakMemoryBytes: z.number().nullable(),
    networkBytes: z.number().nullable().describe("Sent and received through the proxy; null without walls."),
    cost: z.number().nullable().describe("In dollars, of requests to models; null where there were none."),
    diff: DiffStat.nullable().describe("Of the promotable change."),
    sideChanges: z.array(z.string()).describe("What it changed that is not promoted: ignored folders, system files, packages."),
    protectedChanged: z.array(z.string()).describe("Protected files it edited; it was judged with the original ones."),
    fewerTests: z.string().nullable().describe("Said when fewer tests ran than in the baseline."),
    checked: Verdict.nullable().describe("Checks in a fork of the state it left."),
    verified: Verdict.nullable().describe("Checks on its promotable change alone, in a fresh clone."),
    needs: z.array(z.string()).describe("What it needs besides its change, such as `npm ci`."),
    flags: z.array(z.string()).describe("What a person should know before choosing it."),
    reruns: z.number().int().describe("How often it began again, because shared folders moved or the server was interrupted."),
    rank: z.number().int().nullable().describe("Place by the rules, from 1."),
    startedAt: z.string().nullable(),
    endedAt: z.string().nullable(),
  })
  .describe("One approach and what came of it.")
  .meta({ id: "Attempt" });
export type Attempt = z.infer<typeof Attempt>;

export const ExperimentState = z.enum(["queued", "running", "choosing", "done", "failed", "cancelled"]);

export const Experiment = z
  .object({
    id: ExperimentId,
    project: z.string(),
    git: z.string().optional().describe("Address of the repository that attempts start from, instead of the project."),
    inputs: z.array(GivenInput).optional().describe("Files that the caller put there before the attempts began."),
    empty: z.boolean().optional().describe("Whether attempts start from an empty workspace, instead of the project."),
    state: ExperimentState.describe("choosing waits for a person."),
    reason: z.string().nullable().describe("The choice, or why there is none, in one sentence."),
    winner: z.number().int().nullable().describe("Index of the attempt that won."),
    attempts: z.array(Attempt),
    baseline: Verdict.nullable().describe("The checks on the untouched clone."),
    checks: z.array(z.string()),
    setup: z.string().nullable(),
    pick: Pick,
    rules: z.array(Rule),
    repeat: z.number().int(),
    promotion: z.string().nullable().describe("Id of the promotion it led to, also of one that waits for a person or has failed."),
    createdAt: z.string(),
    endedAt: z.string().nullable(),
  })
  .describe("Several approaches to one task, and which is best.")
  .meta({ id: "Experiment" });
export type Experiment = z.infer<typeof Experiment>;

const ofExperiment = z.strictObject({ experiment: ExperimentId });

export const EXPERIMENT_CONTRACTS = {
  startExperiment: contract(
    ROUTES.startExperiment,
    "Try several approaches at once; answers at once, and goes on by itself",
    ExperimentInput,
    Experiment,
    201,
  ),
  listExperiments: contract(
    ROUTES.listExperiments,
    "List experiments, the newest first",
    z.strictObject({
      project: z.string().optional().describe("Only those of this project."),
      all: flag.default(false).describe("Also those that ended long ago."),
    }),
    z.object({ experiments: z.array(Experiment) }),
  ),
  inspectExperiment: contract(ROUTES.inspectExperiment, "One experiment", ofExperiment, Experiment),
  cancelExperiment: contract(
    ROUTES.cancelExperiment,
    "Stop what runs and keep what was done",
    ofExperiment.extend({ now: z.boolean().default(false).describe("Kill instead of stopping cleanly.") }),
    Experiment,
  ),
  retryExperiment: contract(
    ROUTES.retryExperiment,
    "Run attempts again that failed, were cancelled, or all",
    ofExperiment.extend({ all: z.boolean().default(false).describe("Also those that ended well.") }),
    Experiment,
  ),
  pickWinner: contract(
    ROUTES.pickWinner,
    "Choose the winner",
    ofExperiment.extend({ attempt: z.union([z.number().int().min(1), Name]).describe("Index or name of an attempt.") }),
    Experiment,
  ),
  removeExperiment: contract(ROUTES.removeExperiment, "Remove an experiment with its sandboxes", ofExperiment, Done),
} as const;
