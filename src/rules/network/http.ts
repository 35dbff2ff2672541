/**
 * The proxy's HTTP: absolute requests and CONNECT, and what is inside TLS to hosts that a secret belongs to. Node's parser is the
 * strict one, and every message is written anew, so that what was decided on is what is sent. Each request of a connection is
 * decided by itself.
 */
import { createServer, IncomingMessage, ServerResponse, type Server } from "node:http";
import type { Socket } from "node:net";
import { Readable, type Duplex } from "node:stream";
import { errorText } from "../../base/host/log.ts";
import type { MovedConnection } from "../../base/host/moved-connection.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { answerTo, ESTABLISHED, rawAnswer, UNANSWERED } from "./answers.ts";
import { changesSomething, readHeld, type EffectRecords } from "./effects.ts";
import { endToEnd, exchange, isChunked, requestHead, type OutsideStream } from "./exchange.ts";
import type { DialledHost, Gate, Question } from "./gate.ts";
import { parseAuthority, shownHost, type Authority } from "./host.ts";
import { isEchoing, secure, type HeadersWithSecrets, type InterceptedRequest, type Interceptor } from "./interception.ts";
import type { OutsideConnection } from "./outside.ts";
import { deny, type Allowed, type Denied, type Ruling } from "./rules.ts";
import type { Session } from "./session.ts";
import { lastWord } from "./streams.ts";
import { tunnel, type HttpTaker } from "./tunnel.ts";

/** The one host that a connection leads to: it is not spoken to as a proxy. */
export interface OnlyHost extends Authority {
  /** Set where it came through TLS that was opened: it leaves by TLS, too. */
  readonly interceptor?: Interceptor;
}

interface Guest {
  readonly session: Session;
  readonly only?: OnlyHost;
  /** The ruling for the tunnel that carries the requests: a person who approved it is not asked again. */
  leave?: Allowed | undefined;
  timer?: NodeJS.Timeout;
  /** Requests that have no answer yet. */
  unanswered: number;
  /** The answer of the newest of them. */
  turn?: Promise<void>;
}

/** What is sent before the body, with the secrets in it. */
interface PreparedRequest extends Omit<HeadersWithSecrets, "headers"> {
  readonly head: string;
}

/** Requests that a client may send before the answer of the first. */
const MOST_AHEAD = 64;

/** An answer to a client inside. */
class ProxyResponse extends ServerResponse {
  /** The proxy's own: no host has answered. */
  isOwn = false;
}

export class HttpProxy implements HttpTaker {
  readonly #gate: Gate;
  readonly #effects: EffectRecords | undefined;
  readonly #server: Server<typeof IncomingMessage, typeof ProxyResponse>;
  readonly #guests = new WeakMap<Duplex, Guest>();

