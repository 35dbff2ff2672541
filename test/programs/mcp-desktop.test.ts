/** GUI-1, MCP-1: the screen of a sandbox for chat clients, with the machine's Xvnc. */
import type { CallToolResult, Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ChatLab, refusal, use, type Fields } from "../support/agents/chat-lab.ts";
import { examplesOf, play } from "../support/mcp-examples.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

describe("a chat client with the tools for screens (GUI-1, MCP-1)", needs("root", "desktop"), () => {
  let lab: ChatLab;
  let client: Client;
  beforeAll(async () => {
    lab = await ChatLab.open();
    client = await lab.client({ words: ["--tools", "default,desktop", "--project", lab.server.project] });
  });
  afterAll(async () => lab?.remove());

  const call = (name: string, args: Fields): Promise<CallToolResult> => client.callTool({ name, arguments: { ...args } });

  const pictureIn = ({ content }: CallToolResult): number[] => {
    const image = content.find((part) => part.type === "image");
    expect(image?.mimeType).toBe("image/png");
    const bytes = Buffer.from(image?.data ?? "", "base64");
    return [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
  };

  test("gets the usual twelve and two more", async () => {
    expect((await client.listTools()).tools).toHaveLength(14);
  });

  test("opens a screen in a workspace of its own, sees it as a picture, and uses a program there", async () => {
    const opened = await call("use_desktop", {});
    expect(pictureIn(opened)).toEqual([1280, 800]);
    const { session_id, windows, next } = opened.structuredContent as Fields;
    expect([windows, next]).toEqual([[], expect.stringContaining("Call run")]);
    const line = `xterm -T typing -geometry 80x24+100+100 -e sh -c "cat > typed.txt" >/dev/null 2>&1 & echo started`;
    expect(await use(client, "run", { session_id, command: line })).toMatchObject({ stdout: "started\n" });
    await eventually(
      () => use(client, "screenshot", { session_id }),
      (seen) => (seen["windows"] as { title: string; active: boolean }[]).some(({ title, active }) => title === "typing" && active),
    );
    const actions = [
      { do: "click", x: 300, y: 250 },
      { do: "type", text: "said in a chat\n" },
      { do: "key", keys: "ctrl+d" },
    ];
    pictureIn(await call("use_desktop", { session_id, actions }));
    await eventually(
      () => use(client, "run", { session_id, command: "cat typed.txt" }),
      ({ stdout }) => stdout === "said in a chat\n",
    );
    expect(await use(client, "use_desktop", { session_id, close: true })).toMatchObject({ status: "closed" });
    expect(await refusal(client, "screenshot", { session_id })).toContain("has no desktop");
    expect(await use(client, "cleanup_sandbox", { session_id })).toMatchObject({ status: "removed" });
  });

  test("DOC-1: does the example of docs/MCP.md", async () => {
    const [, , last] = await play(client, examplesOf("MCP.md").get("A program with windows") ?? []);
    expect(last).toMatchObject({ windows: [{ title: "notes" }] });
  });

  test("is told what is wrong with an action, and uses no screen of a sandbox that it did not make", async () => {
    const { session_id } = await use(client, "clone");
    expect(await refusal(client, "use_desktop", { session_id, actions: [{ do: "move", x: 1 }] })).toMatch(/move: y/);
    expect(await refusal(client, "use_desktop", { session_id, actions: [{ do: "key", keys: "no+such" }] })).toContain("no");
    const { id } = await lab.server.create({ name: "persons" });
    expect(await refusal(client, "use_desktop", { session_id: id })).toContain("was not made by these tools");
    expect(await refusal(client, "use_desktop", { close: true })).toContain("session_id");
  });
});
