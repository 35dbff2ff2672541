import { z } from "zod";
import { AutomationsConfig, AutomationSpec } from "./automation.ts";
import { AgentsConfig, GuardianConfig } from "./agent.ts";
import { ListenConfig } from "./listen.ts";
import { MemoryConfig } from "./conversation.ts";
import { BudgetsConfig, ModelsConfig, PricesConfig } from "./model.ts";
import { NotificationsConfig } from "./notification.ts";
import { ProjectNetwork, UserNetwork } from "./network.ts";
import { PolicyConfig } from "./policy.ts";
import { ByteSize, Duration } from "./units.ts";

export { ByteSize, Duration };

const Service = z
  .strictObject({
    command: z.union([z.string(), z.array(z.string()).min(1)]).describe("What to run inside: a shell line, or program and arguments."),
    user: z.string().optional().describe("User inside; root if left out."),
    cwd: z.string().optional().describe("Working folder; the project's if left out."),
    data: z
      .array(z.string().startsWith("/"))
      .default([])
      .describe("Folders of reality with its data, writable inside: copied file by file, or by `take`."),
    take: z
      .string()
      .min(1)
      .optional()
      .describe("Line run in reality that writes a copy of a running service's data into the empty folder `$VIV_DATA`."),
    takeUser: z.string().min(1).optional().describe("User in reality that runs it; the project's owner if left out."),
    every: Duration.default(600_000).describe("Age from which a copy is taken anew for the next clone; 0 for each clone."),
    load: z
      .string()
      .min(1)
      .optional()
      .describe("Line run inside once it is ready, which brings the copy in `$VIV_DATA` into the service; once in a clone."),
    ports: z.array(z.number().int().min(1).max(65_535)).default([]).describe("Ports it listens on; the clone is ready when all answer."),
    ready: z.string().min(1).optional().describe("Line run inside until it succeeds, for a service that answers before it can be used."),
    readyTimeout: Duration.default(30_000).describe("How long to wait for the ports and for ready."),
  })
  .refine(({ take, data }) => take === undefined || data.length > 0, {
    path: ["take"],
    message: "needs a folder in data, where the copy appears",
  })
  .refine(({ take, load, takeUser }) => take !== undefined || (load ?? takeUser) === undefined, { message: "load and takeUser need take" })
  .describe("A service that is started inside each clone.");
export type Service = z.infer<typeof Service>;

const Stage = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z0-9-]{1,63}$/, "a name is lower-case letters, digits and hyphens")
      .describe("What it is called."),
    apply: z
      .union([
        z.enum(["none", "verify", "folder", "branch"]),
        z.strictObject({ push: z.string().min(1).describe("Remote to push the branch to.") }),
        z.strictObject({ run: z.string().min(1).describe("Line that carries it out in reality, such as a deploy script.") }),
      ])
      .describe(
        "none only runs its lines; verify runs the checks in a fresh clone; folder writes into the project; branch commits to a branch; push pushes that branch; run runs a line in reality.",
      ),
    after: z.array(z.string().min(1)).default([]).describe("Lines run in reality once it is applied, before its checks."),
    checks: z
      .array(z.string().min(1))
      .optional()
      .describe(
        "Lines that must succeed: for verify and branch in a fresh clone, else in reality. For verify the project's checks if left out, else none.",
      ),
    approval: z.enum(["none", "ask"]).default("none").describe("ask waits for `viv approve`."),
    rollback: z.string().min(1).optional().describe("Line run in reality when the stage fails after it was applied."),
  })
  .describe("One stage of a promotion.");
export type Stage = z.infer<typeof Stage>;

