/** How Codex is started, and the configuration it gets. */
import { GATEWAY_TOOLS_PATH } from "../../../base/schema/gateway.ts";
import type { AgentStart, Launch } from "../adapter.ts";

/** Longer than any of our tools waits; of itself it gives up after a minute. */
const TOOL_SECONDS = 660;
const KEY_VARIABLE = "VIV_CODEX_KEY";

/** Programs that Codex takes for harmless, and does not ask about of itself: the policy may forbid what they read. */
const ASKED = `base64 cat cd cut echo expr false find git grep head id ls nl numfmt paste pwd
  rev rg sed seq stat tac tail tr true uname uniq wc which whoami`.split(/\s+/);
const RULES = `prefix_rule(pattern = [${JSON.stringify(ASKED)}], decision = "prompt")\n`;

export function codexLaunch(start: AgentStart): Launch {
  const { program, folder, policy, models } = start;
  const home = `${folder}/codex`;
  return {
    command: [program, "app-server"],
    env: { CODEX_HOME: home, ...(models["openai"] === undefined ? {} : { [KEY_VARIABLE]: models["openai"].key }) },
    files: [
      { path: "codex/config.toml", content: configuration(start) },
      { path: "codex/AGENTS.md", content: `${policy.text}\n` },
      { path: "codex/rules/vivarium.rules", content: RULES },
    ],
    keeps: ["codex/sessions"],
    machineSettings: ["/etc/codex"],
    input: true,
  };
}

/** Of TOML's strings those in quotes are JSON's, but for a character that neither needs. */
const toml = (value: string): string => JSON.stringify(value).replaceAll("\u007f", "\\u007f");

/**
 * Codex trusts a folder that it works in with full access, and then reads the project's own configuration: rules that allow commands,
 * hooks, MCP servers. That the folder is not trusted has to be said beforehand. Tools that the provider runs can't be asked about.
 */
function configuration({ project, gateway, model, models }: AgentStart): string {
  const openai = models["openai"];
  const lines = [
    ...(model === null ? [] : [`model = ${toml(model)}`]),
    ...(openai === undefined ? [] : [`model_provider = "vivarium"`]),
    `sandbox_mode = "danger-full-access"`,
    `web_search = "disabled"`,
    `check_for_update_on_startup = false`,
    `[analytics]\nenabled = false`,
    `[features]\napps = false\nplugins = false\nmulti_agent = false`,
    `[projects.${toml(project)}]\ntrust_level = "untrusted"`,
    `[mcp_servers.vivarium]\nurl = ${toml(`${gateway}${GATEWAY_TOOLS_PATH}`)}\ndefault_tools_approval_mode = "approve"\ntool_timeout_sec = ${TOOL_SECONDS}`,
    ...(openai === undefined
      ? []
      : [
          `[model_providers.vivarium]\nname = "Vivarium"\nbase_url = ${toml(openai.url)}`,
          `wire_api = "responses"\nenv_key = "${KEY_VARIABLE}"`,
        ]),
  ];
  return `${lines.join("\n")}\n`;
}