  constructor(gate: Gate, effects?: EffectRecords) {
    this.#gate = gate;
    this.#effects = effects;
    this.#server = createServer({
      IncomingMessage,
      ServerResponse: ProxyResponse,
      maxHeaderSize: LIMITS.egressHeadBytes,
      keepAliveTimeout: LIMITS.egressHeadMs,
      requestTimeout: 0,
      headersTimeout: 0,
    });
    this.#server.on("request", (request, response) => void this.#request(request, response));
    this.#server.on(
      "connect",
      // A request that can't be judged is refused. Other connections go on.
      (request: IncomingMessage, socket: Duplex, head: Buffer) =>
        void this.#connect(request, socket as Socket, head).catch(() => socket.destroy()),
    );
    this.#server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => this.#malformed(error, socket as Socket));
  }

  /** Speaks HTTP with a client, whose first bytes were read already. */
  take(session: Session, client: Socket, head: Buffer, only?: OnlyHost, ruling?: Allowed): void {
    const guest: Guest = only === undefined ? { session, unanswered: 0 } : { session, only, unanswered: 0 };
    if (ruling?.approval !== undefined) guest.leave = ruling;
    this.#guests.set(client, guest);
    this.#await(client, guest);
    client.once("close", () => clearTimeout(guest.timer));
    if (head.length > 0) client.unshift(head);
    this.#server.emit("connection", client);
    client.resume();
  }

  /** The head of the next request must come in time, byte by byte or not. */
  #await(client: Duplex, guest: Guest): void {
    clearTimeout(guest.timer);
    if (!client.destroyed) guest.timer = setTimeout(() => client.destroy(), LIMITS.egressHeadMs);
  }

  async #request(request: IncomingMessage, response: ProxyResponse): Promise<void> {
    // A request that is over has none any more.
    const client = request.socket;
    const guest = this.#guests.get(client);
    if (guest === undefined) return void client.destroy();
    clearTimeout(guest.timer);
    response.on("error", () => client.destroy());
    const before = guest.turn;
    guest.turn = new Promise((resolve) => response.once("close", resolve));
    guest.unanswered += 1;
    if (guest.unanswered > MOST_AHEAD) return void client.destroy();
    response.once("close", () => {
      guest.unanswered -= 1;
      if (guest.unanswered === 0) this.#await(client, guest);
    });
    // One at a time: those sent ahead would make as many connections as there are requests.
    await before;
    if (client.destroyed) return;
    try {
      await this.#forward(guest, request, response);
    } catch {
      // The client is gone, or what it sent could not be sent on: nothing is left to say.
      client.destroy();
    }
  }

  async #forward(guest: Guest, request: IncomingMessage, response: ProxyResponse): Promise<void> {
    const { session, only } = guest;
    const target = targetOf(request, only);
    if (typeof target === "string") return answer(response, malformed(target));
    const { host, port, path } = target;
    const interceptor = only?.interceptor;
    const { method = "GET" } = request;
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const question = { host, port, protocol: interceptor === undefined ? "http" : "https", method, path } as const;
    const unfit = interceptor === undefined ? undefined : unfitToOpen(request);
    if (unfit !== undefined) return answer(response, await this.#gate.refuse(session, question, unfit));
    const ruling = await this.#ruling(guest, question, gone.signal);
    if (ruling.verdict === "deny") return answer(response, ruling);
    const unasked = await permitted(interceptor, session, request, question, gone.signal);
    if (unasked !== undefined) return answer(response, await this.#gate.refuse(session, question, unasked));
    const body = await this.#effect(session, question, { request, response, signal: gone.signal });
    if ("verdict" in body) return answer(response, body);
    const opened = await this.#gate.connect(session, question, ruling, gone.signal);
    if ("verdict" in opened) return answer(response, opened);
    const { outside } = opened;
    const cut = (): void => {
      outside.cut();
      response.destroy();
    };
    session.begin({ host, port, outside, cut });
    if (response.destroyed) return cut();
    response.once("close", () => outside.cut());
    const way = interceptor === undefined ? outside : await verified(opened, host);
    if ("verdict" in way) return response.destroyed ? undefined : answer(response, await this.#gate.refuse(session, question, way));
    way.socket.setTimeout(LIMITS.egressIdleMs, cut);
    if (response.destroyed) return cut();
    // At the last moment: secrets may be changed until then.
    const put = filled(interceptor, request, question);
    if ("verdict" in put) return answer(response, await this.#gate.refuse(session, question, put));
    const { head, hidden, used } = put;
    const unrecorded = used.length === 0 ? undefined : await this.#use(session, question, interceptor, used);
    if (unrecorded !== undefined) return answer(response, unrecorded);
    if (response.destroyed) return cut();
    if (way.socket.destroyed) return answer(response, UNANSWERED);
    const moved = way === outside ? session.movedOf(request.socket) : undefined;
    const move = moved && ((bytes: number) => movedBody(outside, moved, bytes));
    exchange(request, response, { way, head, hidden, body, move, unanswered: () => answer(response, UNANSWERED) });
  }

  /** An approval of a tunnel counts for one plain request, or for all requests in its TLS connection. */
  async #ruling(guest: Guest, question: Question, signal: AbortSignal): Promise<Ruling> {
    const { leave } = guest;
    if (guest.only?.interceptor !== undefined) return this.#gate.permit(guest.session, question, signal, leave);
    guest.leave = undefined;
    return leave ?? this.#gate.permit(guest.session, question, signal);
  }

  /** A secret goes out once that is recorded. */
  async #use(
    session: Session,
    question: Question & { readonly method: string; readonly path: string },
    interceptor: Interceptor | undefined,
    used: readonly string[],
  ): Promise<Denied | undefined> {
    try {
      await interceptor?.record(session.sandbox, destinationOf(question), used);
      return undefined;
    } catch (error) {
      return deny(
        "not_recorded",
        `The use of ${used.join(", ")} could not be recorded: ${errorText(error)}`,
        "The request was not sent. Free space on the host, then try again.",
      );
    }
  }

  /** The body to send, once the ledger knows of a request that can change something. */
  async #effect(
    session: Session,
    question: Question & { readonly method: string; readonly path: string },
    { request, response, signal }: { request: IncomingMessage; response: ProxyResponse; signal: AbortSignal },
  ): Promise<Readable | Denied> {
    const { host, port, method, path } = question;
    if (this.#effects === undefined || !changesSomething(method)) return request;
    const ended = new Promise<void>((resolve) => response.once("close", resolve));
    const body = session.rules.effects === "hold" ? await readHeld(session, request, ended) : undefined;
    if (body !== undefined && "verdict" in body) return body;
    const url = `${question.protocol}://${shownHost(host)}:${port}${path}`;
    const begun = await this.#effects.begin(session, { method, url, body }, signal);
    if (typeof begun !== "function") return this.#gate.refuse(session, question, begun);
    response.once("close", () => begun(response.headersSent && !response.isOwn ? response.statusCode : null));
    return body === undefined ? request : Readable.from(body.length === 0 ? [] : [body]);
  }

  async #connect(request: IncomingMessage, client: Socket, head: Buffer): Promise<void> {
    const guest = this.#guests.get(client);
    client.on("error", () => client.destroy());
    if (guest === undefined) return void client.destroy();
    clearTimeout(guest.timer);
    const target = guest.only === undefined ? parseAuthority(request.url ?? "") : undefined;
    if (target === undefined || valuesOf(request, "host").length > 1)
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
        accept: () => client.write(ESTABLISHED),
        refuse: (denied) => lastWord(client, rawAnswer(denied)),
      },
      this,
    );
  }

  #malformed(error: NodeJS.ErrnoException, socket: Socket): void {
    if (!socket.writable || error.code === "ECONNRESET") return void socket.destroy();
    const large = error.code === "HPE_HEADER_OVERFLOW";
    lastWord(socket, rawAnswer(malformed(large ? "The head of the request is too large." : "The request is not well-formed HTTP.")));
  }
}

