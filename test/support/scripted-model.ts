/**
 * A model of the test: it speaks like Anthropic, OpenAI and Gemini, plays the script of the model that is asked for, and keeps what
 * it was sent. The step that it plays is as many as the turns it already has in the history: it needs no memory of its own, and a
 * conversation that is resumed, repeated or forked goes on where its history ends.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { text as readText } from "node:stream/consumers";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { anthropic } from "./models/anthropic.ts";
import { gemini } from "./models/gemini.ts";
import { chat, responses } from "./models/openai.ts";
import type { Json, Shape, StreamEvent, ToolCall, Turn, Usage } from "./models/shape.ts";

export interface Failure {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly message?: string;
}

export interface Step {
  readonly thinking?: string;
  readonly text?: string;
  readonly calls?: readonly ToolCall[];
  readonly usage?: Partial<Usage>;
  /** Before the first byte of the answer. */
  readonly delayMs?: number;
  /** The connection breaks after the first event. */
  readonly breaks?: boolean;
  /** Requests for this step get these answers first, one each; then the step plays. Of a script that is a function, only the first. */
  readonly failures?: readonly Failure[];
}

/** The steps of one model, or what chooses them. */
export type Script = readonly Step[] | ((request: ModelRequest) => Step);

export interface ModelRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Json;
  readonly model: string;
  /** How often the model spoke in the request's history. */
  readonly turn: number;
  /** Names of the tools that it may call. */
  readonly tools: readonly string[];
}

/** What a model without a script says, and a model whose script is at its end. */
const HELLO: Step = { text: "hello" };
const USAGE: Usage = { input: 1000, output: 500, thinking: 400, cacheRead: 2000 };

