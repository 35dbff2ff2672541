// Made from the contracts by scripts/sdk-types.ts.
import type { Question } from "./approvals.ts";

/** Input of: Questions that wait for a person, the newest first. */
export interface ListApprovalsInput {
  /** Also those that were answered; promotions only while they wait. */
  all?: boolean | undefined;
}

/** Answer of: Questions that wait for a person, the newest first. */
export interface ListApprovalsOutput {
  approvals: Question[];
}

/** Input of: One question. */
export interface InspectApprovalInput {
  /** Id of a question for a person, or of a promotion that waits for one. */
  approval: string;
}

/** Input of: Answer a question, as a person. */
export interface AnswerApprovalInput {
  /** Id of a question for a person, or of a promotion that waits for one. */
  approval: string;
  /** once for this very action, always adds the rule shown, deny refuses it. */
  answer: "once" | "always" | "deny";
  /** The approver's token, which the command line reads on a terminal alone. */
  approver: string;
  /** Environment of the caller; names and values that look secret are left out. */
  env?: { [name: string]: string } | undefined;
}