/** The rest of a body goes past the server. A host that breaks off has not sent all of it. */
async function movedBody(outside: OutsideConnection, to: MovedConnection, bytes: number): Promise<boolean> {
  if (outside.socket.destroyed) return false;
  return (await outside.give((socket) => to.body(socket, bytes)).ended).isWhole;
}

/** Before anything is dialled: a person may take their time. */
async function permitted(
  interceptor: Interceptor | undefined,
  { sandbox }: Session,
  request: IncomingMessage,
  to: Question & { readonly method: string; readonly path: string },
  signal: AbortSignal,
): Promise<Denied | undefined> {
  try {
    return await interceptor?.permit(sandbox, destinationOf(to), endToEnd(request.rawHeaders), signal);
  } catch (error) {
    return deny(
      "secret_held",
      `The server could not check whether the secret may be used: ${errorText(error)}`,
      "The request was not sent. Try again.",
    );
  }
}

/** The request as it is sent. A secret that can't be opened is not sent as something else. */
function filled(
  interceptor: Interceptor | undefined,
  request: IncomingMessage,
  to: Question & { readonly method: string; readonly path: string },
): PreparedRequest | Denied {
  const headers = endToEnd(request.rawHeaders);
  try {
    const { headers: put, ...rest } = interceptor?.fill(destinationOf(to), headers) ?? { headers, hidden: [], used: [] };
    return { ...rest, head: requestHead({ ...to, isChunked: isChunked(request) }, put) };
  } catch {
    return deny("secret_denied", `The secret of ${to.host} can't be opened.`, "Set it again outside; `viv secret ls` shows it.");
  }
}

