/** DOC-1: the examples of docs/MCP.md that need no model, call by call as the page shows them. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ChatLab } from "../support/agents/chat-lab.ts";
import { AGENT_EXAMPLES, examplesOf, play } from "../support/mcp-examples.ts";
import { needs } from "../support/skip.ts";

const page = examplesOf("MCP.md");

describe("docs/MCP.md", () => {
  test("DOC-1: has at least five worked examples, and each is run by a test", () => {
    const here = ["A task that takes long", "Several ways to fix a project, and only the one that works", "Look around in a clone"];
    // In test/notebook/mcp.test.ts and test/programs/mcp-desktop.test.ts.
    const ofSets = ["Numbers, step by step", "A program with windows"];
    const done = new Set([...here, ...ofSets, ...AGENT_EXAMPLES.map(({ title }) => title)]);
    expect([...page.keys()].toSorted()).toEqual([...done].toSorted());
    expect(page.size).toBeGreaterThanOrEqual(5);
  });
});

describe("an example of docs/MCP.md", needs("root"), () => {
  let lab: ChatLab;
  let client: Client;
  beforeAll(async () => {
    lab = await ChatLab.open();
    client = await lab.client({
      words: ["--project", lab.server.project, "--answer-within", "1s"],
      person: () => ({ action: "accept", content: { allow: true } }),
    });
  });
  afterAll(async () => lab?.remove());

  test("DOC-1: a task that takes long", async () => {
    // The agent of the test does what its task says: it works longer than this client waits.
    const answers = await play(client, page.get("A task that takes long") ?? [], ({ tool, arguments: given }) =>
      tool === "execute_task" ? { ...given, task_description: "call sleep 3\ncall echo list > list.txt" } : given,
    );
    expect(answers).toMatchObject([{ status: "running" }, { status: "completed", files_created: ["list.txt"] }]);
  });

  test("DOC-1: several ways to fix a project, and only the one that works", async () => {
    const answers = await play(client, page.get("Several ways to fix a project, and only the one that works") ?? []);
    expect(answers).toMatchObject([
      { attempts: [{ checks: "failed" }, { checks: "passed" }] },
      { status: "applied" },
      { status: "undone" },
    ]);
    expect(existsSync(join(lab.server.project, "answer.txt"))).toBe(false);
  });

  test("DOC-1: look around in a clone", async () => {
    const answers = await play(client, page.get("Look around in a clone") ?? []);
    expect(answers).toMatchObject([{}, { exit_code: 0 }, { patch: expect.stringContaining("+changed") }, { status: "removed" }]);
  });
});
