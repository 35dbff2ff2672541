/**
 * Records transcripts: drives a real program by its adapter, with the scripted model behind it, outside of any sandbox.
 * `node test/support/record-agent.ts codex PROGRAM [SCENARIO...]` writes test/corpus/adapters/codex/.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { withoutOwnTexts } from "./agents/own-texts.ts";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { json } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import type { Adapter, AgentStart, Heard, Session } from "../../src/work/agents/adapter.ts";
import { Adapters } from "../../src/work/agents/adapters.ts";
import { ScriptedModel, type Step } from "./scripted-model.ts";
import { FOLDER, PROJECT, startOf, TASK, type Entry } from "./transcript.ts";

/** The gateway: its tools, of which there is one, and what it says to actions. */
async function gatewayOf({ allows }: Scenario): Promise<Server> {
  let asked = 0;
  const decide = (): object => {
    const verdict = (allows?.(asked++) ?? true) ? "allow" : "deny";
    return { verdict, reason: verdict === "allow" ? "The policy allows it." : "The policy does not allow it." };
  };
  const schema = { type: "object", properties: { title: { type: "string" } } };
  const answers: Readonly<Record<string, object>> = {
    initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "vivarium", version: "1" } },
    "tools/list": { tools: [{ name: "create_task", description: "Makes a task.", inputSchema: schema }] },
    "tools/call": { content: [{ type: "text", text: "created" }] },
  };
  const server = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      if (request.url?.endsWith("/actions") === true) return void response.writeHead(200).end(JSON.stringify(decide()));
      const { id, method } = request.method === "POST" ? ((await json(request)) as { id?: number; method?: string }) : {};
      const result = answers[method ?? ""];
      response.writeHead(result === undefined ? (request.method === "GET" ? 405 : 202) : 200, { "content-type": "application/json" });
      response.end(result === undefined ? "" : JSON.stringify({ jsonrpc: "2.0", id, result }));
    };
    answer().catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

interface Tools {
  readonly command: (line: string) => { name: string; input: Record<string, string> };
  readonly write: (path: string) => { name: string; input: Record<string, string> };
  readonly gateway?: { name: string; namespace?: string };
}

const CONTENT = "new\n";
const PATCH = (path: string): string => `apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: ${path}\n+new\n*** End Patch\nEOF\n`;
const TOOLS: Readonly<Record<string, Tools>> = {
  codex: {
    command: (cmd) => ({ name: "exec_command", input: { cmd } }),
    write: (path) => ({ name: "exec_command", input: { cmd: PATCH(path) } }),
    gateway: { namespace: "mcp__vivarium", name: "create_task" },
  },
  gemini: {
    command: (command) => ({ name: "run_shell_command", input: { command } }),
    write: (path) => ({ name: "write_file", input: { file_path: path, content: CONTENT } }),
    gateway: { name: "mcp_vivarium_create_task" },
  },
  opencode: {
    command: (command) => ({ name: "bash", input: { command, description: "does it" } }),
    write: (path) => ({ name: "write", input: { filePath: path, content: CONTENT } }),
    gateway: { name: "create_task" },
  },
  pi: {
    command: (command) => ({ name: "bash", input: { command } }),
    write: (path) => ({ name: "write", input: { path, content: CONTENT } }),
    gateway: { name: "vivarium_create_task" },
  },
  claude: {
    command: (command) => ({ name: "Bash", input: { command, description: "does it" } }),
    write: (path) => ({ name: "Write", input: { file_path: `${PROJECT}/${path}`, content: CONTENT } }),
    gateway: { name: "mcp__vivarium__create_task" },
  },
  "claude-acp": {
    command: (command) => ({ name: "Bash", input: { command } }),
    write: (path) => ({ name: "Write", input: { file_path: path, content: CONTENT } }),
    gateway: { name: "mcp__vivarium__create_task" },
  },
};

interface Scenario {
  readonly steps: (tools: Tools) => readonly Step[];
  readonly allows?: (nth: number) => boolean;
  /** At the first tool call that runs. */
  readonly during?: "message" | "interrupt" | "kill";
  /** Sent after the first turn. */
  readonly later?: string;
  /** Goes on with the conversation of the scenario before. */
  readonly resumes?: boolean;
  /** Of that conversation nothing is left. */
  readonly forgets?: boolean;
  /** What is not a message is written twice, as after a crash. */
  readonly doubled?: boolean;
}

