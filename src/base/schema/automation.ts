/** Automations: a trigger with what it starts and the authority it has, and firings, what came of a trigger. */
import { z } from "zod";
import { CheckResult, ShellLine } from "./check.ts";
import { AUTHORITIES, AUTOMATION_STATES, FIRING_STATES, TRIAGE_WAYS, TRIGGER_KINDS } from "./choices.ts";
import { contract, count, Done, ProjectPath } from "./contract.ts";
import { AutomationId, AutomationRef, ExperimentId, FiringId, Name, PromotionId } from "./ids.ts";
import { LIMITS } from "./limits.ts";
import { ROUTES } from "./routes.ts";
import { AgentName } from "./run.ts";
import { Duration } from "./units.ts";

export const Authority = z
  .enum(AUTHORITIES)
  .describe(
    "alert-only: it tells. propose-and-wait: it tries, and a person promotes. act-and-notify: it promotes what is verified, and tells. act-and-log: it promotes, and the record says so.",
  );
export type Authority = z.infer<typeof Authority>;

const TimeZone = z
  .string()
  .min(1)
  .max(64)
  .refine(isTimeZone, "there is no such time zone; one is written like Europe/Berlin")
  .describe("Time zone, such as Europe/Berlin; the machine's if left out.");

function isTimeZone(zone: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

/** Said in an answer as a number. */
const Milliseconds = Duration.pipe(z.number().int());
const Every = Duration.pipe(
  z
    .number()
    .int()
    .min(LIMITS.leastPollMs, `at least every ${LIMITS.leastPollMs / 1000} s`),
);
/** A path or a text with `*`, which stands for any text. */
const Wildcard = z.string().min(1).max(4096);

const TRIGGERS = {
  files: z.strictObject({
    on: z.literal("files"),
    paths: z
      .array(Wildcard)
      .min(1)
      .max(64)
      .describe("Paths of the project, relative to it; `*` stands for any text, also with slashes, and a folder for all below it."),
  }),
  schedule: z.strictObject({
    on: z.literal("schedule"),
    cron: z.string().min(1).max(200).describe("A line of cron: minute, hour, day, month, weekday; with six fields, seconds first."),
    timezone: TimeZone.optional(),
  }),
  webhook: z.strictObject({ on: z.literal("webhook") }),
  commit: z.strictObject({
    on: z.literal("commit"),
    branch: z
      .string()
      .max(200)
      .regex(/^(?![-/.])(?!.*(?:\.\.|\/\/|\/\.|@\{))[^\s~^:?*[\\\p{Cc}]+(?<![/.])$/u, "not the name of a branch")
      .describe("Name of the branch."),
    remote: z.string().min(1).max(2048).optional().describe("A remote of the project, or an address; the local branch if left out."),
    every: Every.optional().describe("How often a remote is asked; every 10 minutes if left out."),
  }),
  check: z.strictObject({
    on: z.literal("check"),
    command: ShellLine.describe("Line that is run in a clone; it fires when the line begins to fail."),
    every: Every.optional().describe("How often it runs; hourly if left out."),
  }),
  log: z.strictObject({
    on: z.literal("log"),
    file: z.string().startsWith("/").max(4096).describe("Absolute path of the file."),
    line: Wildcard.describe("What a line has to be; `*` stands for any text, as in `*ERROR*`."),
  }),
};

export const Trigger = z
  .discriminatedUnion("on", [TRIGGERS.files, TRIGGERS.schedule, TRIGGERS.webhook, TRIGGERS.commit, TRIGGERS.check, TRIGGERS.log])
  .describe("What it waits for.");
export type Trigger = z.infer<typeof Trigger>;

const Clock = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, "a time of day is like 08:30");
const dollars = z.number().positive("a budget is more than 0 dollars").max(1_000_000);

export const AutomationSpec = z
  .strictObject({
    when: Trigger.optional().describe("Left out, it runs only when it is asked to."),
    task: z.string().trim().min(1).max(LIMITS.automationTaskCharacters).optional().describe("What an agent is asked to do."),
    agent: AgentName.optional().describe("The agent; claude if left out."),
    model: z.string().min(1).max(200).optional().describe("Its model."),
    run: z.array(ShellLine).min(1).max(16).optional().describe("Lines instead of a task: each is an attempt in a clone of its own."),
    checks: z.array(ShellLine).max(32).optional().describe("Lines that verify the change in a clone; the project's if left out."),
    setup: ShellLine.optional().describe("Prepares a fresh clone before its checks; the project's if left out."),
    reality: z
      .array(ShellLine)
      .max(16)
      .default([])
      .describe("Lines run on the real machine before and after a promotion: it is undone when one fails that passed before."),
    authority: Authority.default("propose-and-wait"),
    timeout: Milliseconds.optional().describe("Time for one attempt; 10 minutes if left out."),
    batch: Milliseconds.optional().describe("What comes within this time is one firing; 2 seconds if left out, 0 for none."),
    budget: z
      .strictObject({
        run: dollars.optional().describe("Dollars that one firing may spend on models."),
        night: dollars.optional().describe("Dollars of all its firings from noon to noon; those beyond wait for the next night."),
      })
      .prefault({})
      .describe("What it may spend on models."),
    quiet: z
      .strictObject({ from: Clock.describe("Such as 08:00."), to: Clock.describe("Such as 18:00."), timezone: TimeZone.optional() })
      .optional()
      .describe("Hours in which it begins nothing; what comes then waits."),
    together: z.boolean().default(false).describe("It may work while another automation works on the same project."),
    dryRun: z.boolean().default(false).describe("It tries and verifies, and promotes nothing."),
  })
  .refine(({ task, run }) => (task === undefined) !== (run === undefined), "an automation has a task or lines to run, and not both")
  .refine(({ agent, model, task }) => task !== undefined || (agent ?? model) === undefined, "agent and model need a task")
  .describe("A trigger with what it starts and the authority it has.");
export type AutomationSpec = z.output<typeof AutomationSpec>;

/** The user's own config: what no automation goes over. */
export const AutomationsConfig = z
  .strictObject({
    authority: Authority.default("propose-and-wait").describe("The most that any automation of this machine may do."),
    parallel: z.number().int().min(1).max(64).default(2).describe("Firings at work at once."),
    budget: dollars.optional().describe("Dollars of all automations from noon to noon."),
  })
  .prefault({})
  .describe("Automations: what they may do at most.");
export type AutomationsConfig = z.infer<typeof AutomationsConfig>;

export const TriggerKind = z.enum(TRIGGER_KINDS).describe("What it waits for; manual for one that only a person starts.");
export type TriggerKind = z.infer<typeof TriggerKind>;
export const FiringState = z
  .enum(FIRING_STATES)
  .describe(
    "seen, triaged, working, verified; then done (nothing to change), promoted, waiting (for a person), alerted, failed, muted or undone.",
  );
export type FiringState = z.infer<typeof FiringState>;

export const Automation = z
  .object({
    id: AutomationId,
    name: Name,
    project: z.string().describe("Path of its project."),
    source: z.enum(["config", "person"]).describe("config: of vivarium.json. person: added by `viv automation add`."),
    kind: TriggerKind,
    spec: AutomationSpec,
    state: z.enum(AUTOMATION_STATES).describe("muted: it stopped itself. broken: it can't wait for its trigger; reason says why."),
    reason: z.string().nullable().describe("Why it is paused, muted or broken, one sentence."),
    authority: Authority.describe("What it may do now: its own, within the user's config."),
    nextAt: z.string().nullable().describe("ISO time of the next run of a schedule."),
    last: z
      .object({ firing: FiringId, state: FiringState, at: z.string().describe("ISO time at which its trigger was seen.") })
      .nullable()
      .describe("Its newest firing."),
    createdAt: z.string(),
  })
  .describe("A trigger with what it starts and the authority it has.")
  .meta({ id: "Automation" });
export type Automation = z.infer<typeof Automation>;

export const FiringTriage = z
  .object({
    way: z.enum(TRIAGE_WAYS).describe("direct: it only looks, in reality. sandbox: tried, verified, promoted. propose: a person decides."),
    reason: z.string(),
  })
  .describe("What is to be done, and why.");
export type FiringTriage = z.infer<typeof FiringTriage>;

export const Firing = z
  .object({
    id: FiringId,
    automation: AutomationId,
    name: z.string().describe("Name of the automation."),
    project: z.string(),
    kind: TriggerKind,
    state: FiringState,
    reason: z.string().nullable().describe("Why it is in this state, one sentence."),
    seen: z
      .array(z.object({ at: z.string(), text: z.string() }))
      .describe("What was seen, the first ones; texts of files, logs and callers are data."),
    count: z.number().int().describe("Triggers that it stands for."),
    triage: FiringTriage.nullable(),
    authority: Authority.nullable().describe("What it had when it was triaged."),
    experiment: ExperimentId.nullable(),
    promotion: PromotionId.nullable(),
    files: z.array(z.string()).describe("Paths that were promoted, or wait to be; the first ones."),
    output: z.string().nullable().describe("What a direct look printed; the last part."),
    before: z.array(CheckResult).describe("Checks of reality before the promotion."),
    after: z.array(CheckResult).describe("The same after it."),
    undo: PromotionId.nullable().describe("The promotion that took it back."),
    cost: z.number().describe("Dollars spent on models."),
    steps: z.array(z.object({ at: z.string(), state: FiringState, reason: z.string().nullable() })).describe("Its way."),
    seenAt: z.string(),
    notBefore: z.string().nullable().describe("ISO time before which it does not begin."),
    endedAt: z.string().nullable(),
  })
  .describe("What came of a trigger.")
  .meta({ id: "Firing" });
export type Firing = z.infer<typeof Firing>;

export const AutomationTest = z
  .object({
    automation: Automation,
    triage: FiringTriage,
    wouldFire: z.boolean().describe("Whether its trigger would fire now."),
    seen: z.string().describe("What its trigger sees now."),
    hindrance: z.string().nullable().describe("Why a firing would wait now."),
  })
  .describe("What a trigger would do now; nothing was done.")
  .meta({ id: "AutomationTest" });
export type AutomationTest = z.infer<typeof AutomationTest>;

export const MorningReport = z
  .object({
    since: z.string(),
    until: z.string(),
    triggers: z.number().int().describe("Triggers that were seen."),
    states: z.array(z.object({ state: FiringState, firings: z.number().int() })).describe("How many firings are in each state."),
    cost: z.number().describe("Dollars spent on models."),
    firings: z.array(Firing).describe("The newest first."),
    left: z.number().int().describe("Firings that are counted, and not listed."),
    stopped: z.array(Automation).describe("Automations that are muted or broken."),
  })
  .describe("What automations did in a time.")
  .meta({ id: "MorningReport" });
export type MorningReport = z.infer<typeof MorningReport>;

export const HookAnswer = z.object({ firing: FiringId }).describe("The firing that the call is part of.");

const of = z.strictObject({
  automation: AutomationRef,
  project: ProjectPath.optional().describe("Where a name is looked for first."),
});

export const AUTOMATION_CONTRACTS = {
  addAutomation: contract(
    ROUTES.addAutomation,
    "Add an automation",
    z.strictObject({
      project: ProjectPath,
      name: Name,
      spec: AutomationSpec,
      path: z.string().max(65_536).optional().describe("PATH of the caller, for its lines."),
    }),
    Automation.extend({ secret: z.string().nullable().describe("What calls of its webhook are signed with.") }),
    201,
  ),
  listAutomations: contract(
    ROUTES.listAutomations,
    "Automations, by project and name",
    z.strictObject({ project: z.string().optional().describe("Only those of this project.") }),
    z.object({ automations: z.array(Automation) }),
  ),
  inspectAutomation: contract(
    ROUTES.inspectAutomation,
    "One automation with its last firings",
    of,
    Automation.extend({ firings: z.array(Firing) }),
  ),
  automationSecret: contract(
    ROUTES.automationSecret,
    "What calls of its webhook are signed with",
    of.extend({ renew: z.boolean().default(false).describe("Make a new one; the one before is worth nothing then.") }),
    z.object({ secret: z.string() }),
  ),
  runAutomation: contract(ROUTES.runAutomation, "Start it now, as a person", of, Firing, 201),
  testAutomation: contract(ROUTES.testAutomation, "What its trigger would do now; nothing is done", of, AutomationTest),
  pauseAutomation: contract(
    ROUTES.pauseAutomation,
    "It waits for nothing until it is resumed; what is at work goes on, and what has not begun waits",
    of.extend({ reason: z.string().min(1).max(500).optional() }),
    Automation,
  ),
  resumeAutomation: contract(ROUTES.resumeAutomation, "It waits for its trigger again", of, Automation),
  removeAutomation: contract(ROUTES.removeAutomation, "Remove it: what is at work ends, and its work is kept", of, Done),
  listFirings: contract(
    ROUTES.listFirings,
    "Firings, the newest first",
    z.strictObject({
      automation: AutomationRef.optional(),
      project: z.string().max(4096).optional().describe("Only those of this project."),
      limit: count(1, LIMITS.listedFirings).default(50),
    }),
    z.object({ firings: z.array(Firing) }),
  ),
  inspectFiring: contract(ROUTES.inspectFiring, "One firing", z.strictObject({ firing: FiringId }), Firing),
  reportFirings: contract(
    ROUTES.reportFirings,
    "What automations did since a time",
    z.strictObject({ since: z.iso.datetime({ offset: true }), project: z.string().max(4096).optional() }),
    MorningReport,
  ),
} as const;
