// Made from the contracts by scripts/sdk-types.ts.

/** A process inside a sandbox. */
export interface Process {
  /** Process id inside. */
  pid: number;
  /** Process id of its parent inside; 1 for one whose parent has ended, 0 where it is not known. */
  parent: number;
  /** The kernel's short name of it. Like its arguments, it is what the process says of itself. */
  name: string;
  /** Program and arguments, the first 4096 bytes of them; empty for one that has ended. */
  command: string[];
  /** waiting: for a disk. stopped: by a signal or a debugger. ended: its parent has not asked how. */
  state: "running" | "sleeping" | "waiting" | "stopped" | "ended" | "unknown";
  /** ISO time. */
  startedAt: string;
  /** CPU milliseconds. */
  cpuMs: number;
  /** Memory that it holds; what it shares with others counts for each. */
  memoryBytes: number;
  threads: number;
}
