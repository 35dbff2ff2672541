import { findPaths } from "../../../../base/config/paths.ts";
import { withProvider, writeConfig } from "../../../../base/config/provider-entry.ts";
import type { Secret, SecretKind } from "../../../../base/schema/secret.ts";
import { AGENT, loginPlace, PROVIDER_OPTION, type LoginPlace } from "../../agent-login.ts";
import { command } from "../../command.ts";
import { confirm } from "../../confirm.ts";
import { hiddenInput } from "../../hidden-input.ts";
import type { Screen } from "../../screen.ts";
import { askProjects, givenProjects, PROJECT_OPTIONS, shownProjects } from "../../secret-projects.ts";
import { clean } from "../../text.ts";
import { usageError } from "../../values.ts";

/** How `claude setup-token` begins its tokens. */
const SUBSCRIPTION_TOKEN = /^sk-ant-oat/;

export default command({
  name: "agents login",
  summary: "Keep an agent's API key or subscription token outside of sandboxes",
  details:
    "viv asks for it, or reads it from a pipe; it is never an argument. It is kept as a secret of the model gateway, bound to the provider's host, and is used from the next request on. If the user's config does not name the provider in `models` yet, viv shows the change and writes it. Claude takes the token of a subscription, too: `claude setup-token` makes one. Without a terminal, --project or --all-projects is needed for a login that is new.",
  examples: [
    ["viv agents login claude", "asks for the key or token"],
    ["viv agents login codex --all-projects < key.txt", "the key from a file"],
    ["viv agents login opencode --provider openai", "one of several model APIs"],
  ],
  options: {
    ...PROVIDER_OPTION,
    subscription: { type: "flag", summary: "It is a subscription's token; known by itself from one of `claude setup-token`" },
    yes: { type: "flag", short: "y", summary: "Do not ask before the config is written" },
    ...PROJECT_OPTIONS,
  },
  positionals: [AGENT],
  async run({ options, positionals: [agent = ""], json, screen, env, cwd, client }) {
    const { config } = findPaths(env);
    const place = loginPlace(agent, options.provider, config);
    if (options.subscription) onlyClaude(agent);
    const given = givenProjects(options, cwd);
    const server = await client();
    const before = (await server.call("listSecrets", {})).secrets.find(({ name }) => name === place.secret);
    const change = place.isConfigured ? undefined : withProvider(config, place.provider, { secret: place.secret });
    if (change !== undefined && !(await agreed(change, screen, options.yes))) return 4;
    const projects = given === undefined && before === undefined ? await askProjects(`the login of ${agent}`, cwd) : given;
    const value = await hiddenInput(`${agent === "claude" ? "API key or subscription token" : "API key"} for ${place.provider}: `);
    const isToken = options.subscription || (place.provider === "anthropic" && SUBSCRIPTION_TOKEN.test(value));
    if (isToken) onlyClaude(agent);
    // The config comes first: the gateway counts what a secret of `models` costs, and no other part of the server sends it.
    if (change !== undefined) writeConfig(change);
    const kind = isToken ? "subscription" : "key";
    const kept = await server.call("setSecret", {
      secret: place.secret,
      value,
      kind,
      ...binding(place, kind, before),
      ...(projects === undefined ? {} : { projects }),
    });
    if (json) return screen.json({ agent, provider: place.provider, login: kept, config: { file: config, changed: change !== undefined } });
    screen.print(
      `The ${isToken ? "subscription token" : "API key"} of ${agent} is kept as the secret ${kept.name}, for ${kept.hosts.join(", ")} and projects: ${shownProjects(kept.projects)}.`,
    );
    if (change !== undefined) screen.print(`${clean(config)} names ${place.provider} now.`);
    screen.print(`Commands inside find it from now on, as ${kept.placeholder}; the value stays outside.`);
  },
});

function onlyClaude(agent: string): void {
  if (agent !== "claude")
    throw usageError(
      "Only Claude Code takes the token of a subscription.",
      `Give ${clean(agent)} an API key, or run \`viv agents login claude\`.`,
    );
}

/** Shows what is written. Without a terminal there is no person to ask, and the command itself is the yes. */
async function agreed({ file, shown }: { file: string; shown: readonly string[] }, screen: Screen, yes: boolean): Promise<boolean> {
  screen.say(`${clean(file)} gets:`);
  for (const line of shown) screen.say(`  ${clean(line)}`);
  if (yes || !process.stdin.isTTY || !process.stderr.isTTY) return true;
  if (await confirm("Write it?")) return true;
  screen.say("Nothing was changed.");
  return false;
}

/** A login of the same kind keeps how the user bound it, and may go to the provider's host in any case. */
function binding(
  { host }: LoginPlace,
  kind: SecretKind,
  before: Secret | undefined,
): Pick<Secret, "hosts" | "methods" | "path" | "header"> {
  if (before?.kind !== kind) return { hosts: [host], methods: [], path: null, header: null };
  const { hosts, methods, path, header } = before;
  return { hosts: [...new Set([...hosts, host])], methods, path, header };
}
