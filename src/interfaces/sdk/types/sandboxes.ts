// Made from the contracts by scripts/sdk-types.ts.

/** A sandbox: one isolated clone. */
export interface SandboxInfo {
  /** Id of a sandbox. */
  id: string;
  /** A name: lower-case letters, digits and hyphens. */
  name: string;
  /** Where the sandbox is in its life. */
  state: "pending" | "creating" | "running" | "paused" | "completing" | "completed" | "failed";
  /** How it ended; null while it has not. */
  outcome: "done" | "failed" | "timeout" | "cancelled" | "lost" | null;
  /** One sentence on why it is in this state, if there is something to say. */
  reason: string | null;
  /** How the sandbox is isolated. */
  driver: "native" | "folder";
  /** False: UNWALLED, a copy of the folder without isolation. */
  walled: boolean;
  /** Absolute path of the project in reality; an empty folder of the server's for a sandbox without one. */
  project: string;
  start: {
    /** A git repository. */
    from: "git";
    /** Its address. */
    url: string;
    /** The branch, tag or commit that was asked for. */
    ref: string | null;
    /** The commit that was cloned; null for a repository without one. */
    commit: string | null;
  } | {
    /** An empty workspace. */
    from: "empty";
  } | null;
  /** Only the project and folders for temporary files can be written to. */
  readOnly: boolean;
  /** The sandbox it was forked from. */
  parent: string | null;
  /** Hard caps of one sandbox. */
  limits: {
    /** CPU cores, fractions allowed. */
    cpus: number;
    /** Memory in bytes, page cache included. */
    memoryBytes: number;
    /** Disk space of the sandbox's volume in bytes, its snapshots included. */
    diskBytes: number;
    /** Processes and threads. */
    processes: number;
  };
  /** hard: the kernel holds the limits. watched: the server does, seconds later. none: limits are not held. */
  limitsHeld: "hard" | "watched" | "none";
  /** Where its volume lives. */
  storage: "btrfs" | "plain" | "folder";
  /** ISO time of creation. */
  createdAt: string;
  /** ISO time of the end. */
  endedAt: string | null;
  /** ISO time at which it ends by itself if it is idle from now on; null for never. */
  expiresAt: string | null;
  /** Idle time after which it ends by itself, 0 for never. */
  idleMs: number;
  /** What keeps it from being idle now: commands that were asked for, callers attached to commands, open ports. */
  uses: string[];
  /** Free labels of the caller. */
  labels: { [name: string]: string };
  /** What agents in a sandbox may do. With neither level nor yolo the project's trusted config says it, else it is yolo 3. */
  autonomy: {
    level: 1 | 2 | 3 | null;
    yolo: 1 | 2 | 3 | 4 | null;
    /** What an agent is there for. */
    role: "worker" | "reviewer" | "coordinator";
  };
  /** What its caller should know of this clone, a sentence each. */
  notes: string[];
  /** Config keys that wait for `viv trust`. */
  untrusted: string[];
}

export interface CommandResult extends Command {
  /** Standard output, the last 1048576 bytes at most. */
  stdout: string;
  /** Standard error, bounded the same. */
  stderr: string;
  /** True if output was cut. */
  truncated: boolean;
}

/** One changed path. */
export interface DiffEntry {
  /** Path relative to the project. */
  path: string;
  /** Where it was before, of what was renamed. */
  from: string | null;
  /** What happened to it since the base. */
  status: "added" | "changed" | "deleted" | "renamed";
  /** Kind of file. */
  type: "file" | "dir" | "link" | "fifo" | "socket" | "char" | "block";
  /** Mode in the base as git writes it: 100644, 100755 (executable), 120000 (link), 40000 (folder); null if it was not there. */
  oldMode: string | null;
  /** Mode now; null if it is gone. */
  newMode: string | null;
  /** Lines added; null for binary or other files. */
  added: number | null;
  /** Lines removed. */
  removed: number | null;
  /** Why a promotion leaves it out: ignore rules name it, it is no file, folder or link, its name imitates git's own folder, or it is an empty folder; null for what is promoted, and outside the project. */
  leftOut: "ignored" | "special" | "git" | "folder" | null;
}

export interface SandboxDetail extends SandboxInfo {
  /** ISO time of the base it was cloned from. */
  baseTakenAt: string;
  /** What the base of a sandbox holds. */
  capture: {
    /** Files in the base. */
    files: number;
    /** Bytes in the base. */
    bytes: number;
    /** Files copied for this base. */
    changed: number;
    /** Files gone since the base before. */
    removed: number;
    /** Folders shared live. */
    live: ({
      /** Absolute path of the folder. */
      path: string;
      /** ignored: large and git-ignored. large: over the capture limit. */
      reason: "ignored" | "large";
      /** Files and folders counted (a lower bound when large). */
      entries: number;
      /** Bytes counted (a lower bound when large). */
      bytes: number;
    })[];
    /** Files too large to capture, shown read-only. */
    readOnly: string[];
    /** Files that kept changing while they were captured. */
    torn: string[];
    /** What the user should know, a sentence each. */
    notes: string[];
  };
  /** Limits that programs inside find where they look for the size of the machine. */
  limitsSeen: ("cpus" | "memory")[];
  /** Names of environment variables left out because they look secret. */
  environmentLeftOut: string[];
  /** Paths of reality that do not exist inside. */
  masked: string[];
  /** What it uses now. */
  use: {
    /** Memory in use. */
    memoryBytes: number | null;
    /** CPU time used. */
    cpuMs: number | null;
    /** Processes and threads now. */
    processes: number | null;
    /** Disk space of its own. */
    diskBytes: number | null;
  };
  /** Process 1 as reality sees it. */
  processId: number | null;
}

