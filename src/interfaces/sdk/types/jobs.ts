// Made from the contracts by scripts/sdk-types.ts.

/** A piece of code that was given to be run. */
export interface Job {
  /** Id of a job, a UUID v4. */
  id: string;
  /** What the code is written in. gui is shell code with a desktop, which xdotool and other programs use. */
  kind: "python" | "shell" | "typescript" | "gui";
  /** succeeded: it ended with the exit code 0. failed: in any other way. */
  state: "queued" | "running" | "succeeded" | "failed";
  /** Path of its project; null for an empty workspace. */
  project: string | null;
  /** Larger numbers begin first. */
  priority: number;
  /** The first line of the code that says something, shortened. */
  title: string;
  /** The sandbox it runs or ran in; null before there is one. */
  sandbox: string | null;
  /** Whether the sandbox is kept after the end. */
  sandboxKept: boolean;
  /** The mode that was asked for. */
  network: "off" | "allow-list" | "public" | null;
  /** How long the code may run. */
  timeoutMs: number;
  /** ISO time. */
  createdAt: string;
  /** ISO time at which the code began. */
  startedAt: string | null;
  /** ISO time. */
  endedAt: string | null;
  /** Exit code as a shell would say it; null before the end, and where no code ran. */
  exitCode: number | null;
  /** Why the code ended; null before the end, and where no code ran. */
  cause: "exit" | "signal" | "timeout" | "out-of-memory" | "disk-full" | "too-many-processes" | "storage-damaged" | "cancelled" | "lost" | null;
  /** One sentence, where the job failed otherwise than by an exit code of its own. */
  reason: string | null;
  /** Bytes of output that are not kept. */
  droppedBytes: number;
}

/** Where a job is, and what it printed. */
export interface JobStatus {
  /** succeeded: it ended with the exit code 0. failed: in any other way. */
  state: "queued" | "running" | "succeeded" | "failed";
  /** Standard output so far: the last 1048576 bytes at most. */
  stdout: string;
  /** Standard error so far: the last 1048576 bytes at most. */
  stderr: string;
}

export interface JobDetail extends Job {
  /** The program's text. */
  code: string;
  /** Standard output so far: the last 1048576 bytes at most. */
  stdout: string;
  /** Standard error so far: the last 1048576 bytes at most. */
  stderr: string;
}
