/** Real agents for tests, fetched from npm once for a checkout, in the versions that users get. */
import { join } from "node:path";
import type { TestOptions } from "vitest";
import { AgentInstalls } from "../../src/work/agents/install.ts";
import { CHECKOUT } from "./compiled.ts";

export interface RealAgent {
  /** Absolute, outside and inside: sandboxes are clones of this machine. Empty where it could not be fetched. */
  readonly program: string;
  /** Options of a `describe` or `test` that needs it. */
  readonly needed: TestOptions;
}

const installs = new AgentInstalls({ folder: join(CHECKOUT, ".cache/agents"), env: process.env });

export async function realAgent(name: string): Promise<RealAgent> {
  try {
    return { program: (await installs.install(name)).program, needed: {} };
  } catch (error) {
    return { program: "", needed: { skip: true, meta: { skipReason: `${name} can't be fetched: ${(error as Error).message}` } } };
  }
}
