/** Promotions: a sandbox's change on its way into reality, stage by stage, and back. */
import { z } from "zod";
import { Approver } from "./approval.ts";
import { CheckResult, ShellLine } from "./check.ts";
import { CallerEnvironment, CallerFolder, contract, flag, ProjectPath } from "./contract.ts";
import { ExperimentId, PromotionId, SandboxRef } from "./ids.ts";
import { ROUTES } from "./routes.ts";

export const PlannedChange = z
  .object({
    path: z.string().describe("Path relative to the project; odd bytes are escaped."),
    status: z.enum(["added", "changed", "deleted"]),
    oldMode: z.string().nullable().describe("As git writes modes."),
    newMode: z.string().nullable(),
    hash: z.string().nullable().describe("Git's hash of the bytes that are written; null for a deletion."),
  })
  .describe("A file that a promotion writes or deletes.");
export type PlannedChange = z.infer<typeof PlannedChange>;

export const RiskKind = z
  .enum(["runs-by-itself", "git", "link-out", "special", "setuid", "secret", "submodule", "config", "name", "hidden-text", "conflict"])
  .describe("Why a path is risky.");
export const Risk = z
  .object({ path: z.string(), kind: RiskKind, why: z.string().describe("One sentence.") })
  .describe("Something in a change that a person should look at before it is applied.")
  .meta({ id: "Risk" });
export type Risk = z.infer<typeof Risk>;

export const PlanConflict = z
  .object({
    path: z.string(),
    kind: z.string().describe("content, binary, mode, delete/edit, directory/file, late edit, ..."),
    message: z.string().describe("One sentence."),
  })
  .describe("A place where the change and today's reality can't both be kept.");
export type PlanConflict = z.infer<typeof PlanConflict>;

export const PromotionPlan = z
  .object({
    hash: z.string().describe("Of everything that is written and deleted; the same hash is the same change."),
    changes: z.array(PlannedChange).describe("The first 10,000."),
    files: z.number().int().describe("How many there are."),
    moved: z.boolean().describe("Whether reality moved since the clone, so that the change was merged with it."),
    movedPaths: z.number().int().describe("How many paths moved."),
    conflicts: z.array(PlanConflict),
    risks: z.array(Risk),
    leftOut: z
      .array(z.object({ path: z.string(), why: z.string() }))
      .describe("What the sandbox changed and is not promoted, the first 1,000."),
    notes: z.array(z.string()).describe("What a person should know, one sentence each."),
  })
  .describe("What a promotion would do.")
  .meta({ id: "PromotionPlan" });
export type PromotionPlan = z.infer<typeof PromotionPlan>;

export const StageState = z
  .enum(["pending", "running", "waiting", "passed", "failed", "rolled-back", "not-set-up"])
  .describe("waiting is for an approval; not-set-up has nothing that carries it out.");
export const StageResult = z
  .object({
    name: z.string(),
    state: StageState,
    reason: z.string().nullable(),
    checks: z.array(CheckResult).describe("Checks, and what ran before them, in order."),
    endedAt: z.string().nullable(),
  })
  .describe("How far a promotion came.")
  .meta({ id: "StageResult" });
export type StageResult = z.infer<typeof StageResult>;

export const BranchResult = z
  .object({
    name: z.string(),
    commit: z.string(),
    pushedTo: z.string().nullable(),
    pullRequest: z.string().nullable().describe("Its address."),
  })
  .describe("The branch that holds a change.");
export type BranchResult = z.infer<typeof BranchResult>;

export const PromotionState = z
  .enum(["planning", "waiting", "applying", "applied", "failed", "discarded", "undone"])
  .describe(
    "waiting is for an approval; failed has changed nothing that stays, but for the files in kept; discarded was denied, taken back, or lost its sandbox while it waited.",
  );

