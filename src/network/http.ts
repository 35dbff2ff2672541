/**
 * The proxy's HTTP: absolute requests and CONNECT. Node's parser is the strict one, and every message is written anew, so
 * that what was decided on is what is sent. Each request of a connection is decided by itself.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Readable, Transform, type Duplex } from "node:stream";
import { LIMITS } from "../schema/limits.ts";
import { answerTo, rawAnswer } from "./answers.ts";
import { changesSomething, readHeld, type EffectDesk } from "./effects.ts";
import type { Gate, Question } from "./gate.ts";
import { parseAuthority, shownHost, type Authority } from "./host.ts";
import type { Outside } from "./outside.ts";
import { ResponseReader } from "./response.ts";
import { deny, type Allowed, type Denied } from "./rules.ts";
import type { Session } from "./session.ts";
import { lastWord } from "./streams.ts";
import { tunnel } from "./tunnel.ts";

interface Guest {
  readonly session: Session;
  /** Set when the connection leads to this host alone: it is not spoken to as a proxy. */
  readonly only?: Authority;
  /** Of the tunnel in which it speaks: its first request needs no second answer of a person. */
  leave?: Allowed | undefined;
  timer?: NodeJS.Timeout;
}

/** Headers that are between two neighbours (RFC 9110, 7.6.1), and what is for the proxy alone. */
const HOP = new Set([
  "connection",
  "proxy-connection",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
  "expect",
  "proxy-authorization",
  "proxy-authenticate",
]);

export class HttpProxy {
  readonly #gate: Gate;
  readonly #effects: EffectDesk | undefined;
  readonly #server: Server;
  readonly #guests = new WeakMap<Duplex, Guest>();