function destinationOf({ host, port, method, path }: Question & { readonly method: string; readonly path: string }): InterceptedRequest {
  return { protocol: "https", host, port, method, path: path.replace(/\?.*$/s, "") };
}

/** What does not go to a host that a secret belongs to. */
function unfitToOpen({ method = "", headers: { upgrade } }: IncomingMessage): Denied | undefined {
  if (isEchoing(method)) return deny("bad_request", `${method} would send back what was put into it.`, "Use another method.");
  if (upgrade === undefined) return undefined;
  return deny(
    "bad_request",
    `A secret belongs to this host: connections to it carry plain requests, and become nothing else.`,
    "Do without the upgrade; `viv secret rm` outside leaves the host's connections alone.",
  );
}

/** To a host that a secret belongs to, TLS of our own: without it there is no way. */
async function verified({ outside }: DialledHost, host: string): Promise<OutsideStream | Denied> {
  const secured = await secure(outside.socket, host);
  if (typeof secured !== "string") return secured;
  outside.socket.destroy();
  return unverified(host, secured);
}

function unverified(host: string, reason: string): Denied {
  return deny("unreachable", `${host} can't be reached by TLS, or is not who it says: ${reason}.`, "Check its certificate outside.");
}

function malformed(reason: string): Denied {
  return deny("bad_request", reason, "Correct the request; this is the proxy of the sandbox.");
}

function answer(response: ProxyResponse, denied: Denied): void {
  response.isOwn = true;
  const { status, phrase, headers, body } = answerTo(denied);
  response.writeHead(status, phrase, headers);
  response.end(response.req.method === "HEAD" ? undefined : body);
  // Its body is not read any more.
  response.req.resume();
}

/** All values of a header, however often it came. */
function valuesOf({ rawHeaders }: IncomingMessage, wanted: string): string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === wanted);
}

/** Where a request goes, or what is wrong with it. */
function targetOf(request: IncomingMessage, only: Authority | undefined): (Authority & { path: string }) | string {
  const [named, ...more] = valuesOf(request, "host");
  if (named === undefined || more.length > 0) return "A request has one Host header.";
  if (!hasPlainFraming(request)) return "The length of the request is not clear.";
  const match = only === undefined ? /^http:\/\/([^/?#]*)([/?][^#]*)?$/i.exec(request.url ?? "") : /^()(\/[^#]*)$/.exec(request.url ?? "");
  if (match === null) return only === undefined ? "A proxy takes requests with a whole http:// address." : "The request needs a path.";
  const target = only ?? parseAuthority(match[1] ?? "", 80);
  if (target === undefined) return "The host of the request is not well-formed.";
  const header = only === undefined && named === match[1] ? target : parseAuthority(named, 80);
  // Behind a tunnel many clients leave out a port that is not the default one.
  const samePort = header?.port === target.port || (only !== undefined && !named.includes(":"));
  if (header?.host !== target.host || !samePort) return "The Host header names another host than the request.";
  const path = match[2] ?? "/";
  return { host: target.host, port: target.port, path: path.startsWith("?") ? `/${path}` : path };
}

/** Either a length or chunks, once. */
function hasPlainFraming(request: IncomingMessage): boolean {
  const coded = valuesOf(request, "transfer-encoding");
  const lengths = valuesOf(request, "content-length");
  if (coded.length > 0) return coded.length === 1 && lengths.length === 0 && coded[0]?.trim().toLowerCase() === "chunked";
  return lengths.length <= 1;
}
