/** Agents for the benchmark, in the place where this checkout's tests have theirs. */
import { join } from "node:path";
import { AgentInstalls } from "../src/work/agents/install.ts";

export const installs = new AgentInstalls({ folder: join(import.meta.dirname, "..", ".cache", "agents"), env: process.env });
