/**
 * MCP-2: S3's three examples from a real chat client to the finished files. Real Claude Code and OpenCode are the chat clients outside,
 * set up by `viv mcp install`, with a scripted model as the chat's model; a real agent works inside, with real programs.
 */
import { spawn } from "node:child_process";
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PACKAGE_HOSTS } from "../../src/base/policy/lists.ts";
import { use } from "../support/agents/chat-lab.ts";
import { chat } from "../support/mcp-client.ts";
import {
  AGENT_EXAMPLES,
  examplesOf,
  png,
  SALES,
  WEB_ROWS,
  type AgentExample,
  type Call,
  type PackageIndex,
} from "../support/mcp-examples.ts";
import { TestResolver } from "../support/origins.ts";
import { realAgent } from "../support/real-agents.ts";
import { ScriptedModel, type ModelRequest, type Step } from "../support/scripted-model.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv, vivEnvironment } from "../support/viv.ts";

const LONG_MS = 300_000;
const CHAT = "chat";
/** Where pip and npm look, first their index. */
const INDEX_HOSTS: Readonly<Record<PackageIndex, readonly string[]>> = {
  pypi: PACKAGE_HOSTS.filter((host) => /^py|python/.test(host)),
  npm: PACKAGE_HOSTS.filter((host) => host.endsWith("npmjs.org")),
};
const INDEX_PAGES: Readonly<Record<PackageIndex, string>> = { pypi: "simple/pillow/", npm: "sharp" };
const INDEXES = Object.keys(INDEX_HOSTS) as readonly PackageIndex[];
const NAMES = ["claude", "opencode", "codex", "gemini"] as const;
/** Clients whose list tells whether a server answers. */
const CONNECTS: ReadonlySet<string> = new Set(["claude", "opencode"]);
type Name = (typeof NAMES)[number];
const agents = Object.fromEntries(await Promise.all(NAMES.map(async (name) => [name, await realAgent(name)] as const))) as Record<
  Name,
  Awaited<ReturnType<typeof realAgent>>
>;
const page = examplesOf("MCP.md");

/** The addresses of a package index that answers; where it does not, what needs it is skipped. */
async function indexAddresses(index: PackageIndex): Promise<ReadonlyMap<string, string>> {
  const hosts = INDEX_HOSTS[index];
  try {
    const found = await Promise.all(hosts.map(async (host) => [host, (await lookup(host, { family: 4 })).address] as const));
    const answer = await fetch(`https://${hosts[0]}/${INDEX_PAGES[index]}`, { method: "HEAD", signal: AbortSignal.timeout(10_000) });
    return answer.ok ? new Map(found) : new Map();
  } catch {
    return new Map();
  }
}

