/** MCP-1 over Streamable HTTP: the same tools at /mcp, behind the same guard as the rest of the API. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request, type IncomingMessage } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import { text as readText } from "node:stream/consumers";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { ChatLab, refusal, use, type Fields } from "../support/agents/chat-lab.ts";
import { ERAS, negotiation, type Era } from "../support/mcp-client.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const MB = 1024 ** 2;

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

describe("a chat client over HTTP", needs("root"), () => {
  let lab: ChatLab;
  let url: string;
  let token: string;
  const clients: Client[] = [];
  beforeAll(async () => {
    const port = await freePort();
    lab = await ChatLab.open({ flags: ["--listen", String(port)], env: { PATH: ChatLab.path } });
    url = `http://127.0.0.1:${port}/mcp`;
    token = (
      await eventually(
        async () => readFileSync(lab.server.paths.token, "utf8"),
        (text) => text !== "",
      )
    ).trim();
  });
  afterAll(async () => {
    for (const client of clients) await client.close();
    await lab?.remove();
  });

  async function connect(
    era: Era,
    headers: Readonly<Record<string, string>> = {},
    person?: () => { action: "accept"; content: { allow: boolean } },
  ): Promise<Client> {
    const client = new Client(
      { name: "a-test", version: "1" },
      { ...negotiation(era), capabilities: person === undefined ? {} : { elicitation: {} } },
    );
    if (person !== undefined) client.setRequestHandler("elicitation/create", () => person());
    await client.connect(
      new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization: `Bearer ${token}`, ...headers } } }),
    );
    clients.push(client);
    return client;
  }

  test("MCP-1: gets the tools that its address names", async () => {
    const names = async (query: string): Promise<string[]> => {
      const client = new Client({ name: "a-test", version: "1" }, negotiation("modern"));
      await client.connect(
        new StreamableHTTPClientTransport(new URL(`${url}${query}`), { requestInit: { headers: { authorization: `Bearer ${token}` } } }),
      );
      clients.push(client);
      return (await client.listTools()).tools.map(({ name }) => name);
    };
    expect(await names("")).toHaveLength(12);
    expect(await names("?tools=notebook,list")).toEqual(["list", "python", "python_context"]);
    const refused = await fetch(`${url}?tools=nonsense`, { method: "POST", headers: { authorization: `Bearer ${token}` } });
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("There is no tool")]);
  });

  test.for(ERAS)("MCP-1: has a task done, with progress (%s)", async (era) => {
    const client = await connect(era);
    const told: string[] = [];
    const answer = await client.callTool(
      { name: "execute_task", arguments: { task_description: "call echo hi > a.txt\ntext said", files: [{ path: "in.txt", text: "x" }] } },
      { onprogress: ({ message = "" }) => told.push(message) },
    );
    expect(answer.structuredContent).toMatchObject({
      status: "completed",
      files_created: ["a.txt"],
      output: expect.stringContaining("said"),
    });
    expect(told).not.toEqual([]);
    const { session_id } = answer.structuredContent as Fields;
    expect(await use(client, "download_files", { session_id })).toMatchObject({ files: [{ path: "a.txt" }] });
    await expect(use(client, "download_files", { session_id, save: true })).rejects.toThrow(/on the person's own machine/);
  });

  test("MCP-1: cancels by going away where the protocol says so (2026-07-28)", async () => {
    const client = await connect("modern");
    const cancel = new AbortController();
    const calling = client.callTool(
      { name: "execute_task", arguments: { task_description: "call echo cancelled > here.txt\nhold never" } },
      { signal: cancel.signal, onprogress: ({ message = "" }) => message.includes("here.txt") && cancel.abort("escape") },
    );
    await expect(calling).rejects.toThrow();
    const { runs } = await eventually(
      () => lab.server.client.call("listRuns", {}),
      ({ runs: [run] }) => run?.endedAt !== null && run?.task.includes("here.txt") === true,
    );
    expect(runs[0]).toMatchObject({ outcome: "cancelled" });
  });

  test("MCP-1: speaks the protocol of 2025-06-18 where it knows no newer one", async () => {
    const ask = async (id: number, method: string, params: object): Promise<Fields> => {
      const answer = await fetch(url, {
        method: "POST",
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          ...(id === 1 ? {} : { "mcp-protocol-version": "2025-06-18" }),
        },
        body: JSON.stringify({ jsonrpc: "2.0", id, method, params }),
      });
      expect(answer.status).toBe(200);
      const text = await answer.text();
      const json = /^data: (.*)$/m.exec(text)?.[1] ?? text;
      return (JSON.parse(json) as { result: Fields }).result;
    };
    const hello = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "old", version: "1" } };
    expect(await ask(1, "initialize", hello)).toMatchObject({ protocolVersion: "2025-06-18" });
    expect((await ask(2, "tools/list", {}))["tools"]).toHaveLength(12);
    const done = await ask(3, "tools/call", { name: "execute_task", arguments: { task_description: "call echo hi > a.txt" } });
    expect(done["structuredContent"]).toMatchObject({ status: "completed", files_created: ["a.txt"] });
  });

  test.for(ERAS)("MCP-3: is told that a file of 100 MB is too large, and by which limit (%s)", async (era) => {
    const client = await connect(era);
    const said = await refusal(client, "execute_task", {
      task_description: "text x",
      files: [{ path: "big.bin", content: Buffer.alloc(100 * MB).toString("base64") }],
    });
    expect(said).toContain("100 MB; a file is 32 MB at most");
    expect(said).toContain("execute_task again");
  });

  test.for<[string, boolean]>([
    ["says so before", true],
    ["does not say so before", false],
  ])("MCP-3: is told the limits where its message is too long, and it %s", async ([, isSaid]) => {
    const length = LIMITS.maxToolMessageBytes + MB;
    const sent = request(url, {
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...(isSaid ? { "content-length": String(length) } : {}),
      },
    });
    // The server may answer and close before all of it was sent.
    sent.on("error", () => undefined);
    const answered = once(sent, "response") as Promise<[IncomingMessage]>;
    const piece = Buffer.alloc(MB, 0x20);
    for (let count = 0; count < length / MB && sent.writable; count += 1)
      if (!sent.write(piece)) await Promise.race([once(sent, "drain"), answered]);
    sent.end();
    const [answer] = await answered;
    expect(answer.statusCode).toBe(413);
    const { error } = JSON.parse(await readText(answer)) as { error: { message: string } };
    expect(error.message).toMatch(/larger than 256 MB.*32 MB at most.*execute_task again/);
    sent.destroy();
  });

  test("POL-5: brings a person's answers only with the approver's token", async () => {
    const question = { task_description: "call node -p 7 > tried.txt", yolo_level: 1 };
    let asked = 0;
    const person = () => ((asked += 1), { action: "accept" as const, content: { allow: true } });
    const allowed = await connect("modern", { "viv-approver": lab.server.approver() }, person);
    expect(await use(allowed, "execute_task", question)).toMatchObject({ status: "completed", files_created: ["tried.txt"] });
    expect(asked).toBe(1);
    const wrong = await connect("modern", { "viv-approver": "guessed" }, person);
    await expect(use(wrong, "execute_task", question)).rejects.toThrow(/Only an approver/);
    const { approvals } = await lab.server.client.call("listApprovals", {});
    expect(approvals).toHaveLength(1);
  });

  test.for<[string, Readonly<Record<string, string>>, number]>([
    ["no token", { authorization: "" }, 401],
    ["a wrong token", { authorization: "Bearer no" }, 401],
    ["another origin", { origin: "https://evil.example" }, 403],
    ["a page of another origin", { "sec-fetch-site": "cross-site" }, 403],
  ])("AP-03, AP-04: is refused with %s", async ([, headers, status]) => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
    const send = (more: Readonly<Record<string, string>>): Promise<Response> =>
      fetch(url, {
        method: "POST",
        body,
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          ...more,
        },
      });
    expect((await send(headers)).status).toBe(status);
    expect((await send({})).status).toBe(200);
  });
});
