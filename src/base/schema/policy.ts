/** What agents may do: rules, levels, roles, and the verdicts that come of them. */
import { z } from "zod";
import { AUTONOMY_LEVELS, ROLES, YOLO_LEVELS } from "./choices.ts";
import { contract, ProjectPath } from "./contract.ts";
import { SandboxRef } from "./ids.ts";
import { ROUTES } from "./routes.ts";
import { ByteSize, textual } from "./units.ts";

export const Verdict = z.enum(["allow", "ask", "deny"]).describe("allow, ask a person, or deny.").meta({ id: "PolicyVerdict" });
export type Verdict = z.infer<typeof Verdict>;

export const PolicyRule = z
  .union([Verdict, z.record(z.string().min(1).max(1024), Verdict)])
  .describe("A verdict, or patterns with `*` and a verdict each; the most specific wins.")
  .meta({ id: "PolicyRule" });
export type PolicyRule = z.infer<typeof PolicyRule>;

export const AutonomyLevel = z.literal(AUTONOMY_LEVELS).describe("Autonomy: 1 guided, 2 intelligent, 3 full.");
export type AutonomyLevel = z.infer<typeof AutonomyLevel>;
export const YoloLevel = z.literal(YOLO_LEVELS).describe("Auto-approval: 1 files, 2 and network, 3 all but privileged, 4 all.");
export type YoloLevel = z.infer<typeof YoloLevel>;
export const Role = z.enum(ROLES).describe("What an agent is there for.");
export type Role = z.infer<typeof Role>;

/** The level of an agent where neither a person nor a config chose one. */
export const DEFAULT_YOLO: YoloLevel = 3;
export const Autonomy = z
  .object({ level: AutonomyLevel.nullable(), yolo: YoloLevel.nullable(), role: Role })
  .describe("What agents in a sandbox may do. With neither level nor yolo the project's trusted config says it, else it is yolo 3.");
export type Autonomy = z.infer<typeof Autonomy>;
export const NO_CHOICE: Autonomy = { level: null, yolo: null, role: "worker" };

/** The widest yolo level that allows nothing which an autonomy level asks about or denies; 0 where each allows more. */
const YOLO_WITHIN: Readonly<Record<AutonomyLevel, number>> = { 1: 0, 2: 0, 3: 2 };
/** Whether a yolo level allows something that is not allowed now. */
export function isWider(wanted: YoloLevel, { level, yolo }: Pick<Autonomy, "level" | "yolo">): boolean {
  return wanted > (level === null ? (yolo ?? DEFAULT_YOLO) : YOLO_WITHIN[level]);
}

/** As given to a new sandbox, or to change one. */
export const AUTONOMY_FIELDS = {
  level: AutonomyLevel.optional(),
  yolo: YoloLevel.optional(),
  role: Role.optional(),
};

const Examples = z
  .record(
    z.string().min(1),
    z.record(
      z.string().min(1),
      z.strictObject({
        match: z.array(z.string().min(1)).default([]).describe("What the rule must match."),
        not_match: z.array(z.string().min(1)).default([]).describe("What it must not match."),
      }),
    ),
  )
  .describe("What rules must and must not match, by tool and pattern, for `viv policy test`.");

const RolePolicy = z
  .strictObject({
    maxSteps: z
      .number()
      .int()
      .min(1)
      .optional()
      .describe("Tool calls that a run in this role may make, unless the person who started it gave another number."),
    tools: z.record(z.string().min(1), z.boolean()).optional().describe("Tools it has; false takes one away."),
  })
  .describe("Limits of a role.");

/** Keys that are settings; every other key is a tool. */
export const POLICY_SETTINGS = ["level", "yolo", "roles", "ceiling", "tightenOnly", "examples"] as const;

/** Shape of a `permission` block with settings beside the rules. */
export const PolicyConfig = z
  .object({
    level: AutonomyLevel.optional().describe("Autonomy level of this project's agents."),
    yolo: YoloLevel.optional().describe("Auto-approval level instead."),
    roles: z.partialRecord(Role, RolePolicy).optional().describe("Limits of roles, beside the defaults."),
    ceiling: z
      .strictObject({
        cpus: z.number().min(0.05).optional().describe("CPU cores."),
        memory: ByteSize.optional().describe("Memory."),
      })
      .optional()
      .describe("What a sandbox may ask for at run time and gets without a person; `limits` if left out, or what a person gave it."),
    tightenOnly: z.boolean().optional().describe("Rules only make a verdict stricter; always so until the config is trusted."),
    examples: Examples.optional(),
  })
  .catchall(PolicyRule)
  .refine(({ level, yolo }) => level === undefined || yolo === undefined, { message: "level and yolo exclude each other" })
  .describe(
    "Rules for agents: by tool (`bash`, `edit`, `write`, `read`, `external_directory`, ...), and by `path`, `host`, `delete`, `package`, `promotion`. An allow that the level would ask or deny widens.",
  );
