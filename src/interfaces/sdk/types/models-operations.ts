// Made from the contracts by scripts/sdk-types.ts.
import type { Usage } from "./models.ts";

/** Input of: Tokens and cost of models. */
export interface UsageInput {
  /** Id or name of a sandbox. */
  sandbox?: string | undefined;
  /** Only those of this project. */
  project?: string | undefined;
  /** Only this day. */
  day?: string | undefined;
}

/** Answer of: Tokens and cost of models. */
export interface UsageOutput {
  usage: Usage[];
  /** Cost of all that is listed. */
  microDollars: number;
  /** Cost of everything today (UTC). */
  todayMicroDollars: number;
  /** What may be spent, in dollars. */
  budgets: {
    sandbox?: number | undefined;
    task?: number | undefined;
    project?: number | undefined;
    day?: number | undefined;
  };
}