const SLOW = "sleep 3; echo slept";
const TOO_MANY = { status: 429, headers: { "retry-after": "1" } };
const work = (tools: Tools): readonly Step[] => [
  { thinking: "let me think", text: "I will look.", calls: [tools.command("echo hello && cat a.txt")] },
  { calls: [tools.write("b.txt")] },
  { text: "done" },
];
const slowly = ({ command }: Tools): readonly Step[] => [{ calls: [command(SLOW)] }, { text: "done" }, { text: "done again" }];

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  run: { steps: work },
  doubled: { steps: work, doubled: true },
  denied: { steps: work, allows: (nth) => nth !== 0 },
  message: { steps: slowly, during: "message" },
  later: { steps: () => [{ text: "done" }, { text: "done again" }], later: "and now this" },
  interrupt: { steps: slowly, during: "interrupt", later: "go on" },
  "rate-limited": { steps: () => [{ failures: [TOO_MANY, TOO_MANY], text: "done" }] },
  refused: { steps: () => [{ failures: Array.from({ length: 50 }, () => ({ status: 400 })), text: "done" }] },
  "gateway-tool": { steps: ({ gateway = { name: "none" } }) => [{ calls: [{ ...gateway, input: { title: "t" } }] }, { text: "done" }] },
  killed: { steps: ({ command }) => [{ text: "done" }, { calls: [command(SLOW)] }], later: "go on", during: "kill" },
  resumed: { steps: () => [{ text: "begun anew" }, { text: "gone on" }, { text: "gone on" }, { text: "gone on" }], resumes: true },
  "lost-conversation": { steps: () => [{ text: "done" }], resumes: true, forgets: true },
};

/** Folders and addresses as they are, and as they stand in a transcript. */
interface Words {
  readonly real: (text: string) => string;
  readonly plain: (text: string) => string;
}

class Recording {
  readonly entries: Entry[] = [];
  conversation: string | null = null;
  readonly #session: Session;
  readonly #child: ChildProcess;
  readonly #scenario: Scenario;
  readonly #queue: { id: string; text: string }[] = [{ ...TASK }];
  readonly #words: Words;
  #asked = 0;
  #seen = false;
  #last: Promise<void> = Promise.resolve();

  constructor(session: Session, child: ChildProcess, scenario: Scenario, conversation: string | null, words: Words) {
    this.#session = session;
    this.#child = child;
    this.#scenario = scenario;
    this.#words = words;
    this.conversation = conversation;
    this.entries.push({ conversation });
  }

  async run(): Promise<void> {
    this.#child.stdin?.on("error", () => undefined);
    for (const heard of this.#session.begin()) this.#apply(heard);
    const ends = [this.#read("stdout"), this.#read("stderr")];
    const { promise, resolve } = Promise.withResolvers<number | null>();
    this.#child.on("exit", resolve);
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), 90_000);
    const exit = await promise;
    clearTimeout(timer);
    await Promise.all(ends);
    await this.#last;
    this.#session.end(exit);
    this.entries.push({ exit });
  }

  async #read(stream: "stdout" | "stderr"): Promise<void> {
    let rest = "";
    for await (const chunk of (this.#child[stream] as NodeJS.ReadableStream).setEncoding("utf8")) {
      const lines = `${rest}${String(chunk)}`.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#hear(stream, this.#words.plain(line));
    }
  }

  #hear(stream: "stdout" | "stderr", line: string): void {
    this.entries.push(stream === "stdout" ? { out: line } : { err: line });
    const heard = stream === "stdout" ? this.#session.line(line) : this.#session.errorLine(line);
    for (const each of heard) this.#apply(each);
    this.#pump();
    if (!heard.some((each) => "turnEnded" in each || "over" in each)) return;
    const { later } = this.#scenario;
    if (later !== undefined && !this.entries.some((entry) => "message" in entry && entry.message[0] === "msg_later")) {
      this.#queue.push({ id: "msg_later", text: later });
      this.#pump();
    } else this.#child.stdin?.end();
  }

  #pump(): void {
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      const wrote = this.#session.message(next.id, next.text);
      if (wrote === undefined) return;
      this.#queue.shift();
      this.entries.push({ message: [next.id, next.text], wrote });
      this.#write(wrote);
    }
  }

  #apply(heard: Heard): void {
    if ("write" in heard) {
      this.#write(heard.write);
      if (this.#scenario.doubled === true) this.#write(heard.write);
    }
    if ("conversation" in heard) this.conversation = heard.conversation;
    if ("request" in heard) this.#decide(heard.request);
    if ("event" in heard && heard.event.type === "tool_call") this.#act();
  }

  #decide(request: string): void {
    const allowed = this.#scenario.allows?.(this.#asked) ?? true;
    this.#asked += 1;
    this.#last = delay(20).then(() => {
      const reason = allowed ? "The policy allows it." : "The policy does not allow it.";
      const wrote = this.#session.answer(request, allowed, reason);
      this.entries.push({ answer: [request, allowed, reason], wrote });
      this.#write(wrote);
      if (this.#scenario.doubled === true) this.#write(wrote);
    });
  }

  #act(): void {
    if (this.#seen || this.#scenario.during === undefined) return;
    this.#seen = true;
    setTimeout(() => {
      if (this.#scenario.during === "kill") this.#child.kill("SIGKILL");
      else if (this.#scenario.during === "message") {
        this.#queue.push({ id: "msg_mid", text: "also say hi" });
        this.#pump();
      } else {
        const wrote = this.#session.interrupt() ?? "";
        this.entries.push({ interrupt: true, wrote });
        this.#write(wrote);
      }
    }, 1500);
  }

  #write(line: string): void {
    this.#child.stdin?.write(this.#words.real(line));
  }
}

