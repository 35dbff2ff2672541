/** MCP-1 over Streamable HTTP: the same tools at /mcp, behind the same guard as the rest of the API. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ChatLab, use, type Fields } from "../support/agents/chat-lab.ts";
import { ERAS, negotiation, type Era } from "../support/mcp-client.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

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
