/** The model APIs of the user's config, and how programs inside find them. */
import { VivError } from "../../base/schema/errors.ts";
import { GATEWAY_PORT } from "../../base/schema/gateway.ts";
import { KNOWN_PROVIDERS, MODEL_PATH, type ModelsConfig, type ModelShape } from "../../base/schema/model.ts";
import type { Secrets } from "../secrets/secrets.ts";

export interface KnownProvider {
  readonly name: string;
  readonly shape: ModelShape;
  readonly url: URL;
  /** Name of the secret. */
  readonly secret: string;
  /** Requests cost no dollars: a subscription is paid anyhow. */
  readonly isFree: boolean;
}

const LOOPBACK = ["127.0.0.1", "localhost", "[::1]"];

export function providersOf(config: ModelsConfig): Map<string, KnownProvider> {
  return new Map(
    Object.entries(config).map(([name, { url, secret, shape, cost }]) => {
      const address = URL.parse(url ?? KNOWN_PROVIDERS[name]?.url ?? "");
      if (address === null)
        throw new VivError("config_invalid", `models.${name} has no url.`, { remedy: `Add models.${name}.url to the user config.` });
      // Plain HTTP would show the key to every machine on the way.
      const safe = address.protocol === "https:" || LOOPBACK.includes(address.hostname);
      if (!safe || address.username !== "" || address.password !== "" || address.search !== "" || address.hash !== "")
        throw new VivError("config_invalid", `The address of models.${name} must begin with https:// and hold no login.`);
      return [name, { name, secret, url: address, shape: shape ?? usualShape(name), isFree: cost === "none" }];
    }),
  );
}

/** Of a provider that names none. */
export function usualShape(name: string): ModelShape {
  return name === "anthropic" || name === "gemini" ? name : "openai";
}

/** The command by which the user gives another login. */
export function renewalOf({ name, secret }: KnownProvider): string {
  const agent = KNOWN_PROVIDERS[name]?.agent;
  return agent === undefined ? `viv secret set ${secret}` : `viv agents login ${agent}`;
}

/** Where programs inside find an API. */
function addressInside(name: string): string {
  return `http://127.0.0.1:${GATEWAY_PORT}/${MODEL_PATH}/${name}`;
}

/** The APIs that have a key, by name, with their addresses inside and what stands for the key there. */
export function modelsInside(providers: Iterable<KnownProvider>, secrets: Secrets): Record<string, { url: string; key: string }> {
  const known: Record<string, { url: string; key: string }> = {};
  for (const { name, secret } of providers) {
    const kept = secrets.find(secret);
    if (kept !== undefined) known[name] = { url: addressInside(name), key: kept.placeholder };
  }
  return known;
}

/** Variables by which programs inside find the APIs that have a key; what stands for the key is worthless elsewhere. */
export function modelEnvironment(providers: Iterable<KnownProvider>, secrets: Secrets): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const { name, secret } of providers) {
    const kept = secrets.find(secret);
    if (kept === undefined) continue;
    const prefix = name.toUpperCase().replaceAll("-", "_");
    const address = addressInside(name);
    variables[`${prefix}_BASE_URL`] = address;
    // Google's own programs look at this one.
    if (name === "gemini") variables["GOOGLE_GEMINI_BASE_URL"] = address;
    // Claude Code prefers a key to the token of a subscription.
    const isToken = name === "anthropic" && kept.kind === "subscription";
    variables[isToken ? "CLAUDE_CODE_OAUTH_TOKEN" : `${prefix}_API_KEY`] = kept.placeholder;
  }
  return variables;
}
