/** Chat clients that `viv mcp install` sets up: where each keeps its settings, and how it writes an MCP server there. */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { SettingsFormat } from "../../base/config/settings-edit.ts";
import type { Environment } from "../../base/config/paths.ts";

export interface Started {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface ChatClient {
  readonly title: string;
  readonly format: SettingsFormat;
  /** Its settings of this user. */
  readonly file: (env: Environment) => string;
  /** Where servers stand in it. */
  readonly place: readonly string[];
  readonly entry: (started: Started) => Record<string, unknown>;
  /** Whether it is started in the project that it works on. */
  readonly isHere: boolean;
  /** What the person does now. */
  readonly after: string;
}

/** As the entry is called in every client. */
export const SERVER_NAME = "vivarium";

const home = (env: Environment): string => env["HOME"] || homedir();
const configFolder = (env: Environment): string => env["XDG_CONFIG_HOME"] || join(home(env), ".config");
const usual = ({ command, args, env }: Started): Record<string, unknown> => ({
  command,
  args: [...args],
  ...(Object.keys(env).length === 0 ? {} : { env: { ...env } }),
});
const typed = (started: Started): Record<string, unknown> => ({ type: "stdio", ...usual(started) });

function openCodeFile(env: Environment): string {
  const folder = join(configFolder(env), "opencode");
  const commented = join(folder, "opencode.jsonc");
  return existsSync(commented) ? commented : join(folder, "opencode.json");
}

export const CHAT_CLIENTS: Readonly<Record<string, ChatClient>> = {
  claude: {
    title: "Claude Code",
    format: "json",
    file: (env) => join(env["CLAUDE_CONFIG_DIR"] || home(env), ".claude.json"),
    place: ["mcpServers"],
    entry: typed,
    isHere: true,
    after: "Start `claude` anew.",
  },
  "claude-desktop": {
    title: "Claude Desktop",
    format: "json",
    file: (env) => join(configFolder(env), "Claude", "claude_desktop_config.json"),
    place: ["mcpServers"],
    entry: usual,
    isHere: false,
    after: "Quit Claude Desktop and open it again.",
  },
  cursor: {
    title: "Cursor",
    format: "json",
    file: (env) => join(home(env), ".cursor", "mcp.json"),
    place: ["mcpServers"],
    entry: usual,
    isHere: false,
    after: "Open Cursor again, and switch it on under Settings, MCP, if it is off.",
  },
  vscode: {
    title: "Visual Studio Code",
    format: "json",
    file: (env) => join(configFolder(env), "Code", "User", "mcp.json"),
    place: ["servers"],
    entry: typed,
    isHere: false,
    after: "Open the chat in agent mode; VS Code asks once whether it may start it.",
  },
  opencode: {
    title: "OpenCode",
    format: "json",
    file: openCodeFile,
    place: ["mcp"],
    entry: ({ command, args, env }) => ({
      type: "local",
      command: [command, ...args],
      enabled: true,
      ...(Object.keys(env).length === 0 ? {} : { environment: { ...env } }),
    }),
    isHere: true,
    after: "Start `opencode` anew.",
  },
  codex: {
    title: "Codex",
    format: "toml",
    file: (env) => join(env["CODEX_HOME"] || join(home(env), ".codex"), "config.toml"),
    place: ["mcp_servers"],
    entry: usual,
    isHere: true,
    after: "Start `codex` anew.",
  },
  gemini: {
    title: "Gemini CLI",
    format: "json",
    file: (env) => join(home(env), ".gemini", "settings.json"),
    place: ["mcpServers"],
    entry: usual,
    isHere: true,
    after: "Start `gemini` anew.",
  },
};
