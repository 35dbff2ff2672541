/** Agents of the user's own config, beside those that are built in. */
import { z } from "zod";
import { AGENT_PROTOCOLS } from "./choices.ts";
import { ChosenModel } from "./model.ts";

export const AgentEntry = z
  .strictObject({
    protocol: z
      .enum(AGENT_PROTOCOLS)
      .describe(
        "What it speaks: `acp` the Agent Client Protocol, `command` nothing but its output, or the protocol of a built-in agent of that name.",
      ),
    command: z
      .union([z.string().min(1), z.array(z.string()).min(1)])
      .describe(
        "Program and arguments; `{folder}` as in `env`. For `command` also a shell line, and `{task}` stands for the task; without it the task is its standard input.",
      ),
    env: z
      .record(z.string().min(1), z.string())
      .default({})
      .describe(
        "Variables to set for it. `{folder}` stands for a folder of the run outside the project, which a rollback brings back, too; `{model}` for the model that was asked for: without one, a variable that names it is not set.",
      ),
    providers: z
      .array(z.string().min(1))
      .optional()
      .describe("Names of `models`, one of which it must have; those of the protocol's own agent if left out."),
  })
  .refine(({ protocol, command }) => protocol === "command" || typeof command !== "string", {
    path: ["command"],
    message: "a shell line is for the protocol command; give program and arguments",
  })
  .describe("An agent.");
export type AgentEntry = z.infer<typeof AgentEntry>;

export const AgentsConfig = z
  .record(z.string().regex(/^[a-z][a-z0-9-]{0,31}$/, "a name is lower-case letters, digits and hyphens"), AgentEntry)
  .default({})
  .describe("Agents by name, beside the built-in ones; one of the same name takes its place.");
export type AgentsConfig = z.infer<typeof AgentsConfig>;

export const GuardianConfig = z
  .strictObject({
    patience: z
      .number()
      .min(0.001)
      .max(100)
      .default(1)
      .describe(
        "How long its steps last, the time between two restarts, and silence before it is found: 2 for twice as long as docs/GUARDIAN.md says.",
      ),
    judge: ChosenModel.optional().describe(
      "Model that is asked whether an agent left its task, where cheap signs say that it may have. The task and the names of the last steps are sent there, and the run pays; if left out, no model is asked.",
    ),
  })
  .describe("The guardian of runs.");
export type GuardianConfig = z.infer<typeof GuardianConfig>;
