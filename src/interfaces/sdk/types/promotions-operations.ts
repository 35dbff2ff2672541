// Made from the contracts by scripts/sdk-types.ts.
import type { PromotionInfo } from "./promotions.ts";

/** Input of: What a promotion would do. */
export interface PlanPromotionInput {
  /** Id or name of a sandbox. */
  sandbox?: string | undefined;
  /** An experiment, whose winner is meant. */
  experiment?: string | undefined;
  /** Only these paths, and what is below them. */
  only?: string[] | undefined;
  /** Ignored paths that are promoted all the same. */
  include?: string[] | undefined;
}

/** Input of: Bring a sandbox's change into reality. */
export interface PromoteInput {
  /** Id or name of a sandbox. */
  sandbox?: string | undefined;
  /** An experiment, whose winner is meant. */
  experiment?: string | undefined;
  /** Only these paths, and what is below them. */
  only?: string[] | undefined;
  /** Ignored paths that are promoted all the same. */
  include?: string[] | undefined;
  /** Stage to go to; the first that writes into the folder if left out. */
  to?: string | undefined;
  message?: string | undefined;
  /** Instead of those of the experiment or the config. */
  checks?: string[] | undefined;
  setup?: string | undefined;
  /** Accept everything risky that the plan lists. */
  allowRisky?: boolean | undefined;
  /** Wait for a person before anything is written. */
  ask?: boolean | undefined;
  /** Refuse if the plan is not the one with this hash. */
  hash?: string | undefined;
  /** Make a branch instead of writing into the folder. */
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
  /** Folder of the project that the lines given here run in, absolute or relative to the project; the project's own if left out. Lines of the config always run there. */
  cwd?: string | undefined;
  /** Environment of the caller; names and values that look secret are left out. */
  env?: { [name: string]: string } | undefined;
}

/** Input of: Where each change stands, the newest first. */
export interface ListPromotionsInput {
  /** Only those of this project. */
  project?: string | undefined;
  all?: boolean | undefined;
}

/** Answer of: Where each change stands, the newest first. */
export interface ListPromotionsOutput {
  promotions: PromotionInfo[];
}

/** Input of: One promotion. */
export interface InspectPromotionInput {
  /** Id of a promotion. */
  promotion: string;
}

/** Input of: Go on to a later stage, or on from an approval. */
export interface ContinuePromotionInput {
  /** Id of a promotion. */
  promotion: string;
  /** Stage to go to; the one it waits at if left out. */
  to?: string | undefined;
  /** Approve what it waits for, as a person. */
  approve?: boolean | undefined;
  /** The approver's token, which the command line reads on a terminal alone. */
  approver?: string | undefined;
  /** Environment of the caller; names and values that look secret are left out. */
  env?: { [name: string]: string } | undefined;
}

/** Input of: Take back a promotion that waits; nothing is applied. */
export interface DiscardPromotionInput {
  /** Id of a promotion. */
  promotion: string;
}

/** Input of: Take a promotion back. */
export interface UndoPromotionInput {
  /** The last one of the project if left out. */
  promotion?: string | undefined;
  /** Absolute path of a folder in the project, or of the project. */
  project?: string | undefined;
}
