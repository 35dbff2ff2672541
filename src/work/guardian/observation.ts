/** What the server sees of a run by itself, without believing the agent. */

export interface Observation {
  /** Milliseconds of the epoch. */
  readonly at: number;
  /** Hash of the clone's diff against its base. */
  readonly clone?: string;
  /** Numbers of files of that diff, and of the project. */
  readonly files?: { readonly added: number; readonly deleted: number; readonly project: number };
  /** The checks were run. */
  readonly check?: { readonly passed: number; readonly failed: number };
  /** Parts of the limits that are used: 1 is all. */
  readonly use?: Partial<Record<"budget" | "steps" | "disk" | "memory" | "processes", number>>;
  /** Dollars spent so far. */
  readonly cost?: number;
  /** Requests to a model that are open now, by the gateway's count. */
  readonly modelRequests?: number;
  /** Commands that run in the sandbox beside the agent and its tools. */
  readonly background?: number;
  /** CPU time of the sandbox so far. */
  readonly cpuMs?: number;
  readonly paused?: boolean;
  /** A person is asked something, by the policy or by the agent. */
  readonly personAsked?: boolean;
  /** Which run waits for which others, of all runs that wait. */
  readonly waits?: Readonly<Record<string, readonly string[]>>;
}
