/** What the server needs to know of the caller to find the programs of agents. */
import type { InputOf } from "../../base/schema/contracts.ts";
import type { Environment } from "../../base/config/paths.ts";

export function agentCaller(env: Environment, cwd: string): InputOf<"listAgents"> {
  const path = env["PATH"];
  return { project: cwd, ...(path === undefined ? {} : { path }) };
}
