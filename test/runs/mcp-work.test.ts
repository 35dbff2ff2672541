/** MCP-1: where the tools of a chat client work, and how their work is ended: opened projects, a server that is not there, cancelling. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ChatLab, refusal, use, type Fields } from "../support/agents/chat-lab.ts";
import { chat, ERAS } from "../support/mcp-client.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

describe("a chat client", needs("root"), () => {
  let lab: ChatLab;
  beforeAll(async () => {
    lab = await ChatLab.open();
  });
  afterAll(async () => lab?.remove());

  /** Ends a call when the client hears that it has begun. */
  async function cancelled(client: Client, name: string, args: Fields, begun: string): Promise<void> {
    const cancel = new AbortController();
    const calling = client.callTool(
      { name, arguments: { ...args } },
      { signal: cancel.signal, onprogress: ({ message = "" }) => message.includes(begun) && cancel.abort("The person pressed escape") },
    );
    await expect(calling).rejects.toThrow();
  }

  test.for<[string, (project: string) => { words: readonly string[]; cwd?: string }]>([
    ["--project", (project) => ({ words: ["--project", project] })],
    ["--here", (project) => ({ words: ["--here"], cwd: project })],
    ["mcp.projects in the user's config", () => ({ words: [] })],
  ])("MCP-3: has a task done in a clone of a project that %s opened, and reality keeps its files", async ([, options]) => {
    const { project, paths } = lab.server;
    const { words, cwd } = options(project);
    const before = readFileSync(paths.config, "utf8");
    if (words.length === 0) writeFileSync(paths.config, JSON.stringify({ ...JSON.parse(before), mcp: { projects: [project] } }));
    try {
      const client = await lab.client({ words, ...(cwd === undefined ? {} : { cwd }) });
      expect(await use(client, "list")).toMatchObject({ projects: [project] });
      const done = await use(client, "execute_task", {
        task_description: "call cat hello.txt extra/in.txt > both.txt; pwd > where.txt",
        files: [{ path: "extra/in.txt", text: "given\n" }],
        project,
      });
      expect(done).toMatchObject({ status: "completed", files_created: ["both.txt", "where.txt"] });
      const { session_id } = done;
      expect(await use(client, "download_files", { session_id })).toMatchObject({
        files: [
          { path: "both.txt", content: Buffer.from("hello\ngiven\n").toString("base64") },
          { path: "where.txt", content: Buffer.from(`${project}\n`).toString("base64") },
        ],
      });
      expect(existsSync(join(project, "both.txt"))).toBe(false);
      expect(await refusal(client, "execute_task", { task_description: "text x", project: lab.server.place })).toContain("has opened");
    } finally {
      writeFileSync(paths.config, before);
    }
  });

  test("MCP-3: is not let into the home folder by --here", async () => {
    const client = await lab.client({ words: ["--here"], cwd: lab.server.place });
    expect(await use(client, "list")).toMatchObject({ projects: [] });
  });

  test.for(ERAS)("MCP-1: cancels a command, which ends it and keeps what was done (%s)", async (era) => {
    const client = await lab.client({ era, words: ["--project", lab.server.project] });
    const { session_id } = await use(client, "clone");
    await cancelled(client, "run", { session_id, command: "echo kept > kept.txt; echo begun; sleep 600" }, "begun");
    const sandbox = String(session_id);
    const { commands } = await eventually(
      () => lab.server.client.call("listCommands", { sandbox, all: true }),
      (all) => all.commands.every(({ running }) => !running),
    );
    expect(commands).toHaveLength(1);
    expect(await use(client, "diff", { session_id })).toMatchObject({ files: ["added kept.txt"] });
  });

  test.for(ERAS)("MCP-1: cancels an experiment, which ends it and keeps what was done (%s)", async (era) => {
    const client = await lab.client({ era, words: ["--project", lab.server.project] });
    const before = new Set((await lab.server.client.call("listExperiments", {})).experiments.map(({ id }) => id));
    await cancelled(client, "try", { commands: ["echo kept > kept.txt; sleep 600"], checks: ["true"] }, "is running");
    const { experiments } = await eventually(
      () => lab.server.client.call("listExperiments", {}),
      (all) => all.experiments.some(({ id, endedAt }) => !before.has(id) && endedAt !== null),
    );
    const [ended, ...others] = experiments.filter(({ id }) => !before.has(id));
    expect(others).toEqual([]);
    expect(ended).toMatchObject({ state: "cancelled", attempts: [{ state: "cancelled" }] });
    expect(await use(client, "get_sandbox_status", { session_id: ended?.id })).toMatchObject({ status: "cancelled" });
  });
});

describe("viv mcp without a server", needs("root"), () => {
  test("MCP-1: starts one, which goes on when the client is gone", async () => {
    const server = await TestServer.start();
    try {
      await server.down();
      const client = await chat(server, { words: ["--project", server.project] });
      const { session_id } = await use(client, "clone");
      await client.close();
      expect(JSON.parse(viv(server, ["ls", "--json"]).out)).toMatchObject({ sandboxes: [{ id: session_id }] });
      expect(viv(server, ["down"]).code).toBe(0);
    } finally {
      await server.remove();
    }
  });
});
