/** The tools of agents over MCP, asked by the protocol's own client and by raw requests. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as rest } from "node:timers/promises";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { VivError } from "../../src/base/schema/errors.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { AGENT_TOOLS } from "../../src/interfaces/gateway/agent-tools.ts";
import type { Routes } from "../../src/interfaces/gateway/gateway.ts";
import { readRequest, refuse, type Reply, type Request } from "../../src/interfaces/gateway/http.ts";
import { ToolServer } from "../../src/interfaces/gateway/tool-server.ts";

const WORKER = { tools: { write: true }, otherTools: true };
const REVIEWER = { tools: { read: true }, otherTools: false };

let server: Server;
let asked: Pick<Request, "method" | "path" | "query" | "body">[];
let answers: (request: Request) => Promise<Reply>;
let policy: object;

const routes: Routes = {
  modelAnswered: () => undefined,
  admit: () => undefined,
  forget: () => undefined,
  answer: async (_, request) => {
    if (request.path.at(-1) === "policy") return { status: 200, body: policy };
    const { method, path, query, body } = request;
    asked.push({ method, path, query, body });
    return answers(request);
  },
};

beforeAll(async () => {
  server = createServer((message, response) => {
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    readRequest(message, gone.signal)
      .then((request) => new ToolServer(routes).serve("sbx", request, response))
      .catch((error: unknown) => refuse(response, VivError.from(error)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterAll(() => server.close());
beforeEach(() => {
  asked = [];
  policy = WORKER;
  answers = async () => ({ status: 200, body: { ok: true } });
});

const url = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;

async function connected(mode?: "auto" | "legacy"): Promise<Client> {
  const client = new Client({ name: "test", version: "1" }, mode === undefined ? {} : { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url())));
  return client;
}

async function post(body: unknown): Promise<{ status: number; text: string }> {
  const sent = typeof body === "string" ? body : JSON.stringify(body);
  const answer = await fetch(url(), { method: "POST", body: sent, headers: { "content-type": "application/json" } });
  return { status: answer.status, text: await answer.text() };
}

describe("tools over MCP", () => {
  test.each(["auto", "legacy"] as const)("the protocol's own client connects and lists them (%s)", async (mode) => {
    const client = await connected(mode);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(AGENT_TOOLS.map(({ name }) => name));
    const create = tools.find(({ name }) => name === "create_task");
    expect(create?.inputSchema).toMatchObject({ type: "object", required: ["title"] });
    expect(JSON.stringify(tools)).not.toContain("pattern");
    await client.close();
  });

  test("all of them together cost a model little", async () => {
    const client = await connected();
    // About four characters are a token: a tenth of what the median server costs is a measure, half of it the bound.
    expect(JSON.stringify(await client.listTools()).length / 4).toBeLessThan(1_300);
    await client.close();
  });

  test("a role sees those that it has", async () => {
    policy = REVIEWER;
    const client = await connected();
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["sibling_requests", "answer_sibling", "read_conversation", "ask_person", "status"]);
    await client.close();
  });

  test("COORD-2: a call is a request of the gateway, with the values that hold where none are given", async () => {
    const client = await connected();
    await client.callTool({ name: "create_task", arguments: { title: "Rename it" } });
    await client.callTool({ name: "coordinate_sibling", arguments: { targetSandboxId: "two", action: "review" } });
    await client.callTool({ name: "request_resources", arguments: { memory: "8Gi" } });
    await client.callTool({ name: "snapshot", arguments: {} });
    await client.callTool({ name: "roll_back", arguments: { snapshot: "before" } });
    await client.callTool({ name: "sibling_requests", arguments: { wait: 5 } });
    await client.callTool({ name: "answer_sibling", arguments: { message: "msg1", answer: "fine" } });
    expect(asked.map(({ method, path, query, body }) => [method, path.join("/"), body ?? query])).toEqual([
      ["POST", "sandbox/self/tasks", { title: "Rename it", description: "", priority: "medium" }],
      ["POST", "sandbox/two/coordinate", { action: "review", context: "", conversation: false, timeout: 300 }],
      ["POST", "sandbox/self/resources", { memory: "8Gi" }],
      ["POST", "sandbox/self/snapshots", {}],
      ["POST", "sandbox/self/rollback", { snapshot: "before" }],
      ["GET", "sandbox/self/messages", { wait: "5" }],
      ["POST", "sandbox/self/messages/msg1/answer", { answer: "fine" }],
    ]);
    await client.close();
  });

  test("a question waits for its answer", async () => {
    answers = async ({ method }) => ({ status: 200, body: { id: "apv1", state: method === "GET" ? "approved" : "waiting" } });
    const client = await connected();
    const { structuredContent } = await client.callTool({ name: "ask_person", arguments: { question: "Drop the table?", wait: 20 } });
    expect(structuredContent).toEqual({ id: "apv1", state: "approved" });
    expect(asked[0]?.body).toEqual({ kind: "tool", target: "Drop the table?", reason: "" });
    expect(asked[1]).toMatchObject({ path: ["sandbox", "self", "approvals", "apv1"], query: { wait: "20" } });
    await client.close();
  });

  test("what is refused is told to the model, with what to do", async () => {
    answers = () => Promise.reject(new VivError("denied", "A worker has no snapshot."));
    const client = await connected();
    const refused = await client.callTool({ name: "snapshot", arguments: {} });
    expect(refused).toMatchObject({ isError: true });
    expect(JSON.stringify(refused.content)).toContain("denied: A worker has no snapshot.");
    const wrong = await client.callTool({ name: "create_task", arguments: { title: "", odd: 1 } });
    expect(JSON.stringify(wrong.content)).toContain("invalid_input");
    const unknown = await client.callTool({ name: "rm_rf", arguments: {} });
    expect(JSON.stringify(unknown.content)).toContain("not_found");
    expect(asked).toHaveLength(1);
    await client.close();
  });

  test("a long call shows progress, and is given up when its caller is gone", async () => {
    vi.spyOn(LIMITS as { toolSignMs: number }, "toolSignMs", "get").mockReturnValue(50);
    try {
      const client = await connected();
      const signs: number[] = [];
      answers = async () => {
        await rest(400);
        return { status: 200, body: { answer: "late" } };
      };
      const call = { name: "coordinate_sibling", arguments: { targetSandboxId: "two", action: "review" } };
      const late = await client.callTool(call, { onprogress: ({ progress }) => void signs.push(progress) });
      expect(late.structuredContent).toEqual({ answer: "late" });
      expect(signs.length).toBeGreaterThan(2);
      const { promise, resolve } = Promise.withResolvers<void>();
      answers = ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => (resolve(), reject(new Error("gone")))));
      const giveUp = new AbortController();
      const given = client.callTool(call, { signal: giveUp.signal });
      setTimeout(() => giveUp.abort(), 150);
      await expect(given).rejects.toThrow();
      await client.close();
      await promise;
    } finally {
      vi.restoreAllMocks();
    }
  });

  test("what is not a request of the protocol is refused, and costs nothing", async () => {
    for (const body of ["[]", "{", "null", '"x"', "[{}]", { method: "ping", id: 1 }, { jsonrpc: "2.0", id: {}, method: "ping" }])
      expect((await post(body)).status, JSON.stringify(body)).toBe(400);
    expect((await post({ jsonrpc: "2.0", id: 1, method: "resources/list" })).text).toContain("-32601");
    expect((await post({ jsonrpc: "2.0", method: "notifications/initialized" })).status).toBe(202);
    expect((await fetch(url())).status).toBe(405);
    expect((await fetch(url(), { method: "DELETE" })).status).toBe(405);
    expect(
      (await post({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "status", arguments: { x: "y".repeat(300_000) } } }))
        .status,
    ).toBe(413);
    expect(asked).toEqual([]);
  });
});
