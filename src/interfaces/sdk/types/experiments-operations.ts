// Made from the contracts by scripts/sdk-types.ts.
import type { ExperimentInfo, GuardianDetector } from "./experiments.ts";

/** Input of: Try several approaches at once; answers at once, and goes on by itself. */
export interface StartExperimentInput {
  /** Absolute path of a folder in the project, or of the project; left out where `git`, `empty` or `from` says where attempts begin. */
  project?: string | undefined;
  /** A git repository that is cloned into the new sandbox. */
  git?: {
    /** Its address, over https:// or http://. */
    url: string;
    /** Branch, tag or whole commit id; the repository's own branch if left out. */
    ref?: string | undefined;
    /** How long the clone may take; ten minutes if left out. */
    timeoutMs?: number | undefined;
  } | undefined;
  /** Start from an empty workspace on a read-only system, as user 1000. */
  empty?: boolean | undefined;
  /** The approaches. */
  attempts: ({
    /** What to call it; a number if left out. */
    name?: string | undefined;
    /** What it does, a line for the shell. */
    command?: string | undefined;
    /** An agent that does it, instead of a command. */
    agent?: {
      /** Name of an agent, as `viv agents` shows it. */
      agent?: string | undefined;
      /** What it is asked to do. */
      task: string;
      /** The agent's own choice if left out. */
      model?: string | undefined;
      /** Tool calls that it may make. */
      steps?: number | undefined;
      /** Whether it is watched: full, or warn to be told only, or off; full if left out. */
      guardian?: "off" | "warn" | "full" | undefined;
      /** What the guardian does not look for. */
      guardianOff?: GuardianDetector[] | undefined;
      /** What it does at a rate limit of its model API: wait for its end and go on, or stop with the work kept; wait if left out. */
      rateLimit?: "wait" | "stop" | undefined;
      /** Take a snapshot before each turn, too. */
      snapshots?: boolean | undefined;
      /** Other agents that it may ask. */
      with?: ({
        /** What it is asked as. A reviewer reads the change, and can change nothing. */
        role: "reviewer";
        /** The agent that asks, if left out. */
        agent?: string | undefined;
        /** Of the same agent, that of the one that asks; else the agent's own choice. */
        model?: string | undefined;
      })[] | undefined;
      /** Of an agent that takes over a run: tokens of the earlier conversation that it gets; 8,000 if left out. */
      contextTokens?: number | undefined;
      /** Dollars that it may spend on models. */
      budget?: number | undefined;
    } | undefined;
  })[];
  /** Lines whose exit code judges; those of the config if left out. */
  checks?: string[] | undefined;
  /** Prepares a fresh clone before its checks, such as `npm ci`. */
  setup?: string | undefined;
  /** auto where there are checks, else none. */
  pick?: "auto" | "ask" | "none" | undefined;
  /** Promote the winner at once. */
  promote?: boolean | undefined;
  /** With promote: make a branch of it instead of writing into the folder. */
  branch?: {
    kind?: "fix" | "feat" | "chore" | "docs" | "refactor" | "test" | "perf" | undefined;
    ticket?: string | undefined;
    /** The branch's whole name instead of one made from kind, ticket and message. */
    name?: string | undefined;
    /** Name of a remote of the project; origin for a pull request if left out. */
    push?: string | undefined;
    /** Push it, and open a pull request for it. */
    pullRequest?: boolean | undefined;
    /** Replay commits made inside instead of making one. */
    keepCommits?: boolean | undefined;
    /** Name <address> for the co-author trailer. */
    coAuthor?: string | undefined;
  } | undefined;
  /** Attempts begin as this sandbox is now, or as this snapshot, instead of as the project is. With the id of a run they begin as that left its sandbox, and agents get its conversation, too. */
  from?: string | undefined;
  /** With `from`: files that the caller put there; as long as they are as they were, they are no result of an attempt. */
  inputs?: ({
    /** Relative to the project. */
    path: string;
    /** Of its content, in hex. */
    sha256: string;
  })[] | undefined;
  /** Attempts at once; by the machine if left out. */
  maxParallel?: number | undefined;
  /** Time for one attempt's command; 10 minutes if left out. */
  timeoutMs?: number | string | undefined;
  /** Time for one check; as for the command if left out. */
  checkTimeoutMs?: number | string | undefined;
  /** Which sandboxes stay when it is over. */
  keep?: "all" | "winner" | "none" | undefined;
  /** Rules in their order. */
  rank?: ("checks" | "tests" | "protected" | "measure" | "diff" | "time" | "cpu" | "memory" | "cost")[] | undefined;
  /** How often each check runs, to find flaky ones. */
  repeat?: number | undefined;
  /** Ignored paths of the project that count as its change all the same. */
  include?: string[] | undefined;
  /** Paths or patterns of files the checks depend on; tests and their configuration if left out. */
  protect?: string[] | undefined;
  /** Whether an attempt whose command failed may win. */
  ignoreExit?: boolean | undefined;
  /** A number that tells how good a state is. */
  measure?: {
    /** Prints a number as its last line. */
    command: string;
    /** Whether less or more is better. */
    goal?: "min" | "max" | undefined;
  } | undefined;
  /** Larger goes first where attempts wait. */
  priority?: number | undefined;
  /** Folder of the project that the lines given here run in, absolute or relative to the project; the project's own if left out. Lines of the config always run there. */
  cwd?: string | undefined;
  /** Environment of the caller; names and values that look secret are left out. */
  env?: { [name: string]: string } | undefined;
  /** Caps of each attempt. */
  limits?: {
    /** CPU cores, fractions allowed. */
    cpus?: number | undefined;
    /** Memory in bytes, page cache included. */
    memoryBytes?: number | undefined;
    /** Disk space of the sandbox's volume in bytes, its snapshots included. */
    diskBytes?: number | undefined;
    /** Processes and threads. */
    processes?: number | undefined;
  } | undefined;
  /** Autonomy: 1 guided, 2 intelligent, 3 full. */
  level?: 1 | 2 | 3 | undefined;
  /** Auto-approval: 1 files, 2 and network, 3 all but privileged, 4 all. */
  yolo?: 1 | 2 | 3 | 4 | undefined;
  /** What an agent is there for. */
  role?: "worker" | "reviewer" | "coordinator" | undefined;
  /** Accept copies of the folder without isolation where no walls can be had. */
  unwalled?: boolean | undefined;
}

/** Input of: List experiments, the newest first. */
export interface ListExperimentsInput {
  /** Only those of this project. */
  project?: string | undefined;
  /** Also those that ended long ago. */
  all?: boolean | undefined;
}

/** Answer of: List experiments, the newest first. */
export interface ListExperimentsOutput {
  experiments: ExperimentInfo[];
}

/** Input of: One experiment. */
export interface InspectExperimentInput {
  /** Id of an experiment. */
  experiment: string;
}

/** Input of: Stop what runs and keep what was done. */
export interface CancelExperimentInput {
  /** Id of an experiment. */
  experiment: string;
  /** Kill instead of stopping cleanly. */
  now?: boolean | undefined;
}

/** Input of: Run attempts again that failed, were cancelled, or all. */
export interface RetryExperimentInput {
  /** Id of an experiment. */
  experiment: string;
  /** Also those that ended well. */
  all?: boolean | undefined;
}

/** Input of: Choose the winner. */
export interface PickWinnerInput {
  /** Id of an experiment. */
  experiment: string;
  /** Index or name of an attempt. */
  attempt: number | string;
}

/** Input of: Remove an experiment with its sandboxes. */
export interface RemoveExperimentInput {
  /** Id of an experiment. */
  experiment: string;
}