export type PolicyConfig = z.infer<typeof PolicyConfig>;

const Text = z.string().max(256 * 1024);
export const PolicyAction = z
  .discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("command"), command: z.union([Text, z.array(Text).min(1)]).describe("A shell line, or words.") }),
    z.strictObject({
      kind: z.literal("tool"),
      tool: z.string().min(1).max(256),
      argument: Text.optional().describe("What it works on: a path, a command, an address."),
    }),
    z.strictObject({ kind: z.literal("path"), path: Text, access: z.enum(["read", "write", "delete"]) }),
    z.strictObject({ kind: z.literal("host"), host: Text, port: z.number().int().min(0).max(65_535).optional() }),
    z.strictObject({
      kind: z.literal("resources"),
      cpus: z.number().min(0).optional().describe("CPU cores in all."),
      memoryBytes: z.number().int().min(0).optional().describe("Memory in all."),
    }),
    z.strictObject({ kind: z.literal("promotion"), stage: Text.describe("Stage it goes to.") }),
  ])
  .describe("What an agent wants to do.");
export type PolicyAction = z.infer<typeof PolicyAction>;

export const PolicyPart = z.object({
  command: z.string().describe("This part of the action, as it runs."),
  verdict: Verdict,
  rule: z.string().describe("The rule that decided, such as `bash: npm *`."),
  reason: z.string().describe("Why, in a sentence."),
});
export type PolicyPart = z.infer<typeof PolicyPart>;

export const PolicyDecision = PolicyPart.omit({ command: true }).extend({
  parts: z.array(PolicyPart).describe("What the action is made of; the strictest decides."),
});
export type PolicyDecision = z.infer<typeof PolicyDecision>;

const Asked = {
  project: ProjectPath.optional().describe("A folder in the project whose rules hold; none if left out."),
  sandbox: SandboxRef.optional().describe("The sandbox whose policy is meant, instead of a project, a level and a role."),
  level: textual(AutonomyLevel).optional(),
  yolo: textual(YoloLevel).optional(),
  role: Role.optional(),
};
const exclusive = "level and yolo exclude each other";

export const Triage = z.object({
  way: z.enum(["direct", "sandbox", "propose"]).describe("Do it at once, try it in a sandbox, or only propose it."),
  reasons: z.array(z.string()).describe("Why, a sentence each."),
  cost: z.object({
    seconds: z.number().describe("Time a sandbox would add, about."),
    memoryMib: z.number().describe("Memory it would take, about."),
    diskMib: z.number().describe("Disk space it would take, about."),
  }),
  decision: PolicyDecision,
});
export type Triage = z.infer<typeof Triage>;

export const POLICY_CONTRACTS = {
  explainPolicy: contract(
    ROUTES.explainPolicy,
    "What the policy says to an action, part by part",
    z.strictObject({ ...Asked, action: PolicyAction }).refine(({ level, yolo }) => level === undefined || yolo === undefined, exclusive),
    PolicyDecision,
  ),
  testPolicy: contract(
    ROUTES.testPolicy,
    "Run the examples kept beside the rules",
    z.strictObject({ project: ProjectPath }),
    z.object({
      passed: z.number().int(),
      failures: z.array(
        z.object({
          rule: z.string(),
          example: z.string(),
          expected: z.enum(["match", "not_match"]),
          reason: z.string(),
        }),
      ),
    }),
  ),
  triageAction: contract(
    ROUTES.triageAction,
    "Is an action safe enough to do, worth a sandbox, or only to be proposed?",
    z.strictObject({ ...Asked, action: PolicyAction }).refine(({ level, yolo }) => level === undefined || yolo === undefined, exclusive),
    Triage,
  ),
  agentInstructions: contract(
    ROUTES.agentInstructions,
    "Text for AGENTS.md from the policy in effect",
    z.strictObject(Asked).refine(({ level, yolo }) => level === undefined || yolo === undefined, exclusive),
    z.object({ text: z.string() }),
  ),
  importPolicy: contract(
    ROUTES.importPolicy,
    "Convert the permission block of an opencode.json",
    z.strictObject({
      text: z
        .string()
        .max(1024 ** 2)
        .describe("The file's text; comments allowed."),
    }),
    z.object({ policy: PolicyConfig, warnings: z.array(z.string()) }),
  ),
} as const;
