/** One line of a person, then agents alone: a worker writes, tests, asks a reviewer, which reads and approves, and commits. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Run } from "../../src/base/schema/run.ts";
import { realAgent } from "../support/real-agents.ts";
import type { ToolCall } from "../support/models/shape.ts";
import { ScriptedModel, type ModelRequest } from "../support/scripted-model.ts";
import { TestServer } from "../support/server.ts";
import { missing, needs } from "../support/skip.ts";
import { startViv, viv } from "../support/viv.ts";

const LINE = "Implement user authentication. Be autonomous.";
const LOGIN = 'export function login(name: string): string {\n  return name === "admin" ? "welcome" : "denied";\n}\n';
const FILES = {
  "package.json": JSON.stringify({ name: "app", type: "module", scripts: { test: "node --test" } }),
  "AGENTS.md": "Write code in auth/. Run the tests with npm test. Ask the reviewer before you commit.\n",
  "auth/login.test.ts":
    'import assert from "node:assert";\nimport { test } from "node:test";\nimport { login } from "./login.ts";\ntest("login", () => assert.equal(login("admin"), "welcome"));\n',
};

/** What the scripted model has to say so that each agent acts. */
interface Speech {
  readonly agent: string;
  readonly write: (path: string, content: string) => ToolCall;
  readonly bash: (command: string) => ToolCall;
  readonly read: (path: string) => ToolCall;
  readonly ask: (input: ToolCall["input"]) => ToolCall;
}

const SPEECHES: readonly Speech[] = [
  {
    agent: "claude",
    write: (path, content) => ({ name: "Write", input: { file_path: path, content } }),
    bash: (command) => ({ name: "Bash", input: { command, description: "d" } }),
    read: (path) => ({ name: "Read", input: { file_path: path } }),
    ask: (input) => ({ name: "mcp__vivarium__coordinate_sibling", input }),
  },
  {
    agent: "opencode",
    write: (path, content) => ({ name: "write", input: { filePath: path, content } }),
    bash: (command) => ({ name: "bash", input: { command, description: "d" } }),
    read: (path) => ({ name: "read", input: { filePath: path } }),
    ask: (input) => ({ name: "coordinate_sibling", input }),
  },
];

for (const speech of SPEECHES) {
  const { agent } = speech;
  const { program, needed } = await realAgent(agent);
  describe(`the story of the example workflow with ${agent}`, missing("root") === undefined ? needed : needs("root"), () => {
    let model: ScriptedModel;
    let server: TestServer;
    const asked = (name: string): ModelRequest[] => model.received.filter((one) => one.model === name && one.tools.length > 0);

    beforeAll(async () => {
      model = await ScriptedModel.open();
      const models = { anthropic: { url: model.url, secret: "key" }, openai: { url: `${model.url}/v1`, secret: "key" } };
      const prices = { worker: { input: 1, output: 1 }, critic: { input: 1, output: 1 } };
      server = await TestServer.start({ config: { models, prices }, files: FILES });
      viv(server, ["secret", "set", "key", "--host", new URL(model.url).host, "--all-projects"], { input: "the-real-key" });
      const git = (...args: string[]): void => void execFileSync("git", args, { cwd: server.project });
      git("config", "user.name", "Worker");
      git("config", "user.email", "worker@example.com");
      git("add", "-A");
      git("commit", "-qm", "first");
    }, 60_000);
    afterAll(async () => {
      await server?.remove();
      model?.close();
    });

    async function task(words: readonly string[]): Promise<{ code: number; out: string; err: string }> {
      const path = `${dirname(program)}:${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`;
      const child = startViv(server, ["task", ...words], { cwd: server.project, env: { PATH: path } });
      child.stdin.end();
      const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit") as Promise<[number]>]);
      return { code, out, err };
    }

    test(
      "COORD-4: a worker writes, tests, asks a reviewer that reads and approves, and commits; the person typed one line",
      { timeout: 200_000 },
      async () => {
        const login = join(server.project, "auth/login.ts");
        model.script("worker", [
          { text: "I write it.", calls: [speech.write(login, LOGIN)] },
          { calls: [speech.bash("npm test")] },
          { calls: [speech.ask({ targetSandboxId: "reviewer", action: "Please review auth/login.ts.", context: "The tests pass." })] },
          { calls: [speech.bash("git add auth")] },
          { calls: [speech.bash('git commit -m "Add login"')] },
          { text: "Done." },
        ]);
        model.script("critic", [{ calls: [speech.read(login)] }, { text: "APPROVED: small and tested." }]);
        const told = await task([LINE, "--agent", agent, "--model", "worker", "--with", `reviewer:${agent}:critic`, "--check", "npm test"]);
        expect(told.code, told.err).toBe(0);
        const { runs } = await server.client.call("listRuns", {});
        const worker = runs.find(({ askedBy }) => askedBy == null) as Run;
        const reviewer = runs.find(({ askedBy }) => askedBy === worker.id) as Run;
        expect(worker).toMatchObject({ state: "completed", outcome: "done", steps: 5 });
        expect(reviewer).toMatchObject({ state: "completed", outcome: "done", steps: 1, agent, model: "critic" });
        // The reviewer read what the worker wrote, and the worker got its answer as another agent's.
        expect(JSON.stringify(asked("critic").at(-1)?.body)).toMatch(/(?<!> \+ {2})return name === \\+"admin\\+"/);
        expect(JSON.stringify(asked("worker").at(-1)?.body)).toContain("APPROVED: small and tested.");
        expect(told.err).toMatch(/^ {2}asks reviewer: Please review auth\/login\.ts\.$[^]*^ {2}reviewer: APPROVED: small and tested\.$/m);
        // The trail of the worker's sandbox, as the example has it.
        const { attempts } = await server.client.call("inspectExperiment", { experiment: worker.experiment ?? "" });
        const trail = viv(server, ["audit", attempts[0]?.sandbox ?? ""]).out.split("\n");
        const actions = trail.flatMap((line) => /(?:write|bash|coordinate_sibling): .*?\](?= |$)/.exec(line)?.[0] ?? []);
        expect(actions).toEqual([
          "write: auth/login.ts [AUTONOMOUS]",
          "bash: npm test [AUTONOMOUS (whitelisted)]",
          "coordinate_sibling: reviewer [AUTONOMOUS]",
          "bash: git add auth [AUTONOMOUS]",
          'bash: git commit -m "Add login" [AUTONOMOUS]',
        ]);
        const { stdout } = await server.sh(attempts[0]?.sandbox ?? "", "git log --format='%s by %an' -1 && git status --short");
        expect(stdout).toBe("Add login by Worker\n");
        // Reality has nothing of it until a person promotes it.
        expect(execFileSync("git", ["status", "--short"], { cwd: server.project }).toString()).toBe("");
        expect(viv(server, ["promote", worker.experiment ?? ""], { cwd: server.project }).code).toBe(0);
        expect(readFileSync(login, "utf8")).toBe(LOGIN);
      },
    );
  });
}
