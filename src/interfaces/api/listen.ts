/** The servers: one on a Unix socket that only its owner reaches, and when asked one by TCP, on loopback or with TLS, for callers that prove themselves. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { getRequestListener } from "@hono/node-server";
import type { Engine } from "../operations/operations.ts";
import { ERRORS, VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { previewPlace, type PreviewSite } from "../../base/schema/preview.ts";
import type { ServerAccess } from "../../base/schema/server.ts";
import { bindPort, bindPrivately, portOf, type Server } from "./bind.ts";
import { createApp, type ChatTools, type ErrorListener } from "./app.ts";
import type { AppEnv } from "./env.ts";
import type { Dashboard } from "./dashboard.ts";
import { accessOf, askedBy, readTls, stampOf, type Door } from "./door.ts";
import { askedHost, guard, pathOf, type CheckSession, type TcpAccess } from "./guard.ts";
import { OperationRoutes } from "./operation-routes.ts";
import { PreviewFront, type PreviewWays } from "./previews/previews.ts";
import { proxyRequest, proxyTarget, proxyUpgrade } from "./proxy.ts";
import { Sockets } from "./sockets.ts";

const HEADERS_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 60_000;
const SWEEP_MS = 10;
const RENEWED_EVERY_MS = 60_000;
/** A year, for this host alone. */
const STRICT = "max-age=31536000";

export interface TcpOptions {
  /** On loopback, port 0 takes a free one. */
  readonly door: Door;
  /** What callers send that are no browsers. */
  readonly token: string;
}

export interface ListenOptions {
  readonly version: string;
  /** Path of the Unix socket, in a folder that is the owner's alone. */
  readonly socketPath: string;
  /** Also by TCP. */
  readonly tcp?: TcpOptions;
  /** Without one there are no pages, and browsers can't log in. */
  readonly dashboard?: Dashboard;
  /** What chat clients speak with; there is no such route if left out. */
  readonly chatTools?: ChatTools;
  /** What runs command lines that come whole, through the Unix socket alone. */
  readonly commandLines?: (socket: Duplex, head: Buffer, engine: Engine, closing: AbortSignal) => Promise<void>;
  /** How long a program inside may take to begin an answer at a preview's origin; the limit of the program if left out. */
  readonly previewAnswerMs?: number;
  /** Hears of errors that are defects. */
  readonly onError: ErrorListener;
}

export interface OpenedDoor {
  readonly port: number;
  /** The dashboard's address. */
  readonly origin: string;
  /** Where previews have their names. */
  readonly previews: PreviewSite | undefined;
  readonly access: ServerAccess;
}

export interface HttpListener {
  /** What is open by TCP, once there is something. */
  readonly opened: OpenedDoor | undefined;
  /** Listens by TCP, too; what it has open already, if it does so. */
  open(options: TcpOptions): Promise<OpenedDoor>;
  /** Stops accepting, ends streams, waits for running requests up to a limit. */
  close(): Promise<void>;
}

function answer(outgoing: ServerResponse, error: VivError): void {
  if (outgoing.headersSent) return void outgoing.destroy();
  const body = JSON.stringify(error.toBody());
  outgoing.writeHead(ERRORS[error.code].status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
    connection: "close",
  });
  outgoing.end(body);
}

