/**
 * TLS that is opened because a secret belongs to the host: the client speaks with a certificate of our own, the host is verified as
 * ever, and only headers are touched. Each request is sent to the address that the gate has checked.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { request as requestTls, type RequestOptions } from "node:https";
import type { Socket } from "node:net";
import { createSecureContext, TLSSocket } from "node:tls";
import type { Duplex } from "node:stream";
import { LIMITS } from "../schema/limits.ts";
import type { Session } from "./session.ts";

export interface InterceptedRequest {
  readonly host: string;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
}

export interface Interceptor {
  /** Whether a secret is put into requests to this host. */
  wants(host: string): boolean;
  credentials(host: string): { readonly key: string; readonly cert: string };
  /** A header's value with secrets in place of placeholders. */
  fill(request: InterceptedRequest, name: string, value: string): string;
}

interface Way {
  readonly session: Session;
  readonly host: string;
  readonly port: number;
  /** Checked by the gate. */
  readonly address: string;
  /** Whether the rules still let it through. */
  readonly allowed: () => boolean;
}

const HOP = /^(connection|proxy-.*|keep-alive|te|trailer|transfer-encoding|upgrade|expect|http2-settings)$/i;
/** They would send back what was put in. */
const ECHOING = new Set(["TRACE", "TRACK"]);

export class Interception {
  readonly #interceptor: Interceptor;
  readonly #server: Server;
  readonly #ways = new WeakMap<Duplex, Way>();

  constructor(interceptor: Interceptor) {
    this.#interceptor = interceptor;
    this.#server = createServer({ maxHeaderSize: LIMITS.egressHeadBytes, headersTimeout: LIMITS.egressHeadMs, requestTimeout: 0 });
    this.#server.on("request", (request, response) => this.#forward(request, response));
    this.#server.on("upgrade", (_, socket) => socket.destroy());
    this.#server.on("clientError", (_, socket) => socket.destroy());
  }

  wants(host: string): boolean {
    return this.#interceptor.wants(host);
  }

  /** Takes over a client whose first bytes, a greeting for this host, were read already. */
  take(client: Socket, first: Buffer, way: Way): void {
    client.unshift(first);
    const secureContext = createSecureContext({ ...this.#interceptor.credentials(way.host), minVersion: "TLSv1.2" });
    const inner = new TLSSocket(client, { isServer: true, secureContext, ALPNProtocols: ["http/1.1"] });
    inner.on("error", () => client.destroy());
    inner.setTimeout(LIMITS.egressIdleMs, () => client.destroy());
    this.#ways.set(inner, way);
    this.#server.emit("connection", inner);
  }

  #forward(request: IncomingMessage, response: ServerResponse): void {
    const way = this.#ways.get(request.socket);
    const { method = "GET", url = "" } = request;
    if (way === undefined) return void request.socket.destroy();
    const named = (request.headers.host ?? "").toLowerCase();
    if (!way.allowed() || ECHOING.has(method) || !url.startsWith("/") || (named !== way.host && named !== `${way.host}:${way.port}`))
      return void response.writeHead(403, { connection: "close" }).end();
    const { session, host, port, address } = way;
    const to: InterceptedRequest = { host, method, path: url.replace(/[?#].*$/s, "") };
    const options: RequestOptions = {
      host: address,
      port,
      servername: host,
      method,
      path: url,
      headers: this.#headers(request, to),
      agent: false,
      setHost: false,
      rejectUnauthorized: true,
      timeout: LIMITS.egressIdleMs,
    };
    const sent = requestTls(options, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage, passed(answer.rawHeaders));
      answer.on("error", () => response.destroy());
      answer.pipe(response);
    });
    const cut = (): void => {
      sent.destroy();
      response.destroy();
    };
    sent.on("socket", (socket) => session.begin({ host, port, outside: socket, cut }));
    sent.on("timeout", cut);
    sent.on("error", (error: NodeJS.ErrnoException) => {
      if (response.headersSent) return void response.destroy();
      response.writeHead(502, { "content-type": "text/plain", connection: "close" });
      response.end(`${host} can't be reached, or is not who it says: ${error.code ?? "the connection broke off"}\n`);
    });
    response.once("close", () => sent.destroy());
    request.pipe(sent);
  }

  #headers(request: IncomingMessage, to: InterceptedRequest): string[] {
    const raw = passed(request.rawHeaders);
    const filled = raw.map((text, index) => (index % 2 === 0 ? text : this.#interceptor.fill(to, raw[index - 1] ?? "", text)));
    return [...filled, ...(request.headers["transfer-encoding"] === undefined ? [] : ["Transfer-Encoding", "chunked"])];
  }
}

/** Names and values in turn, without what is between neighbours. */
function passed(raw: readonly string[]): string[] {
  return raw.filter((_, index) => !HOP.test(raw[index - (index % 2)] ?? ""));
}