  constructor(gate: Gate, effects?: EffectDesk) {
    this.#gate = gate;
    this.#effects = effects;
    this.#server = createServer({
      maxHeaderSize: LIMITS.egressHeadBytes,
      keepAliveTimeout: LIMITS.egressHeadMs,
      requestTimeout: 0,
      headersTimeout: 0,
    });
    this.#server.on("request", (request, response) => void this.#request(request, response));
    this.#server.on(
      "connect",
      (request: IncomingMessage, socket: Duplex, head: Buffer) => void this.#connect(request, socket as Socket, head),
    );
    this.#server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => this.#malformed(error, socket as Socket));
  }

  /** Speaks HTTP with a client, whose first bytes were read already. */
  take(session: Session, client: Socket, head: Buffer, only?: Authority, ruling?: Allowed): void {
    const guest: Guest = only === undefined ? { session } : { session, only };
    if (ruling?.approval !== undefined) guest.leave = ruling;
    this.#guests.set(client, guest);
    this.#await(client, guest);
    client.once("close", () => clearTimeout(guest.timer));
    client.unshift(head);
    this.#server.emit("connection", client);
    client.resume();
  }

  /** The head of the next request must come in time, byte by byte or not. */
  #await(client: Duplex, guest: Guest): void {
    clearTimeout(guest.timer);
    if (!client.destroyed) guest.timer = setTimeout(() => client.destroy(), LIMITS.egressHeadMs);
  }

  async #request(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const guest = this.#guests.get(request.socket);
    if (guest === undefined) return void request.socket.destroy();
    clearTimeout(guest.timer);
    response.once("close", () => this.#await(request.socket, guest));
    response.on("error", () => request.socket.destroy());
    try {
      await this.#forward(guest, request, response);
    } catch {
      // The client is gone, or what it sent could not be sent on: nothing is left to say.
      request.socket.destroy();
    }
  }

  async #forward(guest: Guest, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { session, only, leave } = guest;
    const target = targetOf(request, only);
    if (typeof target === "string") return answer(response, malformed(target));
    const { host, port, path } = target;
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const question = { host, port, protocol: "http", method: request.method ?? "GET", path } as const;
    guest.leave = undefined;
    const ruling = leave ?? (await this.#gate.permit(session, question, gone.signal));
    if (ruling.verdict === "deny") return answer(response, ruling);
    const body = await this.#effect(session, question, { request, response, signal: gone.signal });
    if ("verdict" in body) return answer(response, body);
    const opened = await this.#gate.connect(session, question, ruling, gone.signal);
    if ("verdict" in opened) return answer(response, opened);
    const { socket } = opened.outside;
    const cut = (): void => {
      socket.destroy();
      response.destroy();
    };
    session.begin({ host, port, outside: socket, cut });
    socket.setTimeout(LIMITS.egressIdleMs, cut);
    if (response.destroyed) return cut();
    response.once("close", () => socket.destroy());
    exchange(request, response, { outside: opened.outside, path, body });
  }

  /** The body to send, once the ledger knows of a request that can change something. */
  async #effect(
    session: Session,
    question: Question & { readonly method: string; readonly path: string },
    { request, response, signal }: { request: IncomingMessage; response: ServerResponse; signal: AbortSignal },
  ): Promise<Readable | Denied> {
    const { host, port, method, path } = question;
    if (this.#effects === undefined || !changesSomething(method)) return request;
    const body = session.rules.effects === "hold" ? await readHeld(request) : undefined;
    if (body !== undefined && "verdict" in body) return body;
    const url = `http://${shownHost(host)}:${port}${path}`;
    const begun = await this.#effects.begin(session, { method, url, body }, signal);
    if (typeof begun !== "function") return this.#gate.refuse(session, question, begun);
    response.once("close", () =>
      begun(response.headersSent && response.getHeader("x-viv-code") === undefined ? response.statusCode : null),
    );
    return body === undefined ? request : Readable.from(body.length === 0 ? [] : [body]);
  }

  async #connect(request: IncomingMessage, client: Socket, head: Buffer): Promise<void> {
    const guest = this.#guests.get(client);
    client.on("error", () => client.destroy());
    if (guest === undefined) return void client.destroy();
    clearTimeout(guest.timer);
    const target = guest.only === undefined ? parseAuthority(request.url ?? "") : undefined;
    if (target === undefined || hostHeaders(request).length > 1)
      return lastWord(client, rawAnswer(malformed("CONNECT takes one host and port.")));
    const { session } = guest;
    await tunnel(
      this.#gate,
      session,
      {
        ...target,
        protocol: "connect",
        client,
        head,
        accept: () => client.write("HTTP/1.1 200 Connection Established\r\n\r\n"),
        refuse: (denied) => lastWord(client, rawAnswer(denied)),
      },
      (_, inner, data, { host, port }, ruling) => this.take(session, inner, data, { host, port }, ruling),
    );
  }

  #malformed(error: NodeJS.ErrnoException, socket: Socket): void {
    if (!socket.writable || error.code === "ECONNRESET") return void socket.destroy();
    const large = error.code === "HPE_HEADER_OVERFLOW";
    lastWord(socket, rawAnswer(malformed(large ? "The head of the request is too large." : "The request is not well-formed HTTP.")));
  }
}

function malformed(reason: string): Denied {
  return deny("bad_request", reason, "Correct the request; this is the proxy of the sandbox.");
}

function answer(response: ServerResponse, denied: Denied): void {
  const { status, phrase, headers, body } = answerTo(denied);
  response.writeHead(status, phrase, headers);
  response.end(response.req.method === "HEAD" ? undefined : body);
  // Its body is not read any more.
  response.req.resume();
}

function hostHeaders(request: IncomingMessage): string[] {
  return headerPairs(request.rawHeaders).flatMap(([name, value]) => (name.toLowerCase() === "host" ? [value] : []));
}

