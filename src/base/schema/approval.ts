/** Questions that only a person may answer. An answer is bound to one exact action, has a deadline and is used once. */
import { z } from "zod";
import { ApprovalId } from "./ids.ts";
import { PolicyAction } from "./policy.ts";

export const ApprovalState = z
  .enum(["waiting", "approved", "denied", "expired", "used"])
  .describe("expired is a denial by silence; used was approved and has been done.");

export const Approval = z
  .object({
    id: ApprovalId,
    state: ApprovalState,
    sandbox: z.string().nullable().describe("Id of the sandbox that asks; null for the host's own."),
    sandboxName: z.string().nullable(),
    project: z.string().describe("Path of the project."),
    kind: z.enum(["command", "tool", "path", "host", "effect", "promotion", "resources", "secret", "private", "run"]),
    target: z.string().describe("The exact command, path, host, promotion or secret."),
    hash: z.string().describe("Of the exact action and the sandbox: an answer counts for nothing else."),
    rule: z.string().nullable().describe("The rule that made it a question."),
    reason: z.string().describe("Why a person is asked, one sentence."),
    always: z.string().nullable().describe("The narrow rule that `always` would add; null where that can't be had."),
    action: PolicyAction.optional().describe("The exact action, where the policy asked about one."),
    askedAt: z.string(),
    deadline: z.string().describe("No answer by then is a denial."),
    answeredAt: z.string().nullable(),
    answeredBy: z.string().nullable(),
    scope: z.enum(["once", "always"]).nullable(),
    forgottenAt: z.string().optional().describe("When the rule that `always` had added was taken back."),
  })
  .describe("A question for a person.")
  .meta({ id: "Approval" });
export type Approval = z.infer<typeof Approval>;

export const Answer = z
  .enum(["once", "always", "deny"])
  .describe("once for this very action, always adds the rule shown, deny refuses it.");

export const Approver = z.string().min(1).max(256).describe("The approver's token, which the command line reads on a terminal alone.");
