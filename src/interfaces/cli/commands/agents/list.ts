import type { Agent, AgentProbe } from "../../../../base/schema/agent-contracts.ts";
import { VivError } from "../../../../base/schema/errors.ts";
import type { Client } from "../../../client/client.ts";
import { agentCaller } from "../../agent-caller.ts";
import { command } from "../../command.ts";
import type { Screen } from "../../screen.ts";

type ProbedAgent = Agent & { readonly probe?: AgentProbe | null };

const SOURCES = { installed: "viv agents install", path: "PATH", npm: "npm", project: "project" } as const;
const LOGINS = { kept: "yes", missing: "no", unneeded: "not needed" } as const;

/** One after the other: each has a sandbox of its own, and the machine is not for this alone. */
async function probed(server: Client, agents: readonly Agent[], caller: object, screen: Screen): Promise<ProbedAgent[]> {
  const all: ProbedAgent[] = [];
  for (const agent of agents) {
    const probe = agent.program === null ? null : await screen.during(`Starting ${agent.title}`, probeOf(server, agent.name, caller));
    all.push({ ...agent, version: probe?.version ?? agent.version, probe });
  }
  return all;
}

/** A sandbox that can't be had is an answer, too. */
async function probeOf(server: Client, agent: string, caller: object): Promise<AgentProbe> {
  try {
    return await server.call("probeAgent", { agent, ...caller });
  } catch (error) {
    return { works: false, version: null, detail: VivError.from(error).message, wallMs: null };
  }
}

function probeText({ probe }: ProbedAgent): string {
  if (probe === null || probe === undefined) return "";
  return probe.works ? `runs (${((probe.wallMs ?? 0) / 1000).toFixed(1)} s)` : probe.detail;
}

/** What to type for the first that could be given a task. */
function nextStep(agents: readonly Agent[]): string | undefined {
  if (agents.some(({ program, login }) => program !== null && login !== "missing")) return undefined;
  const here = agents.find(({ program }) => program !== null);
  if (here !== undefined) return `Give it its login with: viv agents login ${here.name}`;
  const first = agents.find(({ installs }) => installs !== null);
  return first === undefined ? undefined : `Fetch one with: viv agents install ${first.name}`;
}

export default command({
  name: "agents",
  summary: "List the agents that can be given a task, and what each lacks",
  details:
    "FROM says where the program was found: fetched by `viv agents install`, on your PATH, among npm's global programs, or in the project's node_modules; the first of these is taken. LOGIN says whether `viv agents login` keeps one for a model API that the agent can use. --probe starts each program with --version in a throw-away clone of the project, without network.",
  examples: [
    ["viv agents", "which there are"],
    ["viv agents --probe", "and whether each starts inside a sandbox"],
    ["viv agents --json", "for programs"],
  ],
  options: { probe: { type: "flag", summary: "Start each program in a throw-away sandbox; takes some seconds" } },
  positionals: [],
  async run({ options, json, screen, env, cwd, client }) {
    const caller = agentCaller(env, cwd);
    const server = await client();
    const { agents: listed } = await server.call("listAgents", caller);
    const agents: readonly ProbedAgent[] = options.probe ? await probed(server, listed, caller, screen) : listed;
    if (json) return screen.json({ agents });
    screen.table(agents, [
      { title: "NAME", value: ({ name }) => name },
      { title: "AGENT", value: ({ title }) => title },
      { title: "VERSION", value: ({ program, version }) => version ?? (program === null ? "" : "unknown") },
      { title: "FROM", value: ({ from }) => (from === null ? "not here" : SOURCES[from]) },
      {
        title: "LOGIN",
        value: ({ login, provider }) => (login === "kept" && provider !== null ? provider : LOGINS[login]),
        paint: (cell, { login }) => (login === "missing" ? screen.paint("yellow", cell) : cell),
      },
      ...(options.probe ? [{ title: "PROBE", value: probeText, shrinks: true }] : []),
    ]);
    const next = nextStep(agents);
    if (next !== undefined) screen.say(next);
  },
});
