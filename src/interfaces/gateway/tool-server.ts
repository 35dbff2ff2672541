/**
 * The tools of agents over MCP (Streamable HTTP, without sessions) at /mcp: nothing has to be installed inside. Four methods of the
 * protocol are enough for tools. A call that takes long is answered as a stream, so that clients see that it goes on.
 */
import type { ServerResponse } from "node:http";
import { z } from "zod";
import { VivError } from "../../base/schema/errors.ts";
import { GATEWAY_TOOLS_PATH } from "../../base/schema/gateway.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { AGENT_TOOLS, requestOf, type AgentTool } from "./agent-tools.ts";
import type { Routes } from "./gateway.ts";
import { parse, send, type Reply, type Request } from "./http.ts";

const Id = z.union([z.string().max(256), z.number()]);
const Envelope = z.object({
  jsonrpc: z.literal("2.0"),
  id: Id.optional(),
  method: z.string().max(256),
  params: z.record(z.string(), z.unknown()).default({}),
});
const InitializeParams = z.object({ protocolVersion: z.string().max(64) });
const CallParams = z.object({
  name: z.string().max(256),
  arguments: z.record(z.string(), z.unknown()).default({}),
  _meta: z.object({ progressToken: Id.optional() }).optional(),
});

/** Versions of the protocol whose tools are called in the same way; another one is answered with the first. */
const VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26"];
const INSTRUCTIONS =
  "Tools of the sandbox that this agent works in: siblings, the conversation so far, resources, tasks for later, questions to a person, snapshots, status.";

const [INVALID, UNKNOWN_METHOD, INTERNAL] = [-32_600, -32_601, -32_603];

type Outcome = { readonly result: unknown } | { readonly error: { readonly code: number; readonly message: string } };
/** Tells the client that its call goes on. */
type Sign = (token: string | number | undefined) => void;

export class ToolServer {
  readonly #routes: Routes;

  constructor(routes: Routes) {
    this.#routes = routes;
  }

  static isFor({ path }: Request): boolean {
    return `/${path.join("/")}` === GATEWAY_TOOLS_PATH;
  }

  async serve(sandbox: string, request: Request, response: ServerResponse): Promise<void> {
    // The other methods are for sessions and for messages that the server begins: there are none.
    if (request.method !== "POST")
      return send(response, { status: 405, body: failed(INVALID, "Only POST is answered.") }, { allow: "POST" });
    const message = Envelope.safeParse(request.body);
    if (!message.success) return send(response, { status: 400, body: failed(INVALID, "Not one request of JSON-RPC 2.0.") });
    const { id, method, params } = message.data;
    // A notification: nothing that the client tells changes what it is answered.
    if (id === undefined) return void response.writeHead(202).end();
    const stream = new Stream(response, id);
    const signs = setInterval(() => stream.sign(), LIMITS.toolSignMs);
    try {
      const outcome = await this.#answer(sandbox, method, params, request.signal, (token) => stream.watch(token));
      stream.end(outcome);
    } catch (error) {
      stream.break();
      throw error;
    } finally {
      clearInterval(signs);
    }
  }

  async #answer(sandbox: string, method: string, params: unknown, signal: AbortSignal, sign: Sign): Promise<Outcome> {
    switch (method) {
      case "initialize":
        return { result: greeting(params) };
      case "ping":
        return { result: {} };
      case "tools/list":
        return { result: { tools: (await this.#tools(sandbox, signal)).map(shown) } };
      case "tools/call":
        return this.#call(sandbox, params, signal, sign);
      default:
        return failed(UNKNOWN_METHOD, `There is no ${method.slice(0, 64)}.`);
    }
  }

  /** Those that the sandbox's role has. */
  async #tools(sandbox: string, signal: AbortSignal): Promise<AgentTool[]> {
    const { body } = await this.#routes.answer(sandbox, requestOf("GET", ["sandbox", "self", "policy"], {}, signal));
    const { tools, otherTools } = body as { tools: Readonly<Record<string, boolean>>; otherTools: boolean };
    return AGENT_TOOLS.filter(({ name, judged }) => !judged || (tools[name] ?? otherTools));
  }

  /** What goes wrong is told to the model, which can do something about it. */
  async #call(sandbox: string, params: unknown, signal: AbortSignal, sign: Sign): Promise<Outcome> {
    try {
      const { name, arguments: given, _meta } = parse(CallParams, params);
      const tool = AGENT_TOOLS.find((one) => one.name === name);
      if (tool === undefined)
        throw new VivError("not_found", `There is no tool ${name.slice(0, 64)}.`, { remedy: "tools/list names them." });
      sign(_meta?.progressToken);
      const { body } = await tool.call(
        (method, path, input = {}) => this.#routes.answer(sandbox, requestOf(method, path, input, signal)),
        parse(tool.input, given),
      );
      return { result: { content: [{ type: "text", text: JSON.stringify(body) }], structuredContent: body } };
    } catch (error) {
      const { code, message, remedy } = VivError.from(error);
      if (code === "internal") throw error;
      return { result: { content: [{ type: "text", text: `${code}: ${message} ${remedy}` }], isError: true } };
    }
  }
}

function greeting(params: unknown): unknown {
  const { protocolVersion } = parse(InitializeParams, params);
  return {
    protocolVersion: VERSIONS.includes(protocolVersion) ? protocolVersion : VERSIONS[0],
    capabilities: { tools: {} },
    serverInfo: { name: "vivarium", version: "1" },
    instructions: INSTRUCTIONS,
  };
}

function shown({ name, description, input }: AgentTool): unknown {
  // Patterns are for the server: some model APIs refuse a tool for one that they can't read.
  const override = ({ jsonSchema }: { jsonSchema: { pattern?: string } }): void => void delete jsonSchema.pattern;
  const { $schema: _, ...inputSchema } = z.toJSONSchema(input, { io: "input", override });
  return { name, description, inputSchema };
}

function failed(code: number, message: string): Outcome {
  return { error: { code, message } };
}

/** One answer: JSON if it is there soon, else a stream of events that ends with it. */
class Stream {
  readonly #response: ServerResponse;
  readonly #id: string | number;
  #token: string | number | undefined;
  #signs = 0;

  constructor(response: ServerResponse, id: string | number) {
    this.#response = response;
    this.#id = id;
  }

  watch(token: string | number | undefined): void {
    this.#token = token;
  }

  sign(): void {
    if (this.#response.destroyed) return;
    if (!this.#response.headersSent) this.#response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    this.#signs += 1;
    if (this.#token === undefined) this.#response.write(": waiting\n\n");
    else this.#event({ method: "notifications/progress", params: { progressToken: this.#token, progress: this.#signs } });
  }

  end(outcome: Outcome): void {
    if (this.#signs === 0) return send(this.#response, this.#reply(outcome));
    this.#event({ id: this.#id, ...outcome });
    this.#response.end();
  }

  /** A stream that has begun gets no other answer. */
  break(): void {
    if (this.#signs > 0) this.end(failed(INTERNAL, "The call failed."));
  }

  #reply(outcome: Outcome): Reply {
    return { status: 200, body: { jsonrpc: "2.0", id: this.#id, ...outcome } };
  }

  #event(message: Readonly<Record<string, unknown>>): void {
    if (!this.#response.destroyed) this.#response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
  }
}
