// Made from the contracts by scripts/sdk-types.ts.
import type { VivariumEvent } from "./events.ts";

/** Input of: Events after a sequence number. */
export interface ListEventsInput {
  /** Sequence number. */
  after?: number | undefined;
  /** At most. */
  limit?: number | undefined;
  /** Id or name of a sandbox. */
  sandbox?: string | undefined;
}

/** Answer of: Events after a sequence number. */
export interface ListEventsOutput {
  events: VivariumEvent[];
  /** Oldest sequence number still kept. */
  oldest: number;
  /** Newest sequence number. */
  newest: number;
}
