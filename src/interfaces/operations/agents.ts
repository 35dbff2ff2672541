/** Use cases of agents: which there are, and how one comes here. */
import type { Agent } from "../../base/schema/agent-contracts.ts";
import type { Finding } from "../../base/schema/server.ts";
import type { Agents } from "../../work/agents/agents.ts";
import type { Handlers } from "./operations.ts";

export function agentHandlers(agents: Agents): Pick<Handlers, "listAgents" | "probeAgent" | "installAgent"> {
  return {
    listAgents: async (caller) => ({ agents: agents.list(caller) }),
    probeAgent: ({ agent, ...caller }) => agents.probe(agent, caller),
    installAgent: ({ agent }) => agents.install(agent),
  };
}

/** For the doctor: which could be given a task now. */
export function agentsFinding(agents: readonly Agent[]): Finding {
  const named = (few: readonly Agent[], what: string): string[] =>
    few.length === 0 ? [] : [`${what}: ${few.map(({ name }) => name).join(", ")}`];
  const here = agents.filter(({ program }) => program !== null);
  const ready = here.filter(({ login }) => login !== "missing");
  const parts = [
    ...named(ready, "ready"),
    ...named(
      here.filter((agent) => !ready.includes(agent)),
      "without a login",
    ),
    ...named(
      agents.filter((agent) => !here.includes(agent)),
      "not on this machine",
    ),
  ];
  const [first] = here;
  const remedy =
    first === undefined ? "Run `viv agents install claude`, then `viv agents login claude`." : `Run \`viv agents login ${first.name}\`.`;
  return {
    check: "agents",
    verdict: ready.length > 0 ? "good" : "reduced",
    detail: `${parts.join("; ")}.`.replace(/^./, (letter) => letter.toUpperCase()),
    remedy: ready.length > 0 ? null : remedy,
  };
}
