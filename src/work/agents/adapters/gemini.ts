/** Gemini CLI, which speaks the Agent Client Protocol. */
import type { Adapter, AgentStart, Launch } from "../adapter.ts";
import { ACP_ABILITIES, acpSession, type AcpAgent } from "./acp.ts";

const AGENT: AcpAgent = { name: "gemini", title: "Gemini CLI", afterHistory: "available_commands_update" };

export const gemini: Adapter = {
  name: AGENT.name,
  title: AGENT.title,
  program: "gemini",
  // A conversation that is loaded within the minute in which it began is spoilt, so a new one gets the condensed one.
  abilities: { ...ACP_ABILITIES, resume: false },
  providers: ["gemini"],
  launch,
  session: (start, state) => acpSession(AGENT, start, state),
};

/** In a folder that it does not trust it would not connect to the gateway's tools. It asks before it acts all the same. */
const SETTINGS = {
  security: { auth: { selectedType: "gemini-api-key" }, disableYoloMode: true },
  general: { enableAutoUpdate: false, enableAutoUpdateNotification: false, defaultApprovalMode: "default" },
  privacy: { usageStatisticsEnabled: false },
  telemetry: { enabled: false },
};

function launch({ program, folder, model, models, policy }: AgentStart): Launch {
  const gateway = models["gemini"];
  const address = gateway === undefined ? {} : { GEMINI_API_KEY: gateway.key, GOOGLE_GEMINI_BASE_URL: gateway.url };
  return {
    command: [program, "--acp", "--skip-trust", ...(model === null ? [] : ["--model", model])],
    // Without the last one it starts itself a second time, to have more memory.
    env: { GEMINI_CLI_HOME: `${folder}/gemini`, ...address, NO_BROWSER: "1", GEMINI_CLI_NO_RELAUNCH: "true" },
    files: [
      { path: "gemini/.gemini/settings.json", content: `${JSON.stringify(SETTINGS)}\n` },
      { path: "gemini/.gemini/GEMINI.md", content: `${policy.text}\n` },
    ],
    keeps: [],
    input: true,
  };
}