function answerRaw(socket: Duplex, error: VivError): void {
  const body = JSON.stringify(error.toBody());
  socket.end(
    `HTTP/1.1 ${ERRORS[error.code].status} Refused\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}

const FRONT_PATH = "/front";
const FRONT_PROTOCOL = "vivarium-front";
/** native/front/front.c reads these very bytes. */
const SWITCHED = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${FRONT_PROTOCOL}\r\n\r\n`;

function isFront({ url, headers }: IncomingMessage): boolean {
  return url === FRONT_PATH && headers.upgrade === FRONT_PROTOCOL;
}

type RequestListener = (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>;

/** How requests come: through the Unix socket, or through a port, which asks who the caller is. */
interface Way {
  readonly access: TcpAccess | undefined;
  readonly listener: RequestListener;
}

/** Everything behind the sockets: one app, whichever way a request came. */
class Front {
  readonly sockets: Sockets;
  readonly #engine: Engine;
  readonly #onError: ErrorListener;
  readonly #operations: OperationRoutes;
  readonly #app: ReturnType<typeof createApp>;
  readonly #sessions: Dashboard["sessions"] | undefined;
  readonly #previews: PreviewFront | undefined;
  readonly #closing: AbortSignal;
  readonly #commandLines: ListenOptions["commandLines"];
  /** Of each connection the session that cuts it off: browsers use a connection for many requests. */
  readonly #cutBy = new WeakMap<Socket, string>();

  constructor(engine: Engine, options: ListenOptions, closing: AbortSignal) {
    this.#engine = engine;
    this.#onError = options.onError;
    this.sockets = new Sockets(engine.streams, closing);
    this.#operations = new OperationRoutes(engine, (error) => this.#known(error));
    this.#app = createApp(engine, options.version, { dashboard: options.dashboard, chatTools: options.chatTools }, options.onError);
    this.#sessions = options.dashboard?.sessions;
    if (options.dashboard !== undefined)
      this.#previews = new PreviewFront(engine.streams, options.dashboard.previews, options.previewAnswerMs);
    this.#closing = closing;
    this.#commandLines = options.commandLines;
  }

  /** For requests that come by this door, or to the Unix socket. */
  listener(access: TcpAccess | undefined): RequestListener {
    const more = { closing: this.#closing, access };
    return getRequestListener((request, env) => this.#app.fetch(request, { ...(env as AppEnv["Bindings"]), ...more }), {
      overrideGlobalObjects: false,
    });
  }

  session(cookie: string, key: string): ReturnType<CheckSession> {
    return this.#sessions?.check(cookie, key);
  }

  async request(incoming: IncomingMessage, outgoing: ServerResponse, { access, listener }: Way): Promise<void> {
    try {
      const preview = this.#preview(incoming, access);
      if (preview !== undefined) {
        const trouble = await preview.front.request(incoming, outgoing, preview);
        if (trouble !== undefined) this.#known(trouble);
        return;
      }
      if (access?.isStrict === true) outgoing.setHeader("strict-transport-security", STRICT);
      this.#cutWith(guard(incoming, access), incoming);
      const target = proxyTarget(incoming.url ?? "");
      if (target !== undefined) return await proxyRequest(this.#engine.streams, target, incoming, outgoing);
      if (incoming.method === "HEAD") throw new VivError("not_found", "There is no such route.");
      await (this.#operations.take(pathOf(incoming), incoming, outgoing) ?? listener(incoming, outgoing));
    } catch (error) {
      answer(outgoing, this.#known(error));
    }
  }

  async upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer, { access }: Way): Promise<void> {
    socket.on("error", () => socket.destroy());
    try {
      const preview = this.#preview(incoming, access);
      if (preview !== undefined) return await preview.front.upgrade(incoming, socket, head, preview);
      this.#cutWith(guard(incoming, access), incoming);
      if (access === undefined && this.#commandLines !== undefined && isFront(incoming)) {
        socket.write(SWITCHED);
        return await this.#commandLines(socket, head, this.#engine, this.#closing);
      }
      const target = proxyTarget(incoming.url ?? "");
      if (target !== undefined) await proxyUpgrade(this.#engine.streams, target, incoming, socket, head);
      else await this.sockets.upgrade(incoming, socket, head, access === undefined);
    } catch (error) {
      answerRaw(socket, this.#known(error));
    }
  }

  /** What answers a request for a preview; then no other part of the server looks at it. */
  #preview(incoming: IncomingMessage, access: TcpAccess | undefined): (PreviewWays & { readonly front: PreviewFront }) | undefined {
    const front = this.#previews;
    const site = access?.previews;
    if (front === undefined || access === undefined || site === undefined) return undefined;
    const host = askedHost(incoming, access) ?? "";
    if (previewPlace(host, site) === undefined) return undefined;
    return { front, site, host, dashboards: access.origins, token: access.token };
  }

  /** A session that is ended takes its open connections along. */
  #cutWith(session: string | undefined, { socket }: IncomingMessage): void {
    if (session === undefined || this.#sessions === undefined || this.#cutBy.get(socket) === session) return;
    this.#cutBy.set(socket, session);
    const ending = this.#sessions.ending(session);
    const cut = (): void => void socket.destroy();
    if (ending.aborted) return cut();
    ending.addEventListener("abort", cut, { once: true });
    socket.once("close", () => ending.removeEventListener("abort", cut));
  }

  /** Of a server that listens already: it goes on. */
  failed(error: Error): void {
    this.#onError(VivError.from(error));
  }

  #known(error: unknown): VivError {
    const known = VivError.from(error);
    if (known.code === "internal") this.#onError(known);
    return known;
  }
}

/** Long streams are no slow requests: only headers have a time limit here, and JSON bodies where they are read. */
function makeServer(front: Front, way: () => Way, tls?: Door["tls"]): Server {
  const options = {
    headersTimeout: HEADERS_TIMEOUT_MS,
    connectionsCheckingInterval: HEADERS_TIMEOUT_MS / 2,
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    noDelay: true,
  };
  const heard = (incoming: IncomingMessage, outgoing: ServerResponse): void => void front.request(incoming, outgoing, way());
  const server =
    tls === undefined
      ? createServer(options, heard)
      : createTlsServer(
          { ...options, ...tls, minVersion: "TLSv1.2", handshakeTimeout: HEADERS_TIMEOUT_MS, ALPNProtocols: ["http/1.1"] },
          heard,
        );
  server.on("upgrade", (incoming, socket, head) => void front.upgrade(incoming, socket, head, way()));
  server.on("listening", () => server.on("error", (error) => front.failed(error)));
  server.maxConnections = LIMITS.maxConnections;
  return server;
}

async function closeServers(servers: readonly Server[], sockets: Sockets, closing: AbortController): Promise<void> {
  const closed = Promise.all(servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve()))));
  closing.abort();
  sockets.close();
  // A connection whose answer was under way is idle once it is sent.
  const sweep = setInterval(() => servers.forEach((server) => server.closeIdleConnections()), SWEEP_MS);
  const patience = new AbortController();
  const late = delay(LIMITS.shutdownMs, undefined, { signal: patience.signal, ref: false }).then(
    () => {
      sockets.terminate();
      for (const server of servers) server.closeAllConnections();
    },
    () => undefined,
  );
  await Promise.race([closed, late]);
  clearInterval(sweep);
  patience.abort();
}

export async function listen(engine: Engine, options: ListenOptions): Promise<HttpListener> {
  const closing = new AbortController();
  const front = new Front(engine, options, closing.signal);
  const socketWay: Way = { access: undefined, listener: front.listener(undefined) };
  const local = makeServer(front, () => socketWay);
  await bindPrivately(local, options.socketPath);
  const tcp = new TcpListener(front);
  try {
    if (options.tcp !== undefined) await tcp.open(options.tcp);
  } catch (error) {
    local.close();
    throw error;
  }
  return {
    get opened() {
      return tcp.opened;
    },
    open: (asked) => tcp.open(asked),
    close: () => closeServers([local, ...tcp.close()], front.sockets, closing),
  };
}

/** The port: from the start, or from when it is first asked for. */
class TcpListener {
  readonly #front: Front;
  #opening: Promise<OpenedDoor> | undefined;
  #server: Server | undefined;
  #opened: OpenedDoor | undefined;
  #renewing: NodeJS.Timeout | undefined;

  constructor(front: Front) {
    this.#front = front;
  }

  get opened(): OpenedDoor | undefined {
    return this.#opened;
  }

  /** The servers that are still to be closed. */
  close(): readonly Server[] {
    clearInterval(this.#renewing);
    return this.#server === undefined ? [] : [this.#server];
  }

  async open(options: TcpOptions): Promise<OpenedDoor> {
    this.#opening ??= this.#open(options);
    try {
      return await this.#opening;
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
  }

  async #open({ door, token }: TcpOptions): Promise<OpenedDoor> {
    let way: Way | undefined;
    const server: Server = makeServer(this.#front, () => (way ??= this.#wayBy(door, portOf(server), token)), door.tls);
    const port = await bindPort(server, door);
    this.#server = server;
    if (door.files !== undefined && "setSecureContext" in server) this.#renew(server, door.files);
    const access = accessOf(door, port);
    this.#opened = { port, origin: access.origins[0] ?? `http://${access.address}`, previews: door.previews(port), access };
    return this.#opened;
  }

  /** A certificate that is renewed counts for new connections; one that can't be used leaves the old one in place. */
  #renew(server: TlsServer, files: NonNullable<Door["files"]>): void {
    let stamp = stampOf(files);
    const look = (): void => {
      if (stampOf(files) === stamp) return;
      stamp = stampOf(files);
      try {
        server.setSecureContext(readTls(files));
      } catch (error) {
        this.#front.failed(VivError.from(error));
      }
    };
    this.#renewing = setInterval(look, RENEWED_EVERY_MS).unref();
  }

  #wayBy(door: Door, port: number, token: string): Way {
    const front = this.#front;
    const access: TcpAccess = { ...askedBy(door, port), token, session: (cookie, key) => front.session(cookie, key) };
    return { access, listener: front.listener(access) };
  }
}
