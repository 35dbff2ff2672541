/** Jobs: a piece of code that is run in a sandbox of its own. `POST /schedule` and `GET /status/{job_id}` have snake_case fields. */
import { z } from "zod";
import { JOB_KINDS, JOB_STATES } from "./choices.ts";
import { Cause } from "./command.ts";
import { contract, count, ProjectPath } from "./contract.ts";
import { SandboxId } from "./ids.ts";
import { LIMITS } from "./limits.ts";
import { NetworkMode } from "./network.ts";
import { ROUTES } from "./routes.ts";
import { Limits } from "./sandbox.ts";

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export const JobId = z.string().regex(UUID_V4, "not the id of a job, which is a UUID v4 in lower case").describe("Id of a job, a UUID v4.");
export const JobKind = z
  .enum(JOB_KINDS)
  .describe("What the code is written in. gui is shell code with a desktop, which xdotool and other programs use.");
export type JobKind = z.infer<typeof JobKind>;
export const JobState = z.enum(JOB_STATES).describe("succeeded: it ended with the exit code 0. failed: in any other way.");
export type JobState = z.infer<typeof JobState>;

const Code = z
  .string()
  .min(1, "the code is empty")
  .refine((code) => new TextEncoder().encode(code).length <= LIMITS.jobCodeBytes, `the code is longer than ${LIMITS.jobCodeBytes} bytes`)
  .refine((code) => !code.includes("\0"), "the code has a NUL byte")
  .refine((code) => code.isWellFormed(), "the code has half of a character (an unpaired surrogate)")
  .describe(`The program's text, at most ${LIMITS.jobCodeBytes} bytes.`);

const { cpus, memoryBytes, diskBytes, processes } = Limits.partial().shape;

export const ScheduleInput = z.strictObject({
  kind: JobKind,
  code: Code,
  project: ProjectPath.optional().describe(
    "Absolute path of a project: the code runs in a clone of it, in its folder. Left out, it runs in an empty /workspace on a read-only system.",
  ),
  timeout_seconds: z
    .number()
    .min(0.1)
    .max(LIMITS.mostJobMs / 1000)
    .default(LIMITS.defaultJobMs / 1000)
    .describe("How long the code may run; then it is ended, and the job has failed."),
  limits: z
    .strictObject({ cpus, memory_bytes: memoryBytes, disk_bytes: diskBytes, processes })
    .optional()
    .describe("Caps of its sandbox; what is left out comes from the config or the defaults."),
  network: NetworkMode.optional().describe("What it reaches, instead of the config's mode."),
  keep_sandbox: z.boolean().default(false).describe("Keep the sandbox after the end, to look at its files; else it is thrown away."),
  priority: z.int().min(-100).max(100).default(0).describe("Of jobs that wait, those with the larger number begin first."),
  idempotency_key: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe("The same key with the same request gives the same job; with another request it is refused as `key_reused`."),
});
export type ScheduleInput = z.infer<typeof ScheduleInput>;

const text = (stream: string) => z.string().describe(`Standard ${stream} so far: the last ${LIMITS.jobOutputBytes} bytes at most.`);
const output = { stdout: text("output"), stderr: text("error") };

/** Exactly these fields: programs that know no others read it. */
export const JobStatus = z
  .object({ state: JobState, ...output })
  .describe("Where a job is, and what it printed.")
  .meta({ id: "JobStatus" });
export type JobStatus = z.infer<typeof JobStatus>;

export const Job = z
  .object({
    id: JobId,
    kind: JobKind,
    state: JobState,
    project: z.string().nullable().describe("Path of its project; null for an empty workspace."),
    priority: z.number().int().describe("Larger numbers begin first."),
    title: z.string().describe("The first line of the code that says something, shortened."),
    sandbox: SandboxId.nullable().describe("The sandbox it runs or ran in; null before there is one."),
    sandboxKept: z.boolean().describe("Whether the sandbox is kept after the end."),
    network: NetworkMode.nullable().describe("The mode that was asked for."),
    timeoutMs: z.number().int().describe("How long the code may run."),
    createdAt: z.string().describe("ISO time."),
    startedAt: z.string().nullable().describe("ISO time at which the code began."),
    endedAt: z.string().nullable().describe("ISO time."),
    exitCode: z.number().int().nullable().describe("Exit code as a shell would say it; null before the end, and where no code ran."),
    cause: Cause.nullable().describe("Why the code ended; null before the end, and where no code ran."),
    reason: z.string().nullable().describe("One sentence, where the job failed otherwise than by an exit code of its own."),
    droppedBytes: z.number().int().describe("Bytes of output that are not kept."),
  })
  .describe("A piece of code that was given to be run.")
  .meta({ id: "Job" });
export type Job = z.infer<typeof Job>;

export const JobDetail = Job.extend({ code: z.string().describe("The program's text."), ...output }).meta({ id: "JobDetail" });
export type JobDetail = z.infer<typeof JobDetail>;

/** What a listener of a job's output hears. */
export const JobOutput = z
  .union([
    z.object({ stream: z.enum(["stdout", "stderr"]), data: z.string().describe("Bytes of the output, as base64.") }),
    z.object({ dropped: z.number().int().describe("Bytes of output that this listener does not get.") }),
    z.object({ ended: Job }),
  ])
  .describe("A part of a job's output; the last one says how the job ended.");
export type JobOutput = z.infer<typeof JobOutput>;

const ofJob = z.strictObject({ job: JobId });

export const JOB_CONTRACTS = {
  scheduleJob: contract(
    ROUTES.scheduleJob,
    "Run a piece of code in a sandbox of its own, as soon as there is room",
    ScheduleInput,
    z.object({ job_id: JobId }),
  ),
  jobStatus: contract(ROUTES.jobStatus, "Where a job is, and what it printed so far", z.strictObject({ job_id: JobId }), JobStatus),
  listJobs: contract(
    ROUTES.listJobs,
    "Jobs, the newest first",
    z.strictObject({
      state: JobState.optional(),
      project: z.string().optional().describe("Only those of this project."),
      limit: count(1, LIMITS.keptJobs).default(50).describe("At most."),
    }),
    z.object({ jobs: z.array(Job) }),
  ),
  inspectJob: contract(ROUTES.inspectJob, "Everything about a job", ofJob, JobDetail),
  cancelJob: contract(ROUTES.cancelJob, "End a job, or take it out of the queue; the answer comes when it has ended", ofJob, Job),
} as const;
