/** How a program in Node reaches a server: over its Unix socket, or over an address with a token. */
import { Agent, request as httpRequest, type ClientRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { createConnection } from "node:net";
import { pipeline, Readable, type Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { SOCKET_PROTOCOL } from "../../base/schema/routes.ts";
import { isPlain, LocalCalls } from "./local-calls.ts";
import { Intake, sendInFlow, SocketStream, toBuffer } from "../../base/wire/wire.ts";
import {
  errorOf,
  MAX_ERROR_BYTES,
  readText,
  unreachable,
  type Answer,
  type Channel,
  type ChannelListener,
  type HttpRequest,
  type Transport,
} from "./transport.ts";

export type Address = { readonly socket: string } | { readonly url: string; readonly token: string };

/** A source that fails is not the server's fault: its own error is thrown. */
function upload(body: AsyncIterable<Uint8Array>, request: ClientRequest, reject: (error: unknown) => void): void {
  let own: unknown;
  const watched = async function* (): AsyncGenerator<Uint8Array, void, void> {
    try {
      yield* body;
    } catch (error) {
      own = error;
      throw error;
    }
  };
  pipeline(Readable.from(watched()), request, (error) => error && reject(own ?? unreachable(error)));
}

function answerOf(body: IncomingMessage): Answer<IncomingMessage> {
  const headers = new Map(
    Object.entries(body.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : (value ?? "")]),
  );
  return { status: body.statusCode ?? 500, statusText: body.statusMessage ?? "", headers, body };
}

export class NodeTransport implements Transport<IncomingMessage> {
  readonly #address: Address;
  readonly #url: URL | undefined;
  readonly #local: LocalCalls | undefined;
  #agent: Agent | undefined;

  constructor(address: Address) {
    this.#address = address;
    this.#local = "socket" in address ? new LocalCalls(address.socket) : undefined;
    this.#url = "url" in address ? new URL(address.url) : undefined;
  }

  async request(request: HttpRequest): Promise<Answer<IncomingMessage>> {
    const answer = await this.send(request);
    if (answer.status < 300) return answer;
    try {
      throw errorOf(await readText(answer.body, MAX_ERROR_BYTES), answer.status);
    } finally {
      // An upload that was refused early is not sent to its end. One that was sent whole has given its connection back.
      if (typeof request.body === "object") (answer.body.socket as IncomingMessage["socket"] | null)?.destroy();
    }
  }

  async json<Value>(request: HttpRequest): Promise<Value> {
    if (this.#local !== undefined && isPlain(request)) {
      const { status, text } = await this.#local.ask(request);
      if (status >= 300) throw errorOf(text, status);
      return JSON.parse(text) as Value;
    }
    return JSON.parse(await readText((await this.request(request)).body)) as Value;
  }

  async send({ method, path, body, contentType, headers, signal }: HttpRequest): Promise<Answer<IncomingMessage>> {
    const { target, start } = await this.#way(path);
    return new Promise((resolve, reject) => {
      const request = start({
        ...target,
        method,
        headers: { ...this.#authorization(), ...(contentType === undefined ? {} : { "content-type": contentType }), ...headers },
        ...(signal === undefined ? {} : { signal }),
      });
      request.once("response", (answer) => resolve(answerOf(answer)));
      request.once("error", (error) => reject(unreachable(error)));
      if (body === undefined || typeof body === "string") request.end(body);
      // The answer may come before the end of the upload, when the server refuses it.
      else upload(body, request, reject);
    });
  }

  async #way(path: string): Promise<{ target: RequestOptions; start: typeof httpRequest }> {
    if (this.#url?.protocol === "https:") {
      // Only an address with https needs it, and it takes long to load.
      const https = await import("node:https");
      this.#agent ??= new https.Agent({ keepAlive: true, maxFreeSockets: 16 });
      return { target: { agent: this.#agent, ...this.#place(path) }, start: https.request };
    }
    this.#agent ??= new Agent({ keepAlive: true, maxFreeSockets: 16 });
    return { target: { agent: this.#agent, ...this.#place(path) }, start: httpRequest };
  }

  #place(path: string): RequestOptions {
    if ("socket" in this.#address) return { socketPath: this.#address.socket, path };
    const { hostname = "", port = "", pathname = "/" } = this.#url ?? {};
    return { host: hostname, port, path: `${pathname.replace(/\/$/, "")}${path}` };
  }

  /** Whether the server is one of this machine, at its Unix socket. */
  get isLocal(): boolean {
    return "socket" in this.#address;
  }

  async webSocket(path: string, protocols: readonly string[] = [SOCKET_PROTOCOL]): Promise<Channel> {
    return new SocketChannel(await this.#open(path, protocols));
  }

  /** A TCP connection as the server carries it over a WebSocket. */
  async duplex(path: string): Promise<Duplex> {
    return new SocketStream(await this.#open(path, [SOCKET_PROTOCOL]));
  }

  /** Resolves once the server has switched to a WebSocket, which is paused until its listeners are there. */
  async #open(path: string, protocols: readonly string[]): Promise<WebSocket> {
    // Only some calls need it, and it brings TLS along.
    const { WebSocket } = await import("ws");
    const address = this.#address;
    const url = "socket" in address ? `ws://localhost${path}` : `${address.url.replace(/^http/, "ws").replace(/\/$/, "")}${path}`;
    const way = "socket" in address ? { createConnection: () => createConnection(address.socket) } : {};
    const socket = new WebSocket(url, [...protocols], {
      ...way,
      headers: this.#authorization(),
      perMessageDeflate: false,
      maxPayload: 16 * 1024 ** 2,
    });
    return new Promise((resolve, reject) => {
      socket.once("open", () => {
        socket.pause();
        resolve(socket);
      });
      socket.on("error", (error) => reject(unreachable(error)));
      socket.once("unexpected-response", (_request, answer) => {
        readText(answer, MAX_ERROR_BYTES).then((text) => reject(errorOf(text, answer.statusCode ?? 0)), reject);
      });
    });
  }

  #authorization(): Record<string, string> {
    return "token" in this.#address ? { authorization: `Bearer ${this.#address.token}` } : {};
  }

  close(): void {
    this.#agent?.destroy();
    this.#local?.close();
  }
}

class SocketChannel implements Channel {
  readonly #socket: WebSocket;
  readonly #intake: Intake;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    this.#intake = new Intake(socket);
  }

  get isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN;
  }

  get protocol(): string {
    return this.#socket.protocol;
  }

  send(data: string | Uint8Array): Promise<void> {
    return sendInFlow(this.#socket, data);
  }

  pause(): void {
    this.#intake.pause();
  }

  resume(): void {
    this.#intake.resume();
  }

  close(): void {
    this.#intake.resume();
    if (this.#socket.bufferedAmount > 0) this.#socket.terminate();
    else this.#socket.close(1000);
  }

  listen(listener: ChannelListener): void {
    this.#socket.on("message", (data, binary) => listener.message(binary ? toBuffer(data) : toBuffer(data).toString("utf8")));
    this.#socket.on("close", (code) => listener.close(code));
    this.#socket.resume();
  }
}