export class ScriptedModel {
  readonly received: ModelRequest[] = [];
  /** What it says that it has. With none it has no such calls, and plays every model. */
  offered: readonly string[] = [];
  /** A stream stays open after its first event until this resolves. */
  gate: Promise<void> = Promise.resolve();
  readonly #scripts = new Map<string, Script>();
  /** How many failures of a step were answered already, by model and step. */
  readonly #failed = new Map<string, number>();
  /** Agents take answers of the same id for pieces of one. */
  #answers = 0;
  readonly #waiting = new Set<(request: ModelRequest) => void>();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
  }

  static async open(scripts: Readonly<Record<string, Script>> = {}): Promise<ScriptedModel> {
    const model = new ScriptedModel();
    for (const [name, script] of Object.entries(scripts)) model.script(name, script);
    model.#server.listen(0, "127.0.0.1");
    await once(model.#server, "listening");
    return model;
  }

  /** What the model of this name says from now on. */
  script(model: string, script: Script): void {
    this.#scripts.set(model, script);
    for (const key of this.#failed.keys()) if (key.startsWith(`${model} `)) this.#failed.delete(key);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get last(): ModelRequest {
    const last = this.received.at(-1);
    if (last === undefined) throw new Error("the model was asked nothing");
    return last;
  }

  /** The first request like this, of those that came and those to come. */
  async waitFor(isRight: (request: ModelRequest) => boolean, withinMs = 30_000): Promise<ModelRequest> {
    const known = this.received.find(isRight);
    if (known !== undefined) return known;
    const { promise, resolve, reject } = Promise.withResolvers<ModelRequest>();
    const look = (request: ModelRequest): void => {
      if (isRight(request)) resolve(request);
    };
    const timer = setTimeout(() => reject(new Error(`the model was not asked that within ${withinMs} ms`)), withinMs);
    this.#waiting.add(look);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(look);
    }
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = await readText(incoming);
    const body = (sent === "" ? {} : JSON.parse(sent)) as Json;
    const { method = "", url = "", headers } = incoming;
    const { pathname: path } = new URL(url, "http://model");
    const fixed = fixedAnswer(path, this.offered);
    const [, asked] = /\/models\/([^/:]+)$/.exec(path) ?? [];
    const shape = shapeOf(path);
    const request: ModelRequest = {
      method,
      path: url,
      headers,
      body,
      model: modelOf(path, body),
      turn: shape?.turnsIn(body) ?? 0,
      tools: shape?.toolsOf(body) ?? [],
    };
    this.received.push(request);
    for (const look of this.#waiting) look(request);
    if (fixed !== undefined) return json(response, 200, fixed);
    if (asked !== undefined && this.offered.includes(asked)) return json(response, 200, { id: asked, name: `models/${asked}` });
    if (asked !== undefined && this.offered.length > 0) return json(response, 404, { error: { message: `model: ${asked}` } });
    if (shape === undefined) return json(response, 404, { error: { message: `the scripted model knows no ${path}` } });
    await this.#play(request, shape, response);
  }

  async #play(request: ModelRequest, shape: Shape, response: ServerResponse): Promise<void> {
    const step = this.#stepFor(request);
    const failure = this.#failureOf(request, step);
    if (step.delayMs !== undefined) await delay(step.delayMs);
    if (failure !== undefined) {
      const { status, headers, message = `scripted ${status}` } = failure;
      return json(response, status, shape.error(status, message), headers);
    }
    const turn = turnOf(request, step, `scripted_${(this.#answers += 1)}`);
    if (request.body["stream"] === true || request.path.endsWith("?alt=sse"))
      return this.#stream(response, shape.stream(turn, request.body), step.breaks === true);
    if (request.path.endsWith(":streamGenerateContent"))
      return json(
        response,
        200,
        shape.stream(turn, request.body).map(({ data }) => data),
      );
    json(response, 200, shape.whole(turn));
  }

  /** That of `*` is for every model without one of its own. */
  #scriptOf(model: string): Script | undefined {
    return this.#scripts.get(model) ?? this.#scripts.get("*");
  }

  /** A request without tools, of a script that calls some, is one that the agent makes beside its work: for a title or a summary. */
  #stepFor(request: ModelRequest): Step {
    const script = this.#scriptOf(request.model) ?? [];
    if (typeof script === "function") return script(request);
    if (request.tools.length === 0 && script.some(({ calls }) => calls !== undefined)) return HELLO;
    return script[request.turn] ?? HELLO;
  }

  #failureOf({ model, turn }: ModelRequest, { failures = [] }: Step): Failure | undefined {
    if (typeof this.#scriptOf(model) === "function") return failures[0];
    const key = `${model} ${turn}`;
    const failed = this.#failed.get(key) ?? 0;
    if (failed >= failures.length) return undefined;
    this.#failed.set(key, failed + 1);
    return failures[failed];
  }

  async #stream(response: ServerResponse, events: readonly StreamEvent[], breaks: boolean): Promise<void> {
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    for (const [index, { name, data }] of events.entries()) {
      if (index === 1) await this.gate;
      if (index === 1 && breaks) return void response.destroy();
      const line = `${name === undefined ? "" : `event: ${name}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
      // On its way before the connection may break.
      await new Promise((resolve) => void response.write(line, resolve));
    }
    response.end();
  }
}

function shapeOf(path: string): Shape | undefined {
  if (path.endsWith("/messages")) return anthropic;
  if (path.endsWith("/chat/completions")) return chat;
  if (path.endsWith("/responses")) return responses;
  return /:(?:streamG|g)enerateContent$/.test(path) ? gemini : undefined;
}

function fixedAnswer(path: string, offered: readonly string[]): Json | undefined {
  if (path.endsWith("/messages/count_tokens")) return { input_tokens: USAGE.input };
  if (path.endsWith(":countTokens")) return { totalTokens: USAGE.input };
  const [data, models] = [offered.map((id) => ({ id })), offered.map((name) => ({ name: `models/${name}` }))];
  return path.endsWith("/models") ? { data, models } : undefined;
}

function modelOf(path: string, body: Json): string {
  const [, inPath] = /\/models\/([^/:]+):/.exec(path) ?? [];
  const { model } = body;
  return inPath ?? (typeof model === "string" ? model : "");
}

function turnOf({ model }: ModelRequest, { thinking, text, calls = [], usage }: Step, id: string): Turn {
  const named = calls.map((call, index) => ({ ...call, id: `call_${id}_${index}` }));
  return { id, model, thinking, text, calls: named, usage: { ...USAGE, ...usage } };
}

function json(response: ServerResponse, status: number, body: object, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(status, { "content-type": "application/json", "request-id": "req_scripted", ...headers });
  response.end(JSON.stringify(body));
}
