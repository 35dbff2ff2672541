/** What the server sees of a run by itself, without believing the agent. */

export interface Observation {
  /** Milliseconds of the epoch. */
  readonly at: number;
  /** Hash of the clone's diff against its base. */
  readonly clone?: string;
  /** Numbers of files of that diff, and of the project: null where so few are gone that they were not counted. */
  readonly files?: { readonly added: number; readonly deleted: number; readonly project: number | null };
  /** The agent ran a check of the run, whose tests could be counted. */
  readonly check?: { readonly passed: number; readonly failed: number };
  /** Parts of the limits that are used: 1 is all. */
  readonly use?: Partial<Record<"budget" | "steps" | "disk" | "memory" | "processes", number>>;
  /** Dollars spent so far. */
  readonly cost?: number;
  /** Requests to a model that are open now, by the gateway's count. */
  readonly modelRequests?: number;
  /** Processes that commands of the agent left running. */
  readonly background?: number;
  /** CPU time of the sandbox so far. */
  readonly cpuMs?: number;
  readonly paused?: boolean;
  /** A person is asked something, by the policy or by the agent. */
  readonly personAsked?: boolean;
}
