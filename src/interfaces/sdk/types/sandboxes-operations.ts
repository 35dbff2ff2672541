// Made from the contracts by scripts/sdk-types.ts.
import type { CommandResult, DiffEntry, SandboxInfo } from "./sandboxes.ts";

/** Input of: Clone the machine. */
export interface CreateSandboxInput {
  /** Absolute path of a folder in the project that is cloned, or of the project. */
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
  /** An empty workspace on a read-only system, for a user without rights, instead of a project. */
  empty?: boolean | undefined;
  /** Only the project and folders for temporary files can be written to. */
  readOnly?: boolean | undefined;
  /** Name; one is made up if left out. */
  name?: string | undefined;
  /** Caps; what is left out comes from the config or the defaults. */
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
  /** Idle time after which it ends, 0 for never. */
  idleMs?: number | undefined;
  /** Environment of the caller; names and values that look secret are left out. */
  env?: { [name: string]: string } | undefined;
  /** What it reaches, instead of the config's mode. */
  network?: "off" | "allow-list" | "public" | undefined;
  /** Whether its commands get variables that name the proxy, instead of the config's. */
  networkVariables?: boolean | undefined;
  /** Autonomy: 1 guided, 2 intelligent, 3 full. */
  level?: 1 | 2 | 3 | undefined;
  /** Auto-approval: 1 files, 2 and network, 3 all but privileged, 4 all. */
  yolo?: 1 | 2 | 3 | 4 | undefined;
  /** What an agent is there for. */
  role?: "worker" | "reviewer" | "coordinator" | undefined;
  /** Accept a copy of the folder without isolation where no walls can be had. */
  unwalled?: boolean | undefined;
  /** User inside that commands run as by default. */
  user?: string | undefined;
  /** Free labels, at most 64. */
  labels?: { [name: string]: string } | undefined;
  /** It is there for this caller alone: it is removed when the commands that the caller runs in it through a connection have ended, also when the caller was killed, and when the server starts again. */
  held?: boolean | undefined;
  /** The same key gives the same sandbox. */
  idempotencyKey?: string | undefined;
  /** A command to run at once; its result is in the answer. */
  run?: {
    /** Program and arguments. */
    command: string[];
    /** Working folder inside, absolute or relative to the project's folder, which it is if left out. */
    cwd?: string | undefined;
    /** Environment variables added to the sandbox's own. */
    env?: { [name: string]: string } | undefined;
    /** User inside, by name or number; the caller's if left out. */
    user?: string | undefined;
    /** Ends the command after this time. */
    timeoutMs?: number | undefined;
  } | undefined;
}

/** Answer of: Clone the machine. */
export interface CreateSandboxOutput extends SandboxInfo {
  /** Result of `run`. */
  result?: CommandResult | undefined;
}

/** Input of: List sandboxes. */
export interface ListSandboxesInput {
  /** Where the sandbox is in its life. */
  state?: "pending" | "creating" | "running" | "paused" | "completing" | "completed" | "failed" | undefined;
  /** Only those of this project. */
  project?: string | undefined;
}

/** Answer of: List sandboxes. */
export interface ListSandboxesOutput {
  sandboxes: SandboxInfo[];
}

/** Input of: One sandbox as a list shows it; nothing of it is measured. */
export interface FindSandboxInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Input of: Everything about a sandbox. */
export interface InspectSandboxInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Input of: Throw a sandbox away, with its snapshots. */
export interface RemoveSandboxInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Input of: End a sandbox and keep a snapshot. */
export interface StopSandboxInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Input of: Start a sandbox that has ended again, from the files it left. */
export interface StartSandboxInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Input of: Freeze all processes. */
export interface PauseSandboxInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Input of: Thaw all processes. */
export interface ResumeSandboxInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Input of: Give a sandbox more time. */
export interface ExtendSandboxInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Time from now; the idle limit if left out. */
  by?: number | string | undefined;
  /** New idle limit, 0 for never. */
  idle?: number | string | undefined;
}

/** Input of: Change the caps of a running sandbox, within this machine's ceilings. */
export interface LimitSandboxInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** CPU cores, fractions allowed. */
  cpus?: number | undefined;
  /** Memory in bytes, page cache included. */
  memoryBytes?: number | undefined;
  /** Processes and threads. */
  processes?: number | undefined;
}

/** Input of: New sandboxes from a snapshot or from the live state. */
export interface ForkSandboxInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Id or name of a snapshot. */
  snapshot?: string | undefined;
  /** How many. */
  count?: number | undefined;
  /** Their names. */
  names?: string[] | undefined;
  /** Autonomy: 1 guided, 2 intelligent, 3 full. */
  level?: 1 | 2 | 3 | undefined;
  /** Auto-approval: 1 files, 2 and network, 3 all but privileged, 4 all. */
  yolo?: 1 | 2 | 3 | 4 | undefined;
  /** What an agent is there for. */
  role?: "worker" | "reviewer" | "coordinator" | undefined;
}

/** Answer of: New sandboxes from a snapshot or from the live state. */
export interface ForkSandboxOutput {
  sandboxes: SandboxInfo[];
}

/** Input of: What changed in the project since the base. */
export interface DiffSandboxInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Find renames and count lines, too. */
  stat?: boolean | undefined;
  /** Only what a promotion would take. */
  promotable?: boolean | undefined;
}

/** Answer of: What changed in the project since the base. */
export interface DiffSandboxOutput {
  entries: DiffEntry[];
  /** Whether there is more: the list is full, or something lies deeper than a path can name. */
  more: boolean;
}

/** Input of: What changed outside the project: packages, /etc, the rest by folder. */
export interface DiffSystemInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Input of: How it stands to reality: age, commits, what moved, what it changed, too. */
export interface SandboxStatusInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Input of: Bring today's reality into it; its own changes stay, conflicts are marked inside. */
export interface RefreshSandboxInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Input of: How far behind reality it is. */
export interface StalenessInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}