/** It is done: failures are errors. */
export interface Done {
  ok: true;
}

/** What a sandbox changed outside the project. */
export interface SystemDiff {
  /** Debian packages, and packages that npm and pip installed for all users. */
  packages: ({
    /** Name of the package. */
    name: string;
    /** Version in reality; null if it is not there. */
    old: string | null;
    /** Version inside; null if it was removed. */
    new: string | null;
    /** Who manages it. */
    manager: "dpkg" | "npm" | "pip";
  })[];
  /** Files below /etc. */
  etc: DiffEntry[];
  /** Everything else, counted by folder. */
  folders: ({
    /** Absolute path of the folder. */
    path: string;
    /** Files added. */
    added: number;
    /** Files changed. */
    changed: number;
    /** Files deleted. */
    deleted: number;
  })[];
  /** Whether there is more than could be looked at. */
  more: boolean;
}

/** How a sandbox stands to reality. */
export interface SandboxStatus {
  /** ISO time of the base. */
  takenAt: string;
  /** Age of the base in milliseconds. */
  ageMs: number;
  /** Whether reality has moved since. */
  stale: boolean;
  /** What moved in reality, the first 1,000. */
  changes: ({
    /** Path relative to the project. */
    path: string;
    /** What happened in reality. */
    status: "added" | "changed" | "deleted";
    /** Whether this sandbox changed it, too. */
    changedInside: boolean;
  })[];
  /** Whether there are more. */
  more: boolean;
  /** Id of the sandbox. */
  id: string;
  /** Its name. */
  name: string;
  /** Its state. */
  state: string;
  /** Commits made in reality since; null where that is not known. */
  commits: number | null;
  /** Files that this sandbox changed. */
  changedInside: number;
}

/** What a refresh did. */
export interface RefreshReport {
  /** Id of the sandbox. */
  id: string;
  /** Its name. */
  name: string;
  /** ISO time of the reality that it stands on now. */
  takenAt: string;
  /** Snapshot of the state before; null if nothing had moved. */
  snapshot: string | null;
  /** What was brought in, the first 1,000. */
  changes: ({
    /** Path relative to the project. */
    path: string;
    /** What was done inside. */
    status: "added" | "changed" | "deleted";
  })[];
  /** How many there are. */
  files: number;
  /** What is left to be settled inside. */
  conflicts: ({
    /** Path relative to the project. */
    path: string;
    /** content, binary, mode, type, delete/edit, directory/file, rename, late edit, ... */
    kind: string;
    /** What happened on both sides, and what is there now. */
    message: string;
    /** Where reality's version lies beside the sandbox's; null if it does not. */
    reality: string | null;
  })[];
}

/** How far a sandbox is behind reality. */
export interface Staleness {
  /** ISO time of the base. */
  takenAt: string;
  /** Age of the base in milliseconds. */
  ageMs: number;
  /** Whether reality has moved since. */
  stale: boolean;
  /** What moved in reality, the first 1,000. */
  changes: ({
    /** Path relative to the project. */
    path: string;
    /** What happened in reality. */
    status: "added" | "changed" | "deleted";
  })[];
  /** Whether there are more. */
  more: boolean;
}

/** A command that runs or ran inside a sandbox. */
export interface Command {
  /** Id of a command. */
  id: string;
  /** Id of a sandbox. */
  sandbox: string;
  /** Program and arguments. */
  command: string[];
  /** User inside. */
  user: string;
  /** Working folder. */
  cwd: string;
  /** Whether it has a terminal. */
  terminal: boolean;
  /** Process id inside. */
  pid: number | null;
  /** ISO time. */
  startedAt: string;
  /** Whether it still runs. */
  running: boolean;
  /** How it ended. */
  end: CommandEnd | null;
  /** The service of the config that it belongs to; left out where a caller asked for it. */
  service?: string | undefined;
}

/** How a command ended. */
export interface CommandEnd {
  /** Why the command ended. */
  cause: "exit" | "signal" | "timeout" | "out-of-memory" | "disk-full" | "too-many-processes" | "storage-damaged" | "cancelled" | "lost";
  /** Exit code as a shell would say it: 128 + signal, 124 for a timeout. */
  exitCode: number;
  /** Name of the signal that ended it. */
  signal: string | null;
  /** One sentence, when the cause is not an ordinary exit. */
  message: string | null;
  /** Milliseconds from start to end. */
  wallMs: number;
  /** CPU milliseconds of the command and the children it waited for. */
  cpuMs: number;
  /** Bytes written to stdout and stderr. */
  outputBytes: number;
  /** Bytes of output no longer in the log. */
  droppedBytes: number;
}
