/** The real agents that tests of runs drive: what the scripted model has to say so that each acts, and what each can't do. */
import type { AgentAbilities } from "../../../src/work/agents/adapter.ts";
import { ACP_ABILITIES } from "../../../src/work/agents/adapters/acp.ts";
import { claude } from "../../../src/work/agents/adapters/claude.ts";
import { codex } from "../../../src/work/agents/adapters/codex.ts";
import { gemini } from "../../../src/work/agents/adapters/gemini.ts";
import { opencode } from "../../../src/work/agents/adapters/opencode.ts";
import { pi } from "../../../src/work/agents/adapters/pi.ts";
import type { ToolCall } from "../models/shape.ts";

export interface RealAgentCase {
  /** As `viv task --agent` names it. */
  readonly agent: string;
  /** Of one that is no built-in agent: what is installed, and its entry in the config. */
  readonly configured?: { readonly installed: string; readonly entry: (program: string) => object };
  readonly abilities: AgentAbilities;
  readonly write: (path: string) => ToolCall;
  readonly run: (line: string) => ToolCall;
  /** How its model calls a tool of Vivarium's, where the table tries one. */
  readonly tool?: (name: string) => Pick<ToolCall, "name" | "namespace">;
  /** Of one whose turn ends with a call that is denied: whether it then tells that it has finished. */
  readonly endsWhenDenied?: "finished" | "silent";
  /** Only these rows, for an agent that is in the table in another way, too. */
  readonly only?: RegExp;
}

const patch = (path: string): string => `apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: ${path}\n+made\n*** End Patch\nEOF\n`;

/** As docs/AGENTS.md shows it. */
const OPENCODE_CONFIG = {
  permission: { "*": "ask", read: "allow", glob: "allow", grep: "allow", list: "allow" },
  provider: {
    gateway: {
      npm: "@ai-sdk/openai-compatible",
      options: { baseURL: "{env:OPENAI_BASE_URL}", apiKey: "{env:OPENAI_API_KEY}" },
      models: { demo: { name: "demo", tool_call: true } },
    },
  },
  enabled_providers: ["gateway"],
  model: "gateway/demo",
  small_model: "gateway/demo",
  share: "disabled",
  snapshot: false,
};

/** As docs/AGENTS.md shows it. */
const CODEX_CONFIG = {
  model: "demo",
  model_provider: "gateway",
  model_providers: {
    gateway: { name: "gateway", base_url: "http://127.0.0.1:4097/model/openai", env_key: "OPENAI_API_KEY", wire_api: "responses" },
  },
  web_search: "disabled",
  features: { apps: false, plugins: false, multi_agent: false },
};
/** It asks about what its model wants to do outside of its own sandbox, which can only be read. */
const ESCALATED = { sandbox_permissions: "require_escalated", justification: "d" };

export const REAL_AGENTS: readonly RealAgentCase[] = [
  {
    agent: "claude",
    abilities: claude.abilities,
    tool: (name) => ({ name: `mcp__vivarium__${name}` }),
    write: (path) => ({ name: "Write", input: { file_path: path, content: "made\n" } }),
    run: (command) => ({ name: "Bash", input: { command, description: "d" } }),
  },
  {
    agent: "codex",
    abilities: codex.abilities,
    tool: (name) => ({ namespace: "mcp__vivarium", name }),
    write: (path) => ({ name: "exec_command", input: { cmd: patch(path) } }),
    run: (cmd) => ({ name: "exec_command", input: { cmd, yield_time_ms: 20_000 } }),
  },
  {
    agent: "opencode",
    abilities: opencode.abilities,
    tool: (name) => ({ name }),
    write: (path) => ({ name: "write", input: { filePath: path, content: "made\n" } }),
    run: (command) => ({ name: "bash", input: { command, description: "d" } }),
  },
  {
    agent: "pi",
    abilities: pi.abilities,
    tool: (name) => ({ name: `vivarium_${name}` }),
    write: (path) => ({ name: "write", input: { path, content: "made\n" } }),
    run: (command) => ({ name: "bash", input: { command } }),
  },
  {
    agent: "gemini",
    abilities: gemini.abilities,
    tool: (name) => ({ name: `mcp_vivarium_${name}` }),
    write: (path) => ({ name: "write_file", input: { file_path: path, content: "made\n" } }),
    run: (command) => ({ name: "run_shell_command", input: { command } }),
  },
  {
    agent: "claude-acp",
    configured: {
      installed: "claude-acp",
      entry: (program) => ({
        protocol: "acp",
        command: [program],
        providers: ["anthropic"],
        env: {
          ANTHROPIC_MODEL: "{model}",
          CLAUDE_CONFIG_DIR: "{folder}/claude",
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
          DISABLE_AUTOUPDATER: "1",
          IS_SANDBOX: "1",
        },
      }),
    },
    abilities: ACP_ABILITIES,
    only: /^(?:AGT-1|AGT-4|POL-1|POL-10|AGT-3|SNAP-5)/,
    write: (path) => ({ name: "Write", input: { file_path: path, content: "made\n" } }),
    run: (command) => ({ name: "Bash", input: { command, description: "d" } }),
  },
  {
    agent: "codex-acp",
    configured: {
      installed: "codex-acp",
      entry: (program) => ({
        protocol: "acp",
        command: [program],
        providers: ["openai"],
        env: {
          CODEX_HOME: "{folder}",
          CODEX_CONFIG: JSON.stringify(CODEX_CONFIG),
          MODEL_PROVIDER: "gateway",
          INITIAL_AGENT_MODE: "read-only",
          NO_BROWSER: "1",
        },
      }),
    },
    abilities: ACP_ABILITIES,
    endsWhenDenied: "silent",
    only: /^(?:AGT-1|POL-1:|AGT-2|AGT-3|SNAP-5)/,
    write: (path) => ({ name: "exec_command", input: { cmd: `echo made > ${path}`, ...ESCALATED } }),
    run: (cmd) => ({ name: "exec_command", input: { cmd, yield_time_ms: 20_000, ...ESCALATED } }),
  },
  {
    agent: "opencode-acp",
    configured: {
      installed: "opencode",
      entry: (program) => ({
        protocol: "acp",
        command: [program, "acp"],
        providers: ["openai"],
        env: {
          OPENCODE_CONFIG_CONTENT: JSON.stringify(OPENCODE_CONFIG),
          OPENCODE_DISABLE_PROJECT_CONFIG: "1",
          OPENCODE_DISABLE_AUTOUPDATE: "1",
          OPENCODE_DISABLE_MODELS_FETCH: "1",
          OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
          OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
          OPENCODE_DB: "{folder}/opencode.db",
          XDG_CONFIG_HOME: "{folder}/config",
        },
      }),
    },
    abilities: ACP_ABILITIES,
    endsWhenDenied: "finished",
    only: /^(?:AGT-1|POL-1|SNAP-5)/,
    write: (path) => ({ name: "write", input: { filePath: path, content: "made\n" } }),
    run: (command) => ({ name: "bash", input: { command, description: "d" } }),
  },
];
