/** What chat clients read of the tools at every turn is little, and is written once. */
import { randomBytes } from "node:crypto";
import { Client, InMemoryTransport } from "@modelcontextprotocol/client";
import { describe, expect, test } from "vitest";
import { Readable } from "node:stream";
import { chosenTools, DEFAULT_TOOLS, TOOL_NAMES, TOOLS, type ToolName } from "../../src/base/schema/mcp.ts";
import type { McpServer } from "@modelcontextprotocol/server";
import { mcpServers } from "../../src/interfaces/mcp/mcp.ts";
import { pictureOf } from "../../src/interfaces/mcp/pictures.ts";
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
    for await (const line of wholeLines(Readable.from(pieces), 10)) lines.push(line.toString());
    expect(lines).toEqual(["one\n", "two\n", "three\n"]);
  });
});
