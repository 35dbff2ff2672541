// Made from the contracts by scripts/sdk-types.ts.

/** Something that the guardian looks for. */
export type GuardianDetector = "silence" | "repeat" | "alternation" | "same_error" | "no_progress" | "monologue" | "spending" | "drift" | "damage" | "flood" | "budget" | "steps" | "disk" | "memory";

/** Several approaches to one task, and which is best. */
export interface ExperimentInfo {
  /** Id of an experiment. */
  id: string;
  project: string;
  /** Address of the repository that attempts start from, instead of the project. */
  git?: string | undefined;
  /** Files that the caller put there before the attempts began. */
  inputs?: ({
    /** Relative to the project. */
    path: string;
    /** Of its content, in hex. */
    sha256: string;
  })[] | undefined;
  /** Whether attempts start from an empty workspace, instead of the project. */
  empty?: boolean | undefined;
  /** choosing waits for a person. */
  state: "queued" | "running" | "choosing" | "done" | "failed" | "cancelled";
  /** The choice, or why there is none, in one sentence. */
  reason: string | null;
  /** Index of the attempt that won. */
  winner: number | null;
  attempts: AttemptInfo[];
  /** The checks on the untouched clone. */
  baseline: Verdict | null;
  checks: string[];
  setup: string | null;
  /** Who chooses the winner: auto, the rules; ask, a person; none, no winner is chosen. */
  pick: "auto" | "ask" | "none";
  rules: ("checks" | "tests" | "protected" | "measure" | "diff" | "time" | "cpu" | "memory" | "cost")[];
  repeat: number;
  /** Id of the promotion it led to, also of one that waits for a person or has failed. */
  promotion: string | null;
  createdAt: string;
  endedAt: string | null;
}

/** One approach and what came of it. */
export interface AttemptInfo {
  /** From 1. */
  index: number;
  name: string;
  /** The line for the shell, or the agent and its task. */
  command: string;
  /** The run, where an agent does it. */
  run?: string | null | undefined;
  /** queued, then cloning, running, freezing, checking, perhaps verifying; then done, failed or cancelled. */
  state: "queued" | "cloning" | "running" | "freezing" | "checking" | "verifying" | "done" | "failed" | "cancelled";
  /** Why it failed or was cancelled, one sentence. */
  reason: string | null;
  /** Where it ran; null before and once it is gone. */
  sandbox: string | null;
  /** The state its command left. */
  snapshot: string | null;
  /** Of its command. */
  exitCode: number | null;
  /** The last part of its command's output. */
  output: string;
  wallMs: number | null;
  cpuMs: number | null;
  peakMemoryBytes: number | null;
  /** Sent and received through the proxy; null without walls. */
  networkBytes: number | null;
  /** In dollars, of requests to models; null where there were none. */
  cost: number | null;
  /** Of the promotable change. */
  diff: {
    files: number;
    /** Lines. */
    added: number;
    /** Lines. */
    removed: number;
  } | null;
  /** What it changed that is not promoted: ignored folders, system files, packages. */
  sideChanges: string[];
  /** Protected files it edited; it was judged with the original ones. */
  protectedChanged: string[];
  /** Said when fewer tests ran than in the baseline. */
  fewerTests: string | null;
  /** Checks in a fork of the state it left. */
  checked: Verdict | null;
  /** Checks on its promotable change alone, in a fresh clone. */
  verified: Verdict | null;
  /** What it needs besides its change, such as `npm ci`. */
  needs: string[];
  /** What a person should know before choosing it. */
  flags: string[];
  /** How often it began again, because shared folders moved or the server was interrupted. */
  reruns: number;
  /** Place by the rules, from 1. */
  rank: number | null;
  startedAt: string | null;
  endedAt: string | null;
}

/** What the checks said of a state. */
export interface Verdict {
  passed: boolean;
  checks: CheckResult[];
  /** What the measure printed. */
  measure: number | null;
  /** The setup step, where one ran and failed. */
  setup: CheckResult | null;
}

/** What a check said. */
export interface CheckResult {
  /** The shell line. */
  command: string;
  /** Whether it ended with 0, every time it ran. */
  passed: boolean;
  /** Of the first run that failed, else 0. */
  exitCode: number;
  /** How often it ran. */
  runs: number;
  /** Whether it passed and failed on the same state. */
  flaky: boolean;
  /** Time of all runs. */
  wallMs: number;
  /** Null where the output is of no known kind. */
  tests: TestCounts | null;
  /** The last part of its output. */
  output: string;
  /** What else ended it: timeout, memory, ... */
  cause: string | null;
}

/** Tests counted in the output of a check. */
export interface TestCounts {
  /** Whose output was understood. */
  format: "junit" | "tap" | "node" | "vitest" | "pytest";
  passed: number;
  failed: number;
  skipped: number;
}
