import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { AGENT_PROTOCOLS } from "../../src/base/schema/choices.ts";
import { UserConfig } from "../../src/base/schema/config.ts";
import type { Adapter } from "../../src/work/agents/adapter.ts";
import { Adapters } from "../../src/work/agents/adapters.ts";
import { shown, startOf } from "../support/transcript.ts";

const HOSTILE = `it's "a" $(touch x) \`b\` \\ {task} $& $1\n; rm -rf /`;

function agent(command: string | string[], more: object = {}): Adapter {
  const { agents } = UserConfig.parse({ agents: { mine: { protocol: "command", command, ...more } } });
  const adapter = new Adapters(agents).of("mine");
  if (adapter === undefined) throw new Error("there is no agent mine");
  return adapter;
}

/** What it really prints. */
function printed(adapter: Adapter, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "viv-command-"));
  const program = adapter.program === "sh" ? "/bin/sh" : `/usr/bin/${adapter.program}`;
  const { command, env, files } = adapter.launch(startOf({ folder, program, task: { id: "msg_1", text } }));
  for (const { path, content } of files) writeFileSync(join(folder, path), content);
  const [first = "", ...rest] = command;
  return execFileSync(first, rest, { env: { PATH: process.env["PATH"], ...env }, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

describe("any command as an agent", () => {
  test("the task stands where a shell line says so, whatever is in it", () => {
    expect(printed(agent("printf %s {task}; printf ' %s' {task}"), HOSTILE)).toBe(`${HOSTILE} ${HOSTILE}`);
  });

  test("the task stands where an argument says so", () => {
    expect(printed(agent(["printf", "%s|", "--task={task}", "x"]), HOSTILE)).toBe(`--task=${HOSTILE}|x|`);
  });

  test("without that it is standard input", () => {
    expect(printed(agent("cat"), HOSTILE)).toBe(HOSTILE);
    expect(printed(agent(["cat", "-"]), HOSTILE)).toBe(HOSTILE);
  });

  test("its lines are output, its exit code decides", () => {
    const session = agent("x").session(startOf());
    expect(shown([...session.begin(), ...session.line("hello"), ...session.errorLine("oh"), ...session.end(0)])).toEqual([
      "started",
      "delivered msg_task",
      "turn began",
      "command_output",
      "command_output",
      "turn ended",
      "over done",
    ]);
    expect(session.end(3)).toContainEqual({ over: "failed", reason: "mine ended with 3." });
    expect(session.message("msg_2", "x")).toBeUndefined();
  });

  test("it gets the variables of the config", () => {
    expect(printed(agent("printf %s $A", { env: { A: "1" } }), "x")).toBe("1");
  });
});

describe("agents of the config", () => {
  test("a shell line is for commands alone", () => {
    expect(UserConfig.safeParse({ agents: { a: { protocol: "acp", command: "my agent" } } }).success).toBe(false);
    expect(UserConfig.safeParse({ agents: { "A b": { protocol: "acp", command: ["x"] } } }).success).toBe(false);
    expect(UserConfig.safeParse({ agents: { a: { protocol: "morse", command: ["x"] } } }).success).toBe(false);
  });

  test("one may speak the protocol of a built-in agent, by another program", () => {
    const adapters = new Adapters(
      UserConfig.parse({ agents: { codex: { protocol: "codex", command: ["npx", "-y", "@openai/codex"], providers: ["local"] } } }).agents,
    );
    const codex = adapters.of("codex");
    const models = { openai: { url: "http://openai", key: "1" }, local: { url: "http://local", key: "2" } };
    const launch = codex?.launch(startOf({ program: "/usr/bin/npx", models }));
    expect(launch?.command).toEqual(["/usr/bin/npx", "-y", "@openai/codex", "app-server"]);
    expect(launch?.files[0]?.content).toContain('base_url = "http://local"');
    expect(codex?.providers).toEqual(["local"]);
    expect(adapters.names).toEqual(new Adapters({}).names);
  });

  test("every protocol is spoken, and every built-in agent has one", () => {
    expect([...AGENT_PROTOCOLS].toSorted()).toEqual(["acp", "command", ...new Adapters({}).names].toSorted());
  });
});