export const Promotion = z
  .object({
    id: PromotionId,
    kind: z.enum(["promotion", "undo"]),
    project: z.string(),
    sandbox: z.string().nullable().describe("Id of the sandbox it comes from."),
    sandboxName: z.string().nullable(),
    experiment: z.string().nullable(),
    undoes: z.string().nullable().describe("Id of the promotion that an undo takes back."),
    message: z.string().nullable(),
    state: PromotionState,
    reason: z.string().nullable().describe("Why it failed or waits, one sentence."),
    plan: PromotionPlan.nullable(),
    stages: z.array(StageResult),
    branch: BranchResult.nullable(),
    kept: z
      .array(z.string())
      .default([])
      .describe(
        "Files that were edited while it was written: they keep the edit and what was written before it, although the rest was taken back.",
      ),
    pending: z.boolean().describe("Whether an interrupted write to the project is still to be brought to its end or back."),
    createdAt: z.string(),
    endedAt: z.string().nullable(),
  })
  .describe("A change on its way into reality.")
  .meta({ id: "Promotion" });
export type Promotion = z.infer<typeof Promotion>;

export const BranchInput = z
  .strictObject({
    kind: z.enum(["fix", "feat", "chore", "docs", "refactor", "test", "perf"]).default("fix"),
    ticket: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/, "a ticket is letters, digits, - and _")
      .optional(),
    name: z.string().max(200).optional().describe("The branch's whole name instead of one made from kind, ticket and message."),
    push: z.string().max(200).optional().describe("Name of a remote of the project; origin for a pull request if left out."),
    pullRequest: z.boolean().default(false).describe("Push it, and open a pull request for it."),
    keepCommits: z.boolean().default(false).describe("Replay commits made inside instead of making one."),
    coAuthor: z.string().max(200).optional().describe("Name <address> for the co-author trailer."),
  })
  .describe("Make a branch instead of writing into the folder.");

const Source = {
  sandbox: SandboxRef.optional().describe("Id or name of a sandbox."),
  experiment: ExperimentId.optional().describe("An experiment, whose winner is meant."),
  only: z.array(z.string().min(1).max(4096)).max(256).optional().describe("Only these paths, and what is below them."),
  include: z.array(z.string().min(1).max(4096)).max(64).optional().describe("Ignored paths that are promoted all the same."),
};

export const PromoteInput = z.strictObject({
  ...Source,
  to: z.string().min(1).max(63).optional().describe("Stage to go to; the first that writes into the folder if left out."),
  message: z.string().max(10_000).optional(),
  checks: z.array(ShellLine).max(32).optional().describe("Instead of those of the experiment or the config."),
  setup: ShellLine.optional(),
  allowRisky: z.boolean().default(false).describe("Accept everything risky that the plan lists."),
  ask: z.boolean().default(false).describe("Wait for a person before anything is written."),
  hash: z.string().max(128).optional().describe("Refuse if the plan is not the one with this hash."),
  branch: BranchInput.optional(),
  cwd: CallerFolder,
  env: CallerEnvironment,
});
export type PromoteInput = z.output<typeof PromoteInput>;

const ofPromotion = z.strictObject({ promotion: PromotionId });

export const PROMOTION_CONTRACTS = {
  planPromotion: contract(ROUTES.planPromotion, "What a promotion would do", z.strictObject(Source), PromotionPlan),
  promote: contract(ROUTES.promote, "Bring a sandbox's change into reality", PromoteInput, Promotion, 201),
  listPromotions: contract(
    ROUTES.listPromotions,
    "Where each change stands, the newest first",
    z.strictObject({ project: z.string().optional().describe("Only those of this project."), all: flag.default(false) }),
    z.object({ promotions: z.array(Promotion) }),
  ),
  inspectPromotion: contract(ROUTES.inspectPromotion, "One promotion", ofPromotion, Promotion),
  continuePromotion: contract(
    ROUTES.continuePromotion,
    "Go on to a later stage, or on from an approval",
    ofPromotion.extend({
      to: z.string().min(1).max(63).optional().describe("Stage to go to; the one it waits at if left out."),
      approve: z.boolean().default(false).describe("Approve what it waits for, as a person."),
      approver: Approver.optional(),
      env: CallerEnvironment,
    }),
    Promotion,
  ),
  discardPromotion: contract(ROUTES.discardPromotion, "Take back a promotion that waits; nothing is applied", ofPromotion, Promotion),
  undoPromotion: contract(
    ROUTES.undoPromotion,
    "Take a promotion back",
    z.strictObject({
      promotion: PromotionId.optional().describe("The last one of the project if left out."),
      project: ProjectPath.optional(),
    }),
    Promotion,
    201,
  ),
} as const;
