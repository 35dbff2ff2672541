/** Each real agent works as an ordinary command inside a sandbox: it writes a file, runs a command and ends well, and never has the key. */
import { dirname } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { realAgent } from "../support/real-agents.ts";
import { ScriptedModel, type Step } from "../support/scripted-model.ts";
import { TestServer } from "../support/server.ts";
import { missing } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

const PATH = `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`;
const HOME = "/var/lib/agent";
const KEY = "the-real-key";

interface Case {
  readonly agent: string;
  readonly arguments: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** By their path inside. */
  readonly files: Readonly<Record<string, string>>;
  readonly write: (path: string) => { readonly name: string; readonly input: Readonly<Record<string, unknown>> };
  readonly run: (line: string) => { readonly name: string; readonly input: Readonly<Record<string, unknown>> };
}

const openaiProvider = { baseUrl: "http://127.0.0.1:4097/model/openai", api: "openai-completions", apiKey: "OPENAI_API_KEY" };
const CASES: readonly Case[] = [
  {
    agent: "claude",
    arguments: ["-p", "go", "--model", "demo", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"],
    env: { CLAUDE_CONFIG_DIR: HOME, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1", IS_SANDBOX: "1" },
    files: {},
    write: (path) => ({ name: "Write", input: { file_path: path, content: "made\n" } }),
    run: (command) => ({ name: "Bash", input: { command, description: "look" } }),
  },
  {
    agent: "codex",
    arguments: ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "go"],
    env: { CODEX_HOME: HOME },
    files: {
      [`${HOME}/config.toml`]: `model = "demo"
model_provider = "viv"
check_for_update_on_startup = false
[model_providers.viv]
name = "viv"
base_url = "http://127.0.0.1:4097/model/openai"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
[features]
apps = false
plugins = false
code_mode_host = false
`,
    },
    write: (path) => ({ name: "exec_command", input: { cmd: `echo made > ${path}` } }),
    run: (cmd) => ({ name: "exec_command", input: { cmd } }),
  },
  {
    agent: "opencode",
    arguments: ["run", "--format", "json", "--title", "t", "go"],
    env: {
      XDG_CONFIG_HOME: `${HOME}/config`,
      XDG_DATA_HOME: `${HOME}/data`,
      XDG_STATE_HOME: `${HOME}/state`,
      XDG_CACHE_HOME: `${HOME}/cache`,
      OPENCODE_CONFIG: `${HOME}/opencode.json`,
      OPENCODE_MODELS_PATH: `${HOME}/models.json`,
      OPENCODE_DISABLE_PROJECT_CONFIG: "1",
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
    },
    files: {
      [`${HOME}/models.json`]: "{}",
      [`${HOME}/opencode.json`]: JSON.stringify({
        model: "viv/demo",
        small_model: "viv/demo",
        enabled_providers: ["viv"],
        share: "disabled",
        snapshot: false,
        provider: {
          viv: {
            npm: "@ai-sdk/openai-compatible",
            options: { baseURL: "{env:OPENAI_BASE_URL}", apiKey: "{env:OPENAI_API_KEY}" },
            models: { demo: { name: "demo", tool_call: true, limit: { context: 200_000, output: 16_000 } } },
          },
        },
      }),
    },
    write: (path) => ({ name: "write", input: { filePath: path, content: "made\n" } }),
    run: (command) => ({ name: "bash", input: { command, description: "look" } }),
  },
  {
    agent: "gemini",
    arguments: ["-p", "go", "-m", "demo", "--yolo", "--skip-trust", "-o", "stream-json"],
    env: { GEMINI_CLI_HOME: HOME },
    files: {
      [`${HOME}/.gemini/settings.json`]: JSON.stringify({
        security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } },
        general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
        privacy: { usageStatisticsEnabled: false },
      }),
    },
    write: (path) => ({ name: "write_file", input: { file_path: path, content: "made\n" } }),
    run: (command) => ({ name: "run_shell_command", input: { command, description: "look" } }),
  },
  {
    agent: "pi",
    arguments: ["-p", "go", "--provider", "viv", "--model", "demo", "--mode", "json", "--no-session"],
    env: { PI_CODING_AGENT_DIR: HOME, PI_OFFLINE: "1" },
    files: {
      [`${HOME}/models.json`]: JSON.stringify({
        providers: {
          viv: { ...openaiProvider, models: [{ id: "demo", name: "demo", input: ["text"], contextWindow: 200_000, maxTokens: 16_000 }] },
        },
      }),
    },
    write: (path) => ({ name: "write", input: { path, content: "made\n" } }),
    run: (command) => ({ name: "bash", input: { command } }),
  },
];

const lacking = missing("root");
const agents = new Map(await Promise.all(CASES.map(async ({ agent }) => [agent, await realAgent(agent)] as const)));

describe("a real agent inside a sandbox", lacking === undefined ? {} : { skip: true, meta: { skipReason: lacking } }, () => {
  let model: ScriptedModel;
  let server: TestServer;

  beforeAll(async () => {
    model = await ScriptedModel.open();
    server = await TestServer.start({
      config: {
        models: {
          anthropic: { url: model.url, secret: "key" },
          openai: { url: `${model.url}/v1`, secret: "key" },
          gemini: { url: model.url, secret: "key" },
        },
        prices: { demo: { input: 1, output: 1 } },
      },
    });
    const kept = viv(server, ["secret", "set", "key", "--host", new URL(model.url).host, "--all-projects"], { input: KEY });
    expect(kept.code, kept.err).toBe(0);
  });
  afterAll(async () => {
    model?.close();
    await server?.remove();
  });

  for (const { agent, arguments: args, env, files, write, run } of CASES) {
    const { program, needed } = agents.get(agent) ?? { program: "", needed: { skip: true } };
    test(`${agent} writes a file, runs a command and ends well, without the key`, needed, async () => {
      const box = (await server.create()).id;
      for (const [path, content] of Object.entries(files))
        await server.sh(box, `mkdir -p "$(dirname ${path})" && printf %s "$CONTENT" > ${path}`, { env: { CONTENT: content, PATH } });
      const made = `${server.project}/made-by-${agent}.txt`;
      const script: readonly Step[] = [
        { text: "I write.", calls: [write(made)] },
        { calls: [run(`cat ${made}; id -u`)] },
        { text: "Done." },
      ];
      model.script("demo", script);
      const heard = model.received.length;
      await server.sh(box, `mkdir -p ${HOME}`, { env: { PATH } });
      const ended = await server.client.call("runCommand", { sandbox: box, command: [program, ...args], env: { ...env, PATH } });
      expect(ended.end, ended.stderr).toMatchObject({ exitCode: 0 });
      expect(ended.stdout).toContain("Done.");
      expect((await server.sh(box, `cat ${made}`)).stdout).toBe("made\n");
      const requests = model.received.slice(heard).filter(({ tools }) => tools.length > 0);
      expect(requests.map(({ turn }) => turn)).toEqual([0, 1, 2]);
      // What the command said reached the model, and the key only the model.
      expect(JSON.stringify(requests.at(-1)?.body)).toMatch(/made\\+n0/);
      for (const { headers } of requests) expect(JSON.stringify(headers)).toContain(KEY);
      expect((await server.sh(box, `env; grep -rlF ${KEY} ${HOME} || true`, { env: { PATH } })).stdout).not.toContain(KEY);
    });
  }
});