/** vivarium.json of a project. Keys that widen take effect once a person trusted the content. */
export const ProjectConfig = z
  .strictObject({
    $schema: z.string().optional().describe("Address of the schema, for editors."),
    limits: z
      .strictObject({
        cpus: z.number().min(0.05).optional().describe("CPU cores."),
        memory: ByteSize.optional().describe("Memory."),
        disk: ByteSize.optional().describe("Disk space."),
        processes: z.number().int().min(16).optional().describe("Processes and threads."),
      })
      .default({})
      .describe("Caps of this project's sandboxes, within the user's ceilings."),
    mask: z
      .array(z.string().min(1))
      .default([])
      .describe("More paths that do not exist inside: absolute, from ~, or relative to the project."),
    expose: z
      .array(z.string().min(1))
      .default([])
      .describe("Paths hidden by default that exist inside, copy-on-write: absolute, or from ~. Widens."),
    env: z
      .strictObject({
        pass: z.array(z.string()).default([]).describe("Names passed even though they look secret."),
        set: z.record(z.string(), z.string()).default({}).describe("Variables to set."),
        drop: z.array(z.string()).default([]).describe("Names never passed."),
      })
      .prefault({})
      .describe("Environment variables inside. pass and set widen."),
    services: z
      .record(z.string().regex(/^[a-z0-9-]{1,63}$/, "a name is lower-case letters, digits and hyphens"), Service)
      .default({})
      .describe("Services started inside each clone. Widens."),
    checks: z.array(z.string().min(1)).max(32).default([]).describe("Lines that judge a state of the project, run inside."),
    setup: z.string().min(1).optional().describe("Prepares a fresh clone before its checks, such as `npm ci`; run inside."),
    protect: z.array(z.string().min(1)).optional().describe("Files the checks depend on; tests and their configuration if left out."),
    stages: z
      .array(Stage)
      .max(16)
      .refine((stages) => new Set(stages.map(({ name }) => name)).size === stages.length, "two stages have the same name")
      .optional()
      .describe("Stages of a promotion, in order. Widens."),
    automations: z
      .record(
        z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, "a name is lower-case letters, digits and inner hyphens"),
        AutomationSpec,
      )
      .default({})
      .describe("Automations, by name: a trigger with what it starts. Widens."),
    capture: z
      .strictObject({
        exclude: z.array(z.string()).default([]).describe("Project paths left out of the clone."),
        live: z.array(z.string()).default([]).describe("Project folders shared live instead of captured."),
        limit: ByteSize.optional().describe("Bytes captured at most; the largest folders beyond are shared live."),
      })
      .prefault({})
      .describe("What is copied when the base is frozen."),
    network: ProjectNetwork.prefault({}),
    policy: PolicyConfig.optional(),
    idle: Duration.optional().describe("Time without work or use after which a sandbox is stopped; 0 for never."),
    sudo: z.boolean().default(false).describe("Let setuid programs such as sudo work inside. Widens."),
    driver: z.enum(["native", "folder"]).optional().describe("How to isolate; folder is UNWALLED and widens."),
  })
  .describe("Configuration of a project (vivarium.json, comments allowed).");
export type ProjectConfig = z.infer<typeof ProjectConfig>;

/** Which keys widen what a sandbox may see or do, and so need trust; limits, idle and capture.limit only above the defaults, policy only where it allows more than its level. */
export const WIDENING_KEYS = [
  "expose",
  "env.pass",
  "env.set",
  "services",
  "stages",
  "automations",
  "network",
  "policy",
  "sudo",
  "driver",
  "limits",
  "idle",
  "capture.limit",
] as const;

/** The user's own config: machine-wide ceilings. Never read from a project. */
export const UserConfig = z
  .strictObject({
    $schema: z.string().optional().describe("Address of the schema, for editors."),
    ceilings: z
      .strictObject({
        sandboxes: z.number().int().min(1).optional().describe("Sandboxes at once."),
        cpus: z.number().min(0.05).optional().describe("CPU cores of one sandbox."),
        memory: ByteSize.optional().describe("Memory of one sandbox."),
        disk: ByteSize.optional().describe("Disk space of one sandbox."),
        processes: z.number().int().min(16).optional().describe("Processes of one sandbox."),
      })
      .prefault({})
      .describe("What no sandbox of this machine may go over."),
    mask: z.array(z.string().startsWith("/")).default([]).describe("More paths hidden in every sandbox."),
    expose: z.array(z.string().startsWith("/")).default([]).describe("Paths shown in every sandbox, copy-on-write."),
    network: UserNetwork.prefault({}),
    models: ModelsConfig,
    prices: PricesConfig,
    budgets: BudgetsConfig,
    memory: MemoryConfig,
    agents: AgentsConfig,
    guardian: GuardianConfig.prefault({}),
    notifications: NotificationsConfig,
    listen: ListenConfig.optional(),
    mcp: z
      .strictObject({
        projects: z
          .array(z.string().startsWith("/"))
          .default([])
          .describe("Folders that a chat client may name as a project: clones of them, and of projects below them."),
      })
      .prefault({})
      .describe("What chat clients may do through `viv mcp`."),
    spares: z
      .boolean()
      .default(true)
      .describe(
        "Keep sandboxes of a project in use launched ahead, one or as many as were lately asked for at once, so that the next creates are quicker; and after a create with a name or a fork, a launch that waits for the next one.",
      ),
    forge: z
      .strictObject({
        url: z.string().url().default("https://api.github.com").describe("Address of an API like GitHub's."),
        host: z.string().min(1).optional().describe("Host of its repositories' addresses, where it is not that of the API."),
        token: z.string().min(1).optional().describe("Token for it; never seen by a sandbox."),
        tokenFile: z.string().startsWith("/").optional().describe("File that holds the token."),
      })
      .optional()
      .describe("Where pull requests are made."),
    parallel: z.number().int().min(1).max(256).optional().describe("Attempts of all experiments at once; by the machine if left out."),
    jobs: z
      .strictObject({ parallel: z.number().int().min(1).max(256).optional().describe("Jobs at once; by the machine if left out.") })
      .prefault({})
      .describe("Jobs: code that is given to be run."),
    automations: AutomationsConfig,
    storage: z.enum(["auto", "btrfs", "plain"]).default("auto").describe("Where volumes live."),
    poolLimit: ByteSize.optional().describe("Size the btrfs pool file may grow to."),
  })
  .describe("The user's configuration of Vivarium on this machine.");
export type UserConfig = z.infer<typeof UserConfig>;
