/** How pi is started, and the configuration it gets. */
import { readIntegration } from "../../../base/config/machine.ts";
import type { AgentStart, Launch } from "../adapter.ts";

/** pi's own names of providers, and what stands behind the gateway's address. */
const PROVIDERS: Readonly<Record<string, readonly [name: string, path: string]>> = {
  anthropic: ["anthropic", ""],
  openai: ["openai", ""],
  gemini: ["google", "/v1beta"],
};

export const PI_PROVIDERS: readonly string[] = Object.keys(PROVIDERS);

export function piLaunch({ program, folder, gateway: tools, model, models, policy, conversation }: AgentStart): Launch {
  const found = Object.entries(PROVIDERS).find(([name]) => models[name] !== undefined);
  const [name, [provider, path]] = found ?? ["", ["", ""]];
  const gateway = models[name];
  const providers = gateway === undefined ? {} : { [provider]: { baseUrl: `${gateway.url}${path}`, apiKey: gateway.key } };
  return {
    command: [
      program,
      "--mode",
      "rpc",
      "--session-dir",
      `${folder}/pi/sessions`,
      // Extensions of the project would run beside ours.
      "--no-extensions",
      "--extension",
      `${folder}/pi/vivarium.js`,
      "--append-system-prompt",
      policy.text,
      ...(gateway === undefined ? [] : ["--provider", provider]),
      ...(model === null ? [] : ["--model", model]),
      ...(conversation === null ? [] : ["--session", conversation]),
    ],
    env: { PI_CODING_AGENT_DIR: `${folder}/pi`, PI_OFFLINE: "1", PI_SKIP_VERSION_CHECK: "1", VIVARIUM_GATEWAY: tools },
    files: [
      { path: "pi/vivarium.js", content: readIntegration("pi/vivarium.js") },
      { path: "pi/models.json", content: `${JSON.stringify({ providers })}\n` },
      { path: "pi/settings.json", content: `${JSON.stringify({ defaultProjectTrust: "never" })}\n` },
    ],
    keeps: ["pi/sessions"],
    input: true,
  };
}
