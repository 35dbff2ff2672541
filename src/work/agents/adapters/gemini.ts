/** Gemini CLI, which speaks the Agent Client Protocol. */
import type { Adapter, AgentStart, Launch } from "../adapter.ts";
import { ACP_ABILITIES, acpSession, type AcpAgent } from "./acp.ts";

const AGENT: AcpAgent = { name: "gemini", title: "Gemini CLI", afterHistory: "available_commands_update", asks: true };

/** Names that it resolves itself. */
const ALIAS = /^(?:auto(?:-.*)?|pro|flash|flash-lite)$/;

export const gemini: Adapter = {
  name: AGENT.name,
  title: AGENT.title,
  program: "gemini",
  // A conversation that is loaded within the minute in which it began is spoilt, so a new one gets the condensed one.
  abilities: { ...ACP_ABILITIES, resume: false },
  providers: ["gemini"],
  projectSettings: [".gemini"],
  namedModel: (model) => (ALIAS.test(model) ? "own" : { provider: "gemini", model }),
  launch,
  session: (start, state) => acpSession(AGENT, start, state),
};

const SETTINGS = {
  security: { auth: { selectedType: "gemini-api-key" }, disableYoloMode: true },
  general: { enableAutoUpdate: false, enableAutoUpdateNotification: false, defaultApprovalMode: "default" },
  privacy: { usageStatisticsEnabled: false },
  telemetry: { enabled: false },
  advanced: { ignoreLocalEnv: true },
};

/** Rules of the highest rank: it asks before every call but those that touch only what it has in mind, and commands it knows as harmless. */
const RULES = `[[rule]]
toolName = "*"
decision = "ask_user"
priority = 900

[[rule]]
toolName = ["update_topic", "complete_task", "write_todos", "get_internal_docs", "cli_help"]
decision = "allow"
priority = 950
`;

/**
 * In a folder that it trusts it reads the project's settings: hooks, servers, tools that are allowed, commands that find tools. In one
 * that it does not trust it reads none, and does not connect to the gateway's tools either. So it trusts a project without settings.
 */
function launch({ program, folder, model, models, policy, hasProjectSettings = true }: AgentStart): Launch {
  const gateway = models["gemini"];
  const address = gateway === undefined ? {} : { GEMINI_API_KEY: gateway.key, GOOGLE_GEMINI_BASE_URL: gateway.url };
  return {
    command: [
      program,
      "--acp",
      ...(hasProjectSettings ? [] : ["--skip-trust"]),
      `--admin-policy=${folder}/gemini/rules.toml`,
      "--allowed-mcp-server-names=vivarium",
      "--extensions=none",
      ...(model === null ? [] : ["--model", model]),
    ],
    env: {
      GEMINI_CLI_HOME: `${folder}/gemini`,
      ...(hasProjectSettings ? { GEMINI_CLI_TRUST_WORKSPACE: "false" } : {}),
      ...address,
      NO_BROWSER: "1",
      // Otherwise it starts itself a second time, to have more memory.
      GEMINI_CLI_NO_RELAUNCH: "true",
    },
    files: [
      { path: "gemini/.gemini/settings.json", content: `${JSON.stringify(SETTINGS)}\n` },
      { path: "gemini/rules.toml", content: RULES },
      { path: "gemini/.gemini/GEMINI.md", content: `${policy.text}\n` },
    ],
    keeps: [],
    machineSettings: ["/etc/gemini-cli"],
    input: true,
  };
}
