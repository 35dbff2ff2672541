// Made from the contracts by scripts/sdk-types.ts.
import type { Job } from "./jobs.ts";

/** Input of: Run a piece of code in a sandbox of its own, as soon as there is room. */
export interface ScheduleJobInput {
  /** What the code is written in. gui is shell code with a desktop, which xdotool and other programs use. */
  kind: "python" | "shell" | "typescript" | "gui";
  /** The program's text, at most 524288 bytes. */
  code: string;
  /** Absolute path of a project: the code runs in a clone of it, in its folder. Left out, it runs in an empty /workspace on a read-only system. */
  project?: string | undefined;
  /** How long the code may run; then it is ended, and the job has failed. */
  timeout_seconds?: number | undefined;
  /** Caps of its sandbox; what is left out comes from the config or the defaults. */
  limits?: {
    /** CPU cores, fractions allowed. */
    cpus?: number | undefined;
    /** Memory in bytes, page cache included. */
    memory_bytes?: number | undefined;
    /** Disk space of the sandbox's volume in bytes, its snapshots included. */
    disk_bytes?: number | undefined;
    /** Processes and threads. */
    processes?: number | undefined;
  } | undefined;
  /** What it reaches, instead of the config's mode. */
  network?: "off" | "allow-list" | "public" | undefined;
  /** Keep the sandbox after the end, to look at its files; else it is thrown away. */
  keep_sandbox?: boolean | undefined;
  /** Of jobs that wait, those with the larger number begin first. */
  priority?: number | undefined;
  /** The same key with the same request gives the same job; with another request it is refused as `key_reused`. */
  idempotency_key?: string | undefined;
}

/** Answer of: Run a piece of code in a sandbox of its own, as soon as there is room. */
export interface ScheduleJobOutput {
  /** Id of a job, a UUID v4. */
  job_id: string;
}

/** Input of: Where a job is, and what it printed so far. */
export interface JobStatusInput {
  /** Id of a job, a UUID v4. */
  job_id: string;
}

/** Input of: Jobs, the newest first. */
export interface ListJobsInput {
  /** succeeded: it ended with the exit code 0. failed: in any other way. */
  state?: "queued" | "running" | "succeeded" | "failed" | undefined;
  /** Only those of this project. */
  project?: string | undefined;
  /** At most. */
  limit?: number | undefined;
}

/** Answer of: Jobs, the newest first. */
export interface ListJobsOutput {
  jobs: Job[];
}

/** Input of: Everything about a job. */
export interface InspectJobInput {
  /** Id of a job, a UUID v4. */
  job: string;
}

/** Input of: End a job, or take it out of the queue; the answer comes when it has ended. */
export interface CancelJobInput {
  /** Id of a job, a UUID v4. */
  job: string;
}
