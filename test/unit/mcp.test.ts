/** What chat clients read of the tools at every turn is little, and is written once. */
import { randomBytes } from "node:crypto";
import { Client, InMemoryTransport } from "@modelcontextprotocol/client";
import { describe, expect, test } from "vitest";
import { Readable } from "node:stream";
import { TOOL_NAMES } from "../../src/base/schema/mcp.ts";
import type { McpServer } from "@modelcontextprotocol/server";
import { mcpServers } from "../../src/interfaces/mcp/mcp.ts";
import { wholeLines } from "../../src/interfaces/mcp/stdio.ts";
import { estimateTokens } from "../../src/work/conversations/tokens.ts";

const MOST_TOKENS = 2_000;

async function listed(): Promise<unknown[]> {
  const factory = mcpServers(
    {
      version: "0",
      client: () => Promise.reject(new Error("not used")),
      env: {},
      projects: [],
      downloads: undefined,
      tools: TOOL_NAMES,
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

  test("come a whole line at a time, however they are cut, and without lines that are too long", async () => {
    const pieces = ["one\ntw", "o\n", "a line that is too lo", "ng\nthree\n", "cut off"].map((text) => Buffer.from(text));
    const lines: string[] = [];
    for await (const line of wholeLines(Readable.from(pieces), 10)) lines.push(line.toString());
    expect(lines).toEqual(["one\n", "two\n", "three\n"]);
  });
});
