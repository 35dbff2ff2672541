/** Use cases of questions for a person. */
import type { Approvals } from "../approvals/approvals.ts";
import type { Handlers } from "./operations.ts";

type Own = "listApprovals" | "inspectApproval" | "answerApproval";

export function approvalHandlers(approvals: Approvals): Pick<Handlers, Own> {
  return {
    listApprovals: async ({ all }) => ({ approvals: await approvals.list(all) }),
    inspectApproval: ({ approval }) => approvals.inspect(approval),
    answerApproval: ({ approval, answer, approver }) => approvals.answer(approval, answer, approver),
  };
}
