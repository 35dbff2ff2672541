/** IDE-1, MCP-1: code piece by piece for chat clients, with the machine's Jupyter. */
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ChatLab, refusal, use, type Fields } from "../support/agents/chat-lab.ts";
import { examplesOf, play, png } from "../support/mcp-examples.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const PICTURE = png(4, 4).toString("base64");

describe("a chat client with the tools for Python (IDE-1, MCP-1)", needs("root", "jupyter"), () => {
  let lab: ChatLab;
  let client: Client;
  let session_id: unknown;
  beforeAll(async () => {
    lab = await ChatLab.open();
    client = await lab.client({ words: ["--tools", "default,notebook"] });
  });
  afterAll(async () => lab?.remove());

  test("runs code in a workspace of its own, and finds its variables at the next call", async () => {
    const first = await use(client, "python", { code: "x = 41\nprint('hello')" });
    expect(first).toMatchObject({ status: "completed", context: "main", output: "hello" });
    ({ session_id } = first);
    expect(await use(client, "python", { session_id, code: "x + 1" })).toMatchObject({ session_id, output: "42" });
    const failed = await use(client, "python", { session_id, code: "x / 0" });
    expect(failed).toMatchObject({ status: "failed", output: expect.stringContaining("ZeroDivisionError") });
    expect(await use(client, "python", { session_id, code: "open('made.txt', 'w').write('1')" })).toMatchObject({ status: "completed" });
    expect(await use(client, "get_sandbox_status", { session_id })).toMatchObject({ files_created: ["made.txt"] });
  });

  test("gets charts as pictures, and no content that only says that it is one", async () => {
    const code = `from IPython.display import Image, display
import base64
display({"image/png": "${Buffer.from("no picture").toString("base64")}"}, raw=True)
display(Image(data=base64.b64decode("${PICTURE}")))
print("\\x1b[2J\\u202e")`;
    const answer = await client.callTool({ name: "python", arguments: { session_id, code } });
    expect(answer.content.filter((part) => part.type === "image")).toEqual([{ type: "image", mimeType: "image/png", data: PICTURE }]);
    expect(answer.structuredContent).toMatchObject({ status: "completed", pictures_left_out: 1 });
    expect((answer.structuredContent as Fields)["output"], "what moves cursors or hides is shown").toContain("\\u{1b}[2J\\u{202e}");
  });

  test("gets a handle for code that takes long, waits for it, and interrupts and restarts it", async () => {
    const hasty = await lab.client({ words: ["--tools", "default,notebook", "--answer-within", "1s"] });
    const code = "import os, time\nprint('begun', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.05)\n'over'";
    const started = await use(hasty, "python", { session_id, code });
    expect(started).toMatchObject({ status: "running", next: expect.stringContaining("Call wait with session_id") });
    const told: string[] = [];
    const waiting = client.callTool(
      { name: "wait", arguments: { session_id: started["session_id"] } },
      { onprogress: ({ message = "" }) => told.push(message) },
    );
    await eventually(
      async () => told.length,
      (count) => count > 0,
    );
    await use(client, "run", { session_id, command: "touch go" });
    expect((await waiting).structuredContent).toMatchObject({ status: "completed", output: "begun\n'over'" });
    const endless = await use(hasty, "python", { session_id, code: "time.sleep(600)" });
    expect(await use(client, "python_context", { session_id, do: "interrupt" })).toMatchObject({ status: "interrupted" });
    expect(await use(client, "wait", { session_id: endless["session_id"] })).toMatchObject({ status: "interrupted" });
    expect(await use(client, "python", { session_id, code: "x" })).toMatchObject({ output: "41" });
    await use(client, "python_context", { session_id, do: "restart" });
    expect(await use(client, "python", { session_id, code: "x" })).toMatchObject({ status: "failed" });
    expect(await use(client, "python_context", { session_id, do: "list" })).toMatchObject({ contexts: [{ name: "main" }] });
  });

  test("ends code by cancelling the call, and goes on with the files of a task", async () => {
    const cancel = new AbortController();
    const calling = client.callTool(
      { name: "python", arguments: { session_id, code: "kept = 1\nprint('on', flush=True)\nimport time; time.sleep(600)" } },
      { signal: cancel.signal, onprogress: ({ message = "" }) => message.includes("on") && cancel.abort("The person pressed escape") },
    );
    await expect(calling).rejects.toThrow();
    await eventually(
      () => use(client, "python_context", { session_id, do: "list" }),
      ({ contexts }) => (contexts as { state: string }[]).every(({ state }) => state === "idle"),
    );
    expect(await use(client, "python", { session_id, code: "kept" })).toMatchObject({ output: "1" });
    const done: Fields = await use(client, "execute_task", { task_description: "call echo 1,2 > data.csv" });
    const read = await use(client, "python", { session_id: done["session_id"], code: "open('data.csv').read()" });
    expect(read).toMatchObject({ status: "completed", output: "'1,2\\n'" });
  });

  test("DOC-1: does the example of docs/MCP.md", async () => {
    const answers = await play(client, examplesOf("MCP.md").get("Numbers, step by step") ?? []);
    expect(answers).toMatchObject([{ output: "410" }, { output: "'north'" }]);
  });

  test("runs no code in a sandbox that it did not make", async () => {
    const { id } = await lab.server.create({ name: "persons" });
    expect(await refusal(client, "python", { session_id: id, code: "1" })).toContain("was not made by a chat");
    expect(await refusal(client, "python", { session_id, code: "1", context: "No Name" })).toContain("context");
  });
});
