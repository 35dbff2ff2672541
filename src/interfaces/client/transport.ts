/** How a client reaches a server: over its Unix socket, or over an address with a token. */
import type { ClientRequest, IncomingMessage } from "node:http";
import { createConnection } from "node:net";
import { pipeline, Readable } from "node:stream";
import type { WebSocket } from "ws";
import { isErrorCode, VivError, type ErrorBody } from "../../base/schema/errors.ts";
import { SOCKET_PROTOCOL } from "../../base/schema/routes.ts";

export type Address = { readonly socket: string } | { readonly url: string; readonly token: string };

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly body?: string | AsyncIterable<Uint8Array>;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Imported, it would be looked at name by name, which loads fetch and more: half of the time that a small command takes. */
const { Agent, request: httpRequest } = process.getBuiltinModule("node:http");

/** Longest error body that is read. */
const MAX_ERROR_BYTES = 64 * 1024;

/** As servers of all versions say it. */
const NO_ROUTE = /^There is no such (?:WebSocket )?route\.$/;

async function readText(answer: IncomingMessage, limit = Number.POSITIVE_INFINITY): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limit) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function isErrorBody(value: unknown): value is ErrorBody {
  if (typeof value !== "object" || value === null || !("error" in value)) return false;
  const { error } = value;
  return (
    typeof error === "object" &&
    error !== null &&
    "code" in error &&
    typeof error.code === "string" &&
    isErrorCode(error.code) &&
    "message" in error
  );
}

async function errorOf(answer: IncomingMessage): Promise<VivError> {
  const text = await readText(answer, MAX_ERROR_BYTES);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  if (!isErrorBody(body)) return new VivError("server_unreachable", `The server answered with status ${answer.statusCode ?? 0}.`);
  return body.error.code === "not_found" && NO_ROUTE.test(body.error.message) ? otherVersion() : VivError.fromBody(body);
}

/** A client only asks for routes that the server of its own version has. */
function otherVersion(): VivError {
  return new VivError("unsupported", "The running server is of another version of viv, which can't do this.", {
    remedy: "Run `viv down`, then the command again: it starts a server of this version.",
  });
}

function unreachable(error: Error): VivError {
  if (error.name === "AbortError") return new VivError("cancelled", "The call was cancelled.", { cause: error });
  return new VivError("server_unreachable", `The server cannot be reached: ${error.message}.`, { cause: error });
}

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

export class Transport {
  readonly #address: Address;
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: 16 });

  constructor(address: Address) {
    this.#address = address;
  }

  /** Resolves with an answer of success; other answers are thrown as the error they carry. */
  async request(request: HttpRequest): Promise<IncomingMessage> {
    const answer = await this.#send(request);
    if ((answer.statusCode ?? 500) < 300) return answer;
    try {
      throw await errorOf(answer);
    } finally {
      // An upload that was refused early is not sent to its end. One that was sent whole has given its connection back.
      if (typeof request.body === "object") (answer.socket as IncomingMessage["socket"] | null)?.destroy();
    }
  }

  async json<Value>(request: HttpRequest): Promise<Value> {
    return JSON.parse(await readText(await this.request(request))) as Value;
  }

  #send({ method, path, body, contentType, headers, signal }: HttpRequest): Promise<IncomingMessage> {
    const target =
      "socket" in this.#address
        ? { socketPath: this.#address.socket }
        : { host: new URL(this.#address.url).hostname, port: new URL(this.#address.url).port };
    return new Promise((resolve, reject) => {
      const request = httpRequest({
        ...target,
        agent: this.#agent,
        method,
        path,
        headers: { ...this.#authorization(), ...(contentType === undefined ? {} : { "content-type": contentType }), ...headers },
        ...(signal === undefined ? {} : { signal }),
      });
      request.once("response", resolve);
      request.once("error", (error) => reject(unreachable(error)));
      if (body === undefined || typeof body === "string") request.end(body);
      // The answer may come before the end of the upload, when the server refuses it.
      else upload(body, request, reject);
    });
  }

  /** Resolves once the server has switched to a WebSocket, which is paused until its listeners are there. */
  async webSocket(path: string): Promise<WebSocket> {
    // Only some calls need it, and it brings TLS along.
    const { WebSocket } = await import("ws");
    const address = this.#address;
    const url = "socket" in address ? `ws://localhost${path}` : `${address.url.replace(/^http/, "ws").replace(/\/$/, "")}${path}`;
    const way = "socket" in address ? { createConnection: () => createConnection(address.socket) } : {};
    const socket = new WebSocket(url, SOCKET_PROTOCOL, {
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
        errorOf(answer).then(reject, reject);
      });
    });
  }

  #authorization(): Record<string, string> {
    return "token" in this.#address ? { authorization: `Bearer ${this.#address.token}` } : {};
  }

  close(): void {
    this.#agent.destroy();
  }
}
