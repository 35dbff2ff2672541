/** The model APIs of the user's config, and how programs inside find them. */
import { VivError } from "../../base/schema/errors.ts";
import { GATEWAY_PORT } from "../../base/schema/gateway.ts";
import { MODEL_PATH, type ModelsConfig, type ModelShape } from "../../base/schema/model.ts";
import type { Secrets } from "../secrets/secrets.ts";

export interface KnownProvider {
  readonly name: string;
  readonly shape: ModelShape;
  readonly url: URL;
  /** Name of the secret. */
  readonly secret: string;
}

/** What a program puts before the paths of the API: OpenAI's has the version in it, Anthropic's has not. */
const ADDRESSES: Readonly<Record<string, string>> = {
  anthropic: "https://api.anthropic.com",
  openai: "https://api.openai.com/v1",
};
const LOOPBACK = ["127.0.0.1", "localhost", "[::1]"];

export function providersOf(config: ModelsConfig): Map<string, KnownProvider> {
  return new Map(
    Object.entries(config).map(([name, { url, secret, shape }]) => {
      const address = URL.parse(url ?? ADDRESSES[name] ?? "");
      if (address === null)
        throw new VivError("config_invalid", `models.${name} has no url.`, { remedy: `Add models.${name}.url to the user config.` });
      // Plain HTTP would show the key to every machine on the way.
      const safe = address.protocol === "https:" || LOOPBACK.includes(address.hostname);
      if (!safe || address.username !== "" || address.password !== "" || address.search !== "" || address.hash !== "")
        throw new VivError("config_invalid", `The address of models.${name} must begin with https:// and hold no login.`);
      return [name, { name, secret, url: address, shape: shape ?? (name === "anthropic" ? "anthropic" : "openai") }];
    }),
  );
}

/** Variables by which programs inside find the APIs that have a key; what stands for the key is worthless elsewhere. */
export function modelEnvironment(providers: Iterable<KnownProvider>, secrets: Secrets): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const { name, secret } of providers) {
    const kept = secrets.find(secret);
    if (kept === undefined) continue;
    const prefix = name.toUpperCase().replaceAll("-", "_");
    variables[`${prefix}_BASE_URL`] = `http://127.0.0.1:${GATEWAY_PORT}/${MODEL_PATH}/${name}`;
    variables[`${prefix}_API_KEY`] = kept.placeholder;
  }
  return variables;
}
