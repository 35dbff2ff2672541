/** Actions of agents, decided and enforced: what a sandbox's policy is, what it says to an action, and how a person changes it. */
import { z } from "zod";
import { Approval, Approver } from "./approval.ts";
import { contract, Done, ProjectPath } from "./contract.ts";
import { ApprovalId, SandboxRef } from "./ids.ts";
import { Autonomy, AUTONOMY_FIELDS, PolicyAction, PolicyDecision, PolicyRule } from "./policy.ts";
import { ROUTES } from "./routes.ts";

export const ActionInput = z.strictObject({
  action: PolicyAction,
  wait: z.number().min(0).max(600).default(0).describe("Seconds to wait for a person, where one is asked."),
  reason: z
    .string()
    .max(1024)
    // oxlint-disable-next-line no-control-regex -- exactly those are refused
    .regex(/^[^\u0000-\u0008\u000b-\u001f\u007f-\u009f]*$/, "has control characters")
    .optional()
    .describe("Why, in the agent's own words, for the person who may be asked."),
});
export type ActionInput = z.infer<typeof ActionInput>;

export const ActionAnswer = PolicyDecision.extend({
  approval: Approval.pick({ id: true, state: true, deadline: true, always: true })
    .nullable()
    .describe("The question, where a person is asked: try the same action again once it is answered."),
})
  .describe("allow: do it, now and once. deny: don't. ask: a person has not answered yet.")
  .meta({ id: "ActionAnswer" });
export type ActionAnswer = z.infer<typeof ActionAnswer>;

export const SandboxPolicy = z
  .object({
    title: z.string().describe("Level or yolo level in effect."),
    autonomy: Autonomy.describe("As in effect."),
    tools: z.record(z.string(), z.boolean()).describe("Tools that the role has or lacks."),
    otherTools: z.boolean().describe("Whether it has tools that are not named."),
    maxSteps: z.number().int().nullable().describe("Tool calls that the run may make; null: as many as its task takes."),
    rules: z.record(z.string(), PolicyRule).describe("By tool; the most specific wins."),
    stricter: z.record(z.string(), PolicyRule).describe("Rules of a project that is not trusted: these only make a verdict stricter."),
    always: z.array(z.string()).describe("What a person allowed always."),
    production: z.array(z.string()).describe("Hosts that no level opens."),
    ceiling: z.object({ cpus: z.number(), memoryBytes: z.number() }).describe("What is granted at run time without a person."),
    text: z.string().describe("The same for AGENTS.md."),
  })
  .describe("What is enforced for agents in a sandbox.")
  .meta({ id: "SandboxPolicy" });
export type SandboxPolicy = z.infer<typeof SandboxPolicy>;

export const AddedRule = z
  .object({
    id: ApprovalId,
    project: z.string().describe("Path of the project it holds for."),
    rule: z.string().describe("The very action that it allows."),
    sandboxName: z.string().nullable().describe("The sandbox that asked."),
    addedAt: z.string(),
  })
  .describe("A rule that a person added by answering `always`.")
  .meta({ id: "AddedRule" });
export type AddedRule = z.infer<typeof AddedRule>;

export const ACTION_CONTRACTS = {
  decideAction: contract(
    ROUTES.decideAction,
    "Decide an action of an agent: recorded before it is answered, asked about where the policy says so",
    ActionInput.extend({ sandbox: SandboxRef }),
    ActionAnswer,
  ),
  inspectPolicy: contract(
    ROUTES.inspectPolicy,
    "What is enforced for agents in a sandbox",
    z.strictObject({ sandbox: SandboxRef }),
    SandboxPolicy,
  ),
  setPolicy: contract(
    ROUTES.setPolicy,
    "Change level and role of a sandbox's agents, as a person; holds from the next action on",
    z.strictObject({ sandbox: SandboxRef, ...AUTONOMY_FIELDS, approver: Approver }),
    Autonomy,
  ),
  listRules: contract(
    ROUTES.listRules,
    "Rules that people added by answering `always`",
    z.strictObject({ project: ProjectPath.optional() }),
    z.object({ rules: z.array(AddedRule) }),
  ),
  forgetRule: contract(ROUTES.forgetRule, "Take such a rule back: it is asked again", z.strictObject({ rule: ApprovalId }), Done),
} as const;