async function record(
  name: string,
  adapter: Adapter,
  program: readonly string[],
  scenario: Scenario,
  before: { root: string; conversation: string | null },
): Promise<Recording> {
  const { root } = before;
  const tools = TOOLS[name];
  if (tools === undefined) throw new Error(`no scripts for ${name}`);
  const real = (text: string): string => text.replaceAll(PROJECT, `${root}/p`).replaceAll(FOLDER, `${root}/a`);
  const steps = JSON.parse(real(JSON.stringify(scenario.steps(tools)))) as readonly Step[];
  const model = await ScriptedModel.open({ demo: steps });
  const plain = (text: string): string =>
    text.replaceAll(`${root}/p`, PROJECT).replaceAll(`${root}/a`, FOLDER).replaceAll(model.url, "http://model");
  const conversation = scenario.resumes === true ? before.conversation : null;
  if (scenario.forgets === true) rmSync(`${root}/a`, { recursive: true });
  const gateway = await gatewayOf(scenario);
  const known = { url: model.url, key: "placeholder" };
  const start: AgentStart = startOf({
    program: program[0] ?? "",
    conversation,
    models: { openai: known, anthropic: known, gemini: known },
    gateway: `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`,
  });
  const launch = adapter.launch({ ...start, folder: real(FOLDER), project: real(PROJECT) });
  const write = (path: string, content: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  for (const { path, content } of launch.files) write(`a/${path}`, content);
  write("p/a.txt", "AAA\n");
  const { ANTHROPIC_API_KEY: _, ...env } = process.env;
  const child = spawn(program[0] ?? "", [...program.slice(1), ...launch.command.slice(1)], {
    cwd: `${root}/p`,
    env: { ...env, HOME: root, ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: known.key, ...launch.env },
  });
  const recording = new Recording(adapter.session(start), child, scenario, conversation, { real, plain });
  await recording.run();
  model.close();
  gateway.close();
  gateway.closeAllConnections();
  const file = join(import.meta.dirname, "../corpus/adapters", process.env["RECORD_AS"] ?? name);
  mkdirSync(file, { recursive: true });
  const found = Object.entries(SCENARIOS).find(([, each]) => each === scenario)?.[0] ?? "unknown";
  writeFileSync(
    join(file, `${found}.jsonl`),
    recording.entries
      .map((entry) => `${JSON.stringify("out" in entry ? { ...entry, out: withoutOwnTexts(entry.out) } : entry)}\n`)
      .join(""),
  );
  return recording;
}

const [name = "", given = "", ...chosen] = process.argv.slice(2);
const entry = {
  "claude-acp": {
    protocol: "acp" as const,
    command: ["claude-agent-acp"],
    env: { IS_SANDBOX: "1", ANTHROPIC_API_KEY: "placeholder", ANTHROPIC_MODEL: "demo", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" },
  },
};
const adapter = new Adapters(entry).of(name);
if (adapter === undefined) throw new Error(`there is no agent ${name}`);
let root = "";
let conversation: string | null = null;
for (const [scenarioName, scenario] of Object.entries(SCENARIOS)) {
  if (chosen.length > 0 && !chosen.includes(scenarioName)) continue;
  if (scenario.resumes !== true) {
    if (root !== "") rmSync(root, { recursive: true, force: true, maxRetries: 10 });
    root = mkdtempSync(join(tmpdir(), "viv-record-"));
  }
  // Gemini CLI spoils a conversation that is loaded in the minute in which it was made.
  if (scenario.resumes === true && name === "gemini") await delay(61_000);
  const recording: Recording = await record(name, adapter, given.split(" "), scenario, { root, conversation });
  conversation = recording.conversation;
  const last = recording.entries.at(-1);
  process.stderr.write(`${scenarioName}: ${recording.entries.length} entries, ${JSON.stringify(last)}\n`);
}
rmSync(root, { recursive: true, force: true, maxRetries: 10 });