/** Where a request goes, or what is wrong with it. */
function targetOf(request: IncomingMessage, only: Authority | undefined): (Authority & { path: string }) | string {
  const [named, ...more] = hostHeaders(request);
  if (named === undefined || more.length > 0) return "A request has one Host header.";
  if (!hasPlainFraming(request)) return "The length of the request is not clear.";
  const match = only === undefined ? /^http:\/\/([^/?#]*)([/?][^#]*)?$/i.exec(request.url ?? "") : /^()(\/[^#]*)$/.exec(request.url ?? "");
  if (match === null) return only === undefined ? "A proxy takes requests with a whole http:// address." : "The request needs a path.";
  const target = only ?? parseAuthority(match[1] ?? "", 80);
  if (target === undefined) return "The host of the request is not well-formed.";
  const header = parseAuthority(named, 80);
  // Behind a tunnel many clients leave out a port that is not the default one.
  const samePort = header?.port === target.port || (only !== undefined && !named.includes(":"));
  if (header?.host !== target.host || !samePort) return "The Host header names another host than the request.";
  const path = match[2] ?? "/";
  return { host: target.host, port: target.port, path: path.startsWith("?") ? `/${path}` : path };
}

/** Either a length or chunks, once. */
function hasPlainFraming(request: IncomingMessage): boolean {
  const values = (wanted: string): string[] =>
    headerPairs(request.rawHeaders).flatMap(([name, value]) => (name.toLowerCase() === wanted ? [value] : []));
  const coded = values("transfer-encoding");
  const lengths = values("content-length");
  if (coded.length > 0) return coded.length === 1 && lengths.length === 0 && coded[0]?.trim().toLowerCase() === "chunked";
  return lengths.length <= 1;
}

/** One request to the outside and its answer, both written anew. */
function exchange(
  request: IncomingMessage,
  response: ServerResponse,
  { outside, path, body }: { outside: Outside; path: string; body: Readable },
): void {
  const { socket } = outside;
  const broken = (): void => {
    socket.destroy();
    if (response.headersSent) response.destroy();
    else if (!response.destroyed) answer(response, deny("unreachable", "The host ended the connection before it answered.", "Try again."));
  };
  const reader = new ResponseReader(
    {
      head: ({ status, phrase, headers }) => {
        response.sendDate = false;
        response.writeHead(status, phrase, endToEnd(headers));
      },
      body: (chunk, done) => response.write(chunk, done),
      end: () => {
        response.end();
        socket.destroy();
      },
      broken,
    },
    { headRequest: request.method === "HEAD", maxHeadBytes: LIMITS.egressHeadBytes },
  );
  outside.take((chunk, done) => reader.take(chunk, done));
  socket.once("end", () => reader.ended());
  socket.once("close", () => !response.writableEnded && broken());
  request.once("aborted", () => socket.destroy());
  send(request, body, socket, path);
}

/** The head as it was decided on, and the body in the framing it came with. */
function send(request: IncomingMessage, body: Readable, socket: Socket, path: string): void {
  const chunked = request.headers["transfer-encoding"] !== undefined;
  const headers = [...endToEnd(request.rawHeaders), ...(chunked ? ["Transfer-Encoding", "chunked"] : []), "Connection", "close"];
  const lines = headerPairs(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`${request.method ?? "GET"} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`, "latin1");
  if (!chunked) return void body.pipe(socket, { end: false });
  const framed = new Transform({
    transform(chunk: Buffer, _, done) {
      this.push(`${chunk.length.toString(16)}\r\n`);
      this.push(chunk);
      done(null, "\r\n");
    },
    flush: (done) => done(null, "0\r\n\r\n"),
  });
  body.pipe(framed).pipe(socket, { end: false });
}

function headerPairs(raw: readonly string[]): [name: string, value: string][] {
  return Array.from({ length: raw.length / 2 }, (_, index) => [raw[2 * index] ?? "", raw[2 * index + 1] ?? ""]);
}

/** Without what the two neighbours agree on between themselves. */
function endToEnd(raw: readonly string[]): string[] {
  const pairs = headerPairs(raw);
  const named = new Set(
    pairs.flatMap(([name, value]) =>
      name.toLowerCase() === "connection" ? value.split(",").map((word) => word.trim().toLowerCase()) : [],
    ),
  );
  // Named by the sender, these would vanish: the length of a message is not theirs to hide.
  for (const kept of ["content-length", "host"]) named.delete(kept);
  return pairs.filter(([name]) => !HOP.has(name.toLowerCase()) && !named.has(name.toLowerCase())).flat();
}
