/** Everything that waits for a person's answer: what agents ask, and promotions. */
import { z } from "zod";
import { Answer, Approval, Approver } from "./approval.ts";
import { CallerEnvironment, contract, flag } from "./contract.ts";
import { QuestionId } from "./ids.ts";
import { Risk } from "./promotion.ts";
import { ROUTES } from "./routes.ts";

export const Question = Approval.extend({
  id: QuestionId,
  deadline: z
    .string()
    .nullable()
    .describe("No answer by then is a denial; null for a promotion, which waits as long as its sandbox is there."),
  risks: z.array(Risk).optional().describe("Of a promotion: what a person should look at first."),
})
  .describe("A question for a person.")
  .meta({ id: "Question" });
export type Question = z.infer<typeof Question>;

export const QUESTION_CONTRACTS = {
  listApprovals: contract(
    ROUTES.listApprovals,
    "Questions that wait for a person, the newest first",
    z.strictObject({ all: flag.default(false).describe("Also those that were answered; promotions only while they wait.") }),
    z.object({ approvals: z.array(Question) }),
  ),
  inspectApproval: contract(ROUTES.inspectApproval, "One question", z.strictObject({ approval: QuestionId }), Question),
  answerApproval: contract(
    ROUTES.answerApproval,
    "Answer a question, as a person",
    z.strictObject({
      approval: QuestionId,
      answer: Answer,
      approver: Approver,
      env: CallerEnvironment,
    }),
    Question,
  ),
} as const;
