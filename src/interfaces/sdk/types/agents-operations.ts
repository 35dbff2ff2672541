// Made from the contracts by scripts/sdk-types.ts.
import type { Agent } from "./agents.ts";

/** Input of: Agents that can be given a task, and what each lacks. */
export interface ListAgentsInput {
  /** A folder in the project whose own programs count, too. */
  project?: string | undefined;
  /** The caller's PATH; the system's usual one if left out. */
  path?: string | undefined;
}

/** Answer of: Agents that can be given a task, and what each lacks. */
export interface ListAgentsOutput {
  agents: Agent[];
}

/** Input of: Start an agent's program with --version in a throw-away sandbox. */
export interface ProbeAgentInput {
  /** Name of an agent, as `viv agents` shows it. */
  agent: string;
  /** A folder in the project whose own programs count, too. */
  project?: string | undefined;
  /** The caller's PATH; the system's usual one if left out. */
  path?: string | undefined;
}

/** Input of: Fetch an agent's program in the version that Vivarium was tried with. */
export interface InstallAgentInput {
  /** Name of an agent, as `viv agents` shows it. */
  agent: string;
}
