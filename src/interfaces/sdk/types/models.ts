// Made from the contracts by scripts/sdk-types.ts.

/** What a sandbox used of a model on a day. */
export interface Usage {
  /** Id of the sandbox. */
  sandbox: string;
  /** Its name. */
  name: string;
  /** Its task, if it has one. */
  task: string | null;
  /** Path of its project. */
  project: string;
  /** Day in UTC. */
  day: string;
  provider: string;
  /** As it was asked for. */
  model: string;
  /** Requests that were sent on. */
  requests: number;
  /** Sent, without those of a cache. */
  inputTokens: number;
  /** Answered. */
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  /** Cost in millionths of a dollar, by the table of prices. */
  microDollars: number;
}
