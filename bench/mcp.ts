/** What a chat client pays for Vivarium: a whole task with a real Claude Code against the same agent alone, and a call that does nothing. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { ScriptedModel, type Step } from "../test/support/scripted-model.ts";
import { CLAUDE_ALONE, CLAUDE_ALONE_FLAGS } from "./claude-alone.ts";
import { installs } from "./installed-agents.ts";
import { pairCount, rested, round, series, timed } from "./measure.ts";
import { INSTALL } from "./peers.ts";
import { publish } from "./published.ts";
import type { Absent, Group, Key, Measured, Settings } from "./rows.ts";
import { BenchServer } from "./server.ts";
import { Spawner } from "./spawner.ts";

const TASK = "Do it.";
/** Removals of the task before must not meet the next sample. */
const QUIET_MS = 300;
const CALLS = 200;
const bash = (command: string): Step => ({ calls: [{ name: "Bash", input: { command, description: "Does it" } }] });
const SCRIPT: readonly Step[] = [bash("echo one > one.txt"), bash("cat one.txt"), { text: "Done." }];

export const mcpGroup: Group = {
  keys: ["mcp_execute", "mcp_call_ms"],
  async measure(settings) {
    const model = await ScriptedModel.open({
      "*": ({ tools, turn }) => (tools.length === 0 ? { text: "hello" } : (SCRIPT[turn] ?? { text: "Done." })),
    });
    try {
      const config = { models: { anthropic: { url: model.url, secret: "anthropic" } } };
      return await BenchServer.with((server) => measure(server, model, settings), config);
    } finally {
      model.close();
    }
  },
};

async function measure(server: BenchServer, model: ScriptedModel, settings: Settings): Promise<Partial<Record<Key, Measured | Absent>>> {
  const { wanted, progress, quick } = settings;
  await server.call("setSecret", { secret: "anthropic", value: "not-used", hosts: [new URL(model.url).host], projects: null });
  const program = installs.find("claude")?.program;
  const path = program === undefined ? (process.env["PATH"] ?? "") : `${dirname(program)}:${process.env["PATH"] ?? ""}`;
  const viv = await publish(join(server.place, "package"));
  const client = await connect(viv, { ...server.env, PATH: path });
  try {
    const outcomes: Partial<Record<Key, Measured | Absent>> = {};
    if (wanted.has("mcp_call_ms")) {
      progress("mcp_call_ms");
      outcomes.mcp_call_ms = await calls(client, quick);
    }
    if (wanted.has("mcp_execute")) {
      progress("mcp_execute");
      outcomes.mcp_execute =
        program === undefined
          ? { reason: `Claude Code is not installed; ${INSTALL}` }
          : await tasks({ server, model, client, program, path }, quick);
    }
    return outcomes;
  } finally {
    await client.close();
  }
}

async function connect(viv: string, env: Readonly<Record<string, string | undefined>>): Promise<Client> {
  const client = new Client({ name: "bench", version: "1" }, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
  const defined = Object.fromEntries(Object.entries(env).filter((pair): pair is [string, string] => pair[1] !== undefined));
  await client.connect(new StdioClientTransport({ command: viv, args: ["mcp"], env: defined, stderr: "ignore" }));
  return client;
}

async function calls(client: Client, quick: boolean): Promise<Measured> {
  // One question to the server, and nothing that could be told.
  const call = (): Promise<unknown> => client.callTool({ name: "get_sandbox_status", arguments: { session_id: "nothing" } });
  for (let index = 0; index < 20; index += 1) await call();
  const samples: number[] = [];
  for (let index = 0; index < (quick ? CALLS / 4 : CALLS); index += 1) samples.push(await timed(call));
  const raw = series(samples);
  return { figure: raw.median, raw: { get_sandbox_status: raw } };
}

interface Sides {
  readonly server: BenchServer;
  readonly model: ScriptedModel;
  readonly client: Client;
  readonly program: string;
  readonly path: string;
}

async function tasks(sides: Sides, quick: boolean): Promise<Measured> {
  const spawner = new Spawner();
  const inside: number[] = [];
  const alone: number[] = [];
  try {
    for (let index = -1; index < pairCount(quick); index += 1) {
      const pair = [
        [inside, () => execute(sides)],
        [alone, () => runAlone(sides, spawner)],
      ] as const;
      for (const [samples, sample] of index % 2 === 0 ? pair : pair.toReversed()) {
        const took = await rested(sample, QUIET_MS);
        if (index >= 0) samples.push(took);
      }
    }
  } finally {
    await spawner.close();
  }
  const raw = { execute_task: series(inside), alone: series(alone) };
  return { figure: round(raw.execute_task.median / raw.alone.median), raw };
}

/** From the call to its result; what it leaves is removed outside the clock. */
async function execute({ client }: Sides): Promise<number> {
  const began = performance.now();
  const { structuredContent } = await client.callTool({ name: "execute_task", arguments: { task_description: TASK } });
  const took = performance.now() - began;
  const done = structuredContent as { session_id: string; status: string; files_created: string[] };
  if (done.status !== "completed" || done.files_created.join() !== "one.txt")
    throw new Error(`the task did not do its work: ${JSON.stringify(done)}`);
  await client.callTool({ name: "cleanup_sandbox", arguments: { session_id: done.session_id } });
  return took;
}

/** The same program in an empty folder, given its task in the same way. */
async function runAlone({ server, model, program }: Sides, spawner: Spawner): Promise<number> {
  const place = mkdtempSync(join(server.place, "alone-"));
  writeFileSync(
    join(place, "input"),
    `${JSON.stringify({ type: "user", message: { role: "user", content: [{ type: "text", text: TASK }] } })}\n`,
  );
  const env = { ...CLAUDE_ALONE, ANTHROPIC_BASE_URL: model.url, CLAUDE_CONFIG_DIR: place, CLAUDE_CODE_TMPDIR: place };
  return spawner.run(["/bin/sh", "-c", 'exec "$@" <input', "sh", program, ...CLAUDE_ALONE_FLAGS], { cwd: place, env });
}
