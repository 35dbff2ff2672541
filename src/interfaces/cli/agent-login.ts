/** Where the login of an agent belongs: which model API, which secret and which host. */
import { loadUserConfig } from "../../base/config/project-config.ts";
import { KNOWN_AGENTS } from "../../base/schema/known-agents.ts";
import { KNOWN_PROVIDERS } from "../../base/schema/model.ts";
import type { OptionDeclarations, PositionalDeclaration } from "./command.ts";
import { clean } from "./text.ts";
import { usageError } from "./values.ts";

export const AGENT: PositionalDeclaration = {
  name: "AGENT",
  summary: `The agent: ${Object.keys(KNOWN_AGENTS).join(", ")}`,
  completes: Object.keys(KNOWN_AGENTS),
};

export const PROVIDER_OPTION = {
  provider: {
    type: "text",
    value: "NAME",
    completes: Object.keys(KNOWN_PROVIDERS),
    summary: "Model API, for agents that can use several; anthropic if left out",
  },
} as const satisfies OptionDeclarations;

export interface LoginPlace {
  /** Name of the model API in `models` of the user's config. */
  readonly provider: string;
  /** Whether the config names it already. */
  readonly isConfigured: boolean;
  readonly secret: string;
  /** With its port, if that is not the usual one. */
  readonly host: string;
}

export function loginPlace(agent: string, wanted: string | undefined, config: string): LoginPlace {
  const known = Object.hasOwn(KNOWN_AGENTS, agent) ? KNOWN_AGENTS[agent]?.providers : undefined;
  if (known === undefined)
    throw usageError(`There is no agent ${clean(agent)}.`, `The agents are ${Object.keys(KNOWN_AGENTS).join(", ")}.`);
  const provider = wanted ?? known[0];
  if (!known.includes(provider)) throw usageError(`${agent} can't use ${clean(provider)}.`, `It can use ${known.join(", ")}.`);
  const entry = loadUserConfig(config).models[provider];
  const url = entry?.url ?? KNOWN_PROVIDERS[provider]?.url ?? "";
  return { provider, isConfigured: entry !== undefined, secret: entry?.secret ?? provider, host: new URL(url).host };
}

/** Agents that use the same login. */
export function sharing(provider: string): string[] {
  return Object.entries(KNOWN_AGENTS)
    .filter(([, { providers }]) => providers.includes(provider))
    .map(([agent]) => agent);
}
