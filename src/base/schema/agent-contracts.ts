/** Agents as the server knows them: which there are, where their programs come from, and whether they can work. */
import { z } from "zod";
import { contract, ProjectPath } from "./contract.ts";
import { ROUTES } from "./routes.ts";
import { AgentName } from "./run.ts";

export const ProgramSource = z
  .enum(["installed", "path", "npm", "project"])
  .describe(
    "installed: fetched by `viv agents install`. path: on the caller's PATH. npm: in the folder of npm's global programs. project: in the project's node_modules.",
  );
export type ProgramSource = z.infer<typeof ProgramSource>;

export const Agent = z
  .object({
    name: z.string(),
    title: z.string().describe("As people call it."),
    program: z.string().nullable().describe("Absolute path; null where it was not found."),
    from: ProgramSource.nullable(),
    version: z.string().nullable().describe("As its package says; null where that is not known without a probe."),
    login: z
      .enum(["kept", "missing", "unneeded"])
      .describe("Whether a login is kept for a model API that it can use. unneeded: it uses none of the model gateway."),
    provider: z.string().nullable().describe("The model API that it would use."),
    installs: z.string().nullable().describe("The version that `viv agents install` fetches; null where it fetches none."),
  })
  .describe("An agent.")
  .meta({ id: "Agent" });
export type Agent = z.infer<typeof Agent>;

export const AgentProbe = z
  .object({
    works: z.boolean().describe("Whether its program ran and said its version."),
    version: z.string().nullable(),
    detail: z.string().describe("What it printed first, or why it did not run."),
    wallMs: z.number().nullable().describe("Milliseconds that the program took."),
  })
  .describe("What came of starting an agent's program with --version in a throw-away sandbox.")
  .meta({ id: "AgentProbe" });
export type AgentProbe = z.infer<typeof AgentProbe>;

/** How the caller says whose programs count. */
export const AGENT_CALLER = {
  project: ProjectPath.optional().describe("A folder in the project whose own programs count, too."),
  path: z.string().max(32_768).optional().describe("The caller's PATH; the system's usual one if left out."),
};

export const AGENT_CONTRACTS = {
  listAgents: contract(
    ROUTES.listAgents,
    "Agents that can be given a task, and what each lacks",
    z.strictObject(AGENT_CALLER),
    z.object({ agents: z.array(Agent) }),
  ),
  probeAgent: contract(
    ROUTES.probeAgent,
    "Start an agent's program with --version in a throw-away sandbox",
    z.strictObject({ agent: AgentName, ...AGENT_CALLER }),
    AgentProbe,
  ),
  installAgent: contract(
    ROUTES.installAgent,
    "Fetch an agent's program in the version that Vivarium was tried with",
    z.strictObject({ agent: AgentName }),
    Agent,
  ),
} as const;
