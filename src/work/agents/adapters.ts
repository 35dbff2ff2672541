/** Every agent that this server knows, by name: those built in, and those of the user's own config. */
import type { AgentsConfig } from "../../base/schema/agent.ts";
import type { Adapter } from "./adapter.ts";
import { claude } from "./adapters/claude.ts";
import { codex } from "./adapters/codex.ts";
import { configured } from "./adapters/configured.ts";
import { gemini } from "./adapters/gemini.ts";
import { opencode } from "./adapters/opencode.ts";
import { pi } from "./adapters/pi.ts";

const BUILT_IN: readonly Adapter[] = [claude, codex, gemini, opencode, pi];

export class Adapters {
  readonly #byName: ReadonlyMap<string, Adapter>;

  /** An entry of the config takes the place of a built-in agent of the same name. */
  constructor(config: AgentsConfig) {
    const own = Object.entries(config).map(([name, entry]) => configured(name, entry, BUILT_IN));
    this.#byName = new Map([...BUILT_IN, ...own].map((adapter) => [adapter.name, adapter]));
  }

  of(name: string): Adapter | undefined {
    return this.#byName.get(name);
  }

  get names(): string[] {
    return [...this.#byName.keys()];
  }
}
