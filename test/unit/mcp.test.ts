/** What chat clients read of the tools at every turn is little, and is written once. */
import { randomBytes } from "node:crypto";
import { Client, InMemoryTransport } from "@modelcontextprotocol/client";
import { describe, expect, test } from "vitest";
import { Readable } from "node:stream";
import type { Run } from "../../src/base/schema/run.ts";
import { chosenTools, DEFAULT_TOOLS, TOOL_NAMES, TOOLS, type ToolName } from "../../src/base/schema/mcp.ts";
import type { McpServer } from "@modelcontextprotocol/server";
import { mcpServers } from "../../src/interfaces/mcp/mcp.ts";
import { pictureOf } from "../../src/interfaces/mcp/pictures.ts";
import { statusOf } from "../../src/interfaces/mcp/run-work.ts";
import { wholeLines } from "../../src/interfaces/mcp/stdio.ts";
import { estimateTokens } from "../../src/work/conversations/tokens.ts";
import { png } from "../support/mcp-examples.ts";

const MOST_TOKENS = 2_000;

async function listed(chosen: readonly ToolName[] = DEFAULT_TOOLS): Promise<{ name: string }[]> {
  const factory = mcpServers(
    {
      version: "0",
      client: () => Promise.reject(new Error("not used")),
      env: {},
      projects: [],
      downloads: undefined,
      tools: chosen,
      key: randomBytes(32),
    },
    () => undefined,
  );
  const server = (await factory({ era: "legacy" })) as McpServer;
  const [near, far] = InMemoryTransport.createLinkedPair();
  await server.connect(far);
  const client = new Client({ name: "a-test", version: "1" });
  await client.connect(near);
  const { tools } = await client.listTools();
  await client.close();
  return tools;
}

describe("the tools of chat clients", () => {
  test("MCP-1: are twelve, and take fewer than 2,000 tokens of a model's context", async () => {
    const tools = await listed();
    expect(tools).toHaveLength(12);
    expect(estimateTokens(JSON.stringify(tools))).toBeLessThan(MOST_TOKENS);
  });

  test("MCP-1: of sets are chosen by the name of the set, beside others or alone, and each is in one set", async () => {
    expect(chosenTools("default").tools).toEqual(DEFAULT_TOOLS);
    expect(chosenTools("desktop, wait").tools).toEqual(["wait", "use_desktop", "screenshot"]);
    expect(chosenTools("default,desktop,notebook").tools).toEqual(TOOL_NAMES);
    expect(chosenTools("notebook,toString").unknown).toBe("toString");
    const both = await listed(chosenTools("desktop,notebook").tools);
    expect(both.map(({ name }) => name)).toEqual(["use_desktop", "screenshot", "python", "python_context"]);
    expect(estimateTokens(JSON.stringify(both))).toBeLessThan(MOST_TOKENS / 2);
  });

  test("take an action at a screen only with the fields that it has", () => {
    const { input } = TOOLS.use_desktop;
    expect(input.parse({ actions: [{ do: "click", x: 1, y: 2 }] }).actions).toEqual([
      { do: "click", x: 1, y: 2, button: "left", count: 1 },
    ]);
    for (const wrong of [{ do: "move", x: 1 }, { do: "type", text: "a", x: 1 }, { do: "key" }, { do: "fly" }])
      expect(input.safeParse({ actions: [wrong] }).success, JSON.stringify(wrong)).toBe(false);
  });

  test("show a picture only where it is one, whole and not too large: a model's API refuses the conversation otherwise", () => {
    const whole = png(3, 2);
    expect(pictureOf(whole)).toEqual({ type: "image", mimeType: "image/png", data: whole.toString("base64") });
    const wide = Buffer.from(whole);
    wide.writeUInt32BE(100_000, 16);
    const large = Buffer.concat([whole.subarray(0, 40), Buffer.alloc(4 * 1024 ** 2), whole.subarray(40)]);
    for (const wrong of [whole.subarray(0, -4), wide, large, Buffer.from("<svg/>"), Buffer.alloc(0)])
      expect(pictureOf(wrong)).toBe(undefined);
  });

  test("come a whole line at a time, however they are cut, and without lines that are too long", async () => {
    const pieces = ["one\ntw", "o\n", "a line that is too lo", "ng\nthree\n", "cut off"].map((text) => Buffer.from(text));
    const lines: string[] = [];
    let refused = 0;
    for await (const line of wholeLines(Readable.from(pieces), 10, () => (refused += 1))) lines.push(line.toString());
    expect(lines).toEqual(["one\n", "two\n", "three\n"]);
    expect(refused).toBe(1);
  });

  test("MCP-3: refuse a message that is too long by the id of its request, wherever a program writes the id", async () => {
    const filler = "x".repeat(20_000);
    const request = { jsonrpc: "2.0", method: "tools/call", params: { name: "execute_task", arguments: { id: 9, text: filler } } };
    const messages: readonly [object, string | number | undefined][] = [
      [{ ...request, id: 7 }, 7],
      [{ id: 'a"b', ...request }, 'a"b'],
      [{ jsonrpc: "2.0", id: 3, method: "x", params: { text: filler, id: 4 } }, 3],
      [{ jsonrpc: "2.0", method: "notifications/x", params: { text: filler, id: 4 } }, undefined],
      [{ jsonrpc: "2.0", method: "notifications/x", params: { text: filler, last: { id: 4 } } }, undefined],
    ];
    const found: unknown[] = [];
    const text = messages.map(([message]) => `${JSON.stringify(message)}\n`).join("");
    const pieces = (text.match(/[^]{1,1000}/g) ?? []).map((piece) => Buffer.from(piece));
    for await (const line of wholeLines(Readable.from(pieces), 10_000, ({ id }) => found.push(id))) expect.unreachable(line.toString());
    expect(found).toEqual(messages.map(([, id]) => id));
  });

  test("MCP-1: tell models of a yolo level that is 3 if it is left out, from 1 to 4, and know whether it was left out", async () => {
    const [tool] = (await listed(["execute_task"])) as unknown as { inputSchema: { properties: object; required: string[] } }[];
    expect(tool?.inputSchema.properties).toMatchObject({
      yolo_level: { enum: [1, 2, 3, 4], default: 3 },
      timeout: { default: 600, minimum: 60, maximum: 1800 },
    });
    expect(tool?.inputSchema.required).toEqual(["task_description"]);
    expect(TOOLS.execute_task.input.parse({ task_description: "x" }).yolo_level).toBe(undefined);
    expect(TOOLS.execute_task.input.safeParse({ task_description: "x", yolo_level: 5 }).success).toBe(false);
  });

  test("MCP-1: have the status that S3 names for how a run ended", () => {
    const run = { endedAt: "2026-01-01T00:00:00.000Z", state: "failed", outcome: "failed" } as Run;
    expect(statusOf({ ...run, endedAt: null, state: "running", outcome: null })).toBe("running");
    expect(statusOf({ ...run, state: "completed", outcome: "done" })).toBe("completed");
    expect(statusOf({ ...run, outcome: "timeout" })).toBe("timeout");
    expect(statusOf({ ...run, outcome: "cancelled" })).toBe("failed");
    expect(statusOf(run)).toBe("failed");
  });
});