/** With nothing to read: clients in a script wait for an open standard input. */
async function run(program: string, words: readonly string[], options: { cwd: string; env: NodeJS.ProcessEnv }): Promise<string> {
  const child = spawn(program, words, { ...options, stdio: ["ignore", "pipe", "pipe"], timeout: LONG_MS });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data: Buffer) => (said += data.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${said}`);
  return said;
}

describe("a person with a chat client", needs("root", "python3"), () => {
  let resolver: TestResolver;
  let web: Server;
  let model: ScriptedModel;
  let server: TestServer;
  let address: string;
  const reached = new Set<PackageIndex | undefined>();
  /** What the agent inside runs, and what the chat's model calls. */
  let example: AgentExample | undefined;
  let calls: readonly Call[] = [];

  beforeAll(async () => {
    resolver = await TestResolver.open();
    resolver.names.set("data.test", ["127.0.0.2"]);
    for (const index of INDEXES) {
      const addresses = await indexAddresses(index);
      if (addresses.size > 0) reached.add(index);
      for (const [host, ip] of addresses) resolver.names.set(host, [ip]);
    }
    web = createServer((_, response) =>
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(WEB_ROWS)),
    ).listen(0, "127.0.0.2");
    await once(web, "listening");
    const { port } = web.address() as AddressInfo;
    address = `http://data.test:${port}/cases.json`;
    model = await ScriptedModel.open({ "*": inside, [CHAT]: outside });
    server = await TestServer.start({
      config: {
        models: { anthropic: { url: model.url, secret: "key" }, openai: { url: `${model.url}/v1`, secret: "key" } },
        network: {
          private: [
            { host: "data.test", ports: [port] },
            ...INDEXES.flatMap((index) => INDEX_HOSTS[index]).map((host) => ({ host, ports: [443] })),
          ],
          resolvers: [resolver.address],
        },
      },
    });
    const kept = viv(server, ["secret", "set", "key", "--host", new URL(model.url).host, "--all-projects"], { input: "not-used" });
    expect(kept.code).toBe(0);
  }, LONG_MS);
  afterAll(async () => {
    web?.close();
    resolver?.close();
    model?.close();
    await server?.remove();
  });

  /** The agent inside runs its lines, one a turn. */
  function inside({ tools, turn }: ModelRequest): Step {
    if (tools.length === 0 || example === undefined) return { text: "hello" };
    const lines = [`printf %s '${address}' > .address`, ...example.lines];
    const command = lines[turn];
    const tool = tools.includes("Bash") ? "Bash" : "bash";
    return command === undefined
      ? { text: "It is done." }
      : { calls: [{ name: tool, input: { command, description: "Does it", timeout: 200_000 } }] };
  }

  /** The chat's model makes the calls of the page, has the files saved, and tells where they are. */
  function outside({ tools, turn, body }: ModelRequest): Step {
    if (tools.length === 0) return { text: "hello" };
    const named = (tool: string): string => tools.find((name) => name.endsWith(`_${tool}`)) ?? `mcp__vivarium__${tool}`;
    const said = JSON.stringify(body);
    const session = /run[0-9a-z]{26}/.exec(said)?.[0];
    const isRunning = said.lastIndexOf('\\"running\\"') > said.lastIndexOf('\\"completed\\"');
    const next = calls[turn];
    if (next !== undefined) return { calls: [{ name: named(next.tool), input: withFiles(next) }] };
    if (isRunning) return { calls: [{ name: named("wait"), input: { session_id: session } }] };
    const folder = /[^"\\ ]*Downloads\/vivarium-run[^"\\ /]*/.exec(said)?.[0];
    if (folder !== undefined) return { text: `Your files are in ${folder}` };
    return { calls: [{ name: named("download_files"), input: { session_id: session, save: true } }] };
  }

  /** The page shows files shortened. */
  function withFiles({ arguments: given }: Call): Record<string, unknown> {
    const contents: Record<string, Buffer> = {
      "sales_data.csv": Buffer.from(SALES),
      "img1.png": png(1600, 1200),
      "img2.png": png(900, 700),
    };
    const files = (given["files"] as readonly { path: string }[] | undefined)?.map(({ path }) => ({
      path,
      content: (contents[path] ?? Buffer.alloc(0)).toString("base64"),
    }));
    return { ...given, ...(files === undefined ? {} : { files }) };
  }

  /** What the agent inside heard last of its programs. */
  function lastResult(): string {
    const asked = model.received.findLast(({ model: name, tools }) => name !== CHAT && tools.length > 0);
    return JSON.stringify(asked?.body["messages"] ?? "it was never asked").slice(-2000);
  }

  /** A home folder in which the client was set up with one line. */
  function setUp(name: Name): { home: string; env: NodeJS.ProcessEnv } {
    const home = join(server.place, `home-${name}`);
    mkdirSync(home, { recursive: true });
    const programs = NAMES.map((each) => dirname(agents[each].program)).filter((folder) => folder !== ".");
    const env = {
      ...vivEnvironment(server),
      HOME: home,
      PATH: [...new Set(programs), dirname(process.execPath), "/usr/bin:/bin"].join(":"),
      ...QUIET,
    };
    const done = viv(server, ["mcp", "install", name], { env: { HOME: home } });
    expect(done.code, done.err).toBe(0);
    return { home, env };
  }

  test.for(NAMES)("MCP-2: sees Vivarium in %s after `viv mcp install`", { timeout: LONG_MS }, async (name, context) => {
    if (agents[name].program === "") context.skip(`${name} can't be fetched`);
    const { home, env } = setUp(name);
    const said = await run(agents[name].program, ["mcp", "list"], {
      cwd: home,
      env: { ...env, GEMINI_CLI_TRUST_WORKSPACE: "true" },
    });
    expect(said).toMatch(CONNECTS.has(name) ? /vivarium.*(connected|✓|✔)|(connected|✓|✔).*vivarium/i : /vivarium/);
  });

  const asks: Partial<Record<Name, (home: string, text: string) => { words: readonly string[]; env: Record<string, string> }>> = {
    claude: (_, text) => ({
      words: ["-p", text, "--model", CHAT, "--dangerously-skip-permissions"],
      env: { ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: "chat" },
    }),
    opencode: (home, text) => {
      const file = join(home, ".config/opencode/opencode.json");
      const settings = JSON.parse(readFileSync(file, "utf8")) as object;
      const provider = {
        npm: "@ai-sdk/openai-compatible",
        options: { baseURL: `${model.url}/v1`, apiKey: "chat" },
        models: { [CHAT]: { tool_call: true } },
      };
      const more = {
        provider: { own: provider },
        model: `own/${CHAT}`,
        small_model: `own/${CHAT}`,
        enabled_providers: ["own"],
        autoupdate: false,
        share: "disabled",
      };
      writeFileSync(file, JSON.stringify({ ...settings, ...more }));
      return { words: ["run", "--auto", text], env: {} };
    },
  };

  test("MCP-1: a chat has OpenCode do the work inside", { timeout: LONG_MS }, async (context) => {
    if (agents.opencode.program === "") context.skip("opencode can't be fetched");
    const PATH = [dirname(agents.opencode.program), dirname(process.execPath), "/usr/bin:/bin"].join(":");
    const client = await chat(server, { env: { PATH } });
    const asked = model.received.length;
    example = AGENT_EXAMPLES.find(({ packages }) => packages.length === 0);
    try {
      let done = await use(client, "execute_task", { task_description: "Clean the cases, please.", agent: "opencode" });
      while (done["status"] === "running") done = await use(client, "wait", { session_id: done["session_id"] });
      expect(done, lastResult()).toMatchObject({
        status: "completed",
        output: expect.stringContaining("It is done."),
        files_created: expect.arrayContaining(["clean.csv"]) as string[],
      });
      const { files } = (await use(client, "download_files", { session_id: done["session_id"], paths: ["clean.csv"] })) as {
        files: { content: string }[];
      };
      expect(example?.made["clean.csv"]?.(Buffer.from(files[0]?.content ?? "", "base64"))).toBe(true);
      expect(done["output"]).toContain("opencode has begun");
      expect(model.received.length, "OpenCode asked its model").toBeGreaterThan(asked);
      const { runs } = await server.client.call("listRuns", {});
      expect(runs[0]).toMatchObject({ agent: "opencode", state: "completed" });
    } finally {
      await client.close();
    }
  });

  for (const name of ["claude", "opencode"] as const)
    for (const each of AGENT_EXAMPLES)
      test(
        `MCP-2, DOC-1: asks ${name}: ${[each.title, each.way].filter((part) => part !== undefined).join(", ")}`,
        { timeout: LONG_MS },
        async (context) => {
          if (agents[name].program === "" || agents.claude.program === "") context.skip(`${name} can't be fetched`);
          if (each.packages.length > 0 && !reached.has(each.index)) context.skip(`the package index ${each.index} can't be reached`);
          const { home, env } = setUp(name);
          example = each;
          calls = page.get(each.title) ?? [];
          expect(calls).toHaveLength(1);
          rmSync(join(home, "Downloads"), { recursive: true, force: true });
          const { words, env: more } = asks[name]?.(home, `${each.title}, please.`) ?? { words: [], env: {} };
          const said = await run(agents[name].program, words, { cwd: home, env: { ...env, ...more } });
          expect(said).toContain("Your files are in ");
          const [folder = ""] = readdirSync(join(home, "Downloads"));
          const found = join(home, "Downloads", folder);
          for (const [file, isRight] of Object.entries(each.made))
            expect(existsSync(join(found, file)) && isRight(readFileSync(join(found, file))), `${file}: ${lastResult()}`).toBe(true);
        },
      );
});

/** Clients that look for nothing but what they are told. */
const QUIET = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  DISABLE_AUTOUPDATER: "1",
  IS_SANDBOX: "1",
  ENABLE_TOOL_SEARCH: "false",
  OPENCODE_DISABLE_AUTOUPDATE: "1",
  OPENCODE_DISABLE_MODELS_FETCH: "1",
  OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
  OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
  GEMINI_API_KEY: "none",
};
