// Made from the contracts by scripts/sdk-types.ts.
import type { Effect } from "./effects.ts";

/** Input of: Requests that can have changed something outside, the newest first. */
export interface ListEffectsInput {
  /** Id or name of a sandbox. */
  sandbox?: string | undefined;
  /** At most. */
  limit?: number | undefined;
}

/** Answer of: Requests that can have changed something outside, the newest first. */
export interface ListEffectsOutput {
  effects: Effect[];
}
