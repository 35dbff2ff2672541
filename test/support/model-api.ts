/** A model API of the test: speaks like Anthropic and like OpenAI, whole answers and streams, and keeps what it was sent. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import type { AddressInfo } from "node:net";

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, unknown>;
}

const ANTHROPIC_USAGE = { input_tokens: 1000, cache_creation_input_tokens: 0, cache_read_input_tokens: 2000, output_tokens: 1 };

export class ModelApi {
  readonly received: Received[] = [];
  /** A stream stays open after its first events until this resolves. */
  gate: Promise<void> = Promise.resolve();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
  }

  static async open(): Promise<ModelApi> {
    const api = new ModelApi();
    api.#server.listen(0, "127.0.0.1");
    await once(api.#server, "listening");
    return api;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get last(): Received {
    const last = this.received.at(-1);
    if (last === undefined) throw new Error("nothing was received");
    return last;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = await text(request);
    const body = (sent === "" ? {} : JSON.parse(sent)) as Record<string, unknown>;
    const { method = "", url: path = "", headers } = request;
    this.received.push({ method, path, headers, body });
    if (body["model"] === "echo") return json(response, 401, { error: { message: `bad key ${JSON.stringify(headers)}` } }, headers);
    if (body["model"] === "elsewhere") return void response.writeHead(307, { location: "http://127.0.0.1:1/" }).end();
    if (path.startsWith("/v1/messages")) return this.#messages(body, response);
    if (path === "/v1/chat/completions") return this.#chat(body, response);
    if (path === "/v1/responses") return this.#responses(body, response);
    if (path === "/v1/models") return json(response, 200, { data: [] });
    json(response, 404, { error: { message: "no such path" } });
  }

  async #messages(body: Record<string, unknown>, response: ServerResponse): Promise<void> {
    if (body["stream"] !== true)
      return json(response, 200, {
        type: "message",
        model: body["model"],
        content: [{ type: "text", text: "hello" }],
        usage: { ...ANTHROPIC_USAGE, output_tokens: 500 },
      });
    await this.#stream(response, [
      { type: "message_start", message: { usage: ANTHROPIC_USAGE } },
      { type: "content_block_delta", delta: { type: "text_delta", text: "hello" } },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 500 } },
      { type: "message_stop" },
    ]);
  }

  async #chat(body: Record<string, unknown>, response: ServerResponse): Promise<void> {
    const usage = { prompt_tokens: 3000, completion_tokens: 500, prompt_tokens_details: { cached_tokens: 2000 } };
    if (body["stream"] !== true) return json(response, 200, { choices: [{ message: { content: "hello" } }], usage });
    const { include_usage: wanted } = (body["stream_options"] ?? {}) as { include_usage?: boolean };
    await this.#stream(response, [
      { choices: [{ delta: { content: "hel" } }] },
      { choices: [{ delta: { content: "lo" } }] },
      ...(wanted === true ? [{ choices: [], usage }] : []),
      "[DONE]",
    ]);
  }

  async #responses(body: Record<string, unknown>, response: ServerResponse): Promise<void> {
    const usage = { input_tokens: 3000, output_tokens: 500, input_tokens_details: { cached_tokens: 2000 } };
    if (body["stream"] !== true) return json(response, 200, { output: [], usage });
    await this.#stream(response, [
      { type: "response.output_text.delta", delta: "hello" },
      { type: "response.completed", response: { usage } },
    ]);
  }

  /** The first event goes out at once, the others once the gate is open. */
  async #stream(response: ServerResponse, events: readonly (object | string)[]): Promise<void> {
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    for (const [index, event] of events.entries()) {
      if (index === 1) await this.gate;
      const type = typeof event === "object" && "type" in event ? `event: ${String(event.type)}\n` : "";
      response.write(`${type}data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`);
    }
    response.end();
  }
}

function json(response: ServerResponse, status: number, body: object, echoed?: IncomingMessage["headers"]): void {
  const id = echoed === undefined ? "req-1" : String(echoed["x-api-key"] ?? echoed.authorization ?? "");
  response.writeHead(status, { "content-type": "application/json", "request-id": id, "set-cookie": "a=b" });
  response.end(JSON.stringify(body));
}
