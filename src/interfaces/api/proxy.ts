/** HTTP into a sandbox: the sandbox sees neither the caller's token nor its cookies, and its answers get no authority over this origin. */
import {
  request as httpRequest,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from "node:http";
import { pipeline, type Duplex } from "node:stream";
import type { Streams } from "../operations/operations.ts";
import { VivError } from "../../base/schema/errors.ts";
import { STREAM_ROUTES } from "../../base/schema/stream-routes.ts";
import { join } from "../../base/wire/wire.ts";
import { parse } from "./input.ts";

const HOP_BY_HOP = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
];
const NOT_INTO_SANDBOX = new Set([...HOP_BY_HOP, "authorization", "cookie", "host", "sec-websocket-protocol"]);
const NOT_OUT_OF_SANDBOX = new Set([
  ...HOP_BY_HOP,
  "set-cookie",
  "set-cookie2",
  "clear-site-data",
  "strict-transport-security",
  "public-key-pins",
  "service-worker-allowed",
  "content-security-policy",
  "alt-svc",
]);
/** What a page from a sandbox may do in a browser: run its scripts, in an opaque origin of its own. */
const POLICY = "sandbox allow-scripts allow-forms";

interface Target {
  readonly sandbox: string;
  readonly port: number;
  /** Path and query inside. */
  readonly path: string;
  /** Path of this server that leads there. */
  readonly prefix: string;
}

/** The declared path, where what stands behind it goes inside as it is. */
const PATH = new RegExp(
  `^(?<prefix>${STREAM_ROUTES.proxy.path.replace("/{rest}", "").replaceAll(/\{(\w+)\}/g, "(?<$1>[^/?]*)")})(?=[/?]|$)(?<rest>.*)$`,
  "s",
);

/** The target a request's address names, if it is one of a port inside. */
export function proxyTarget(url: string): Target | undefined {
  const { prefix = "", ...fields } = PATH.exec(url)?.groups ?? {};
  if (prefix === "") return undefined;
  const { sandbox, port, rest } = parse(STREAM_ROUTES.proxy.input, fields);
  return { sandbox, port, prefix, path: rest.startsWith("/") ? rest : `/${rest}` };
}

/** Headers named by Connection are hop-by-hop, too. */
function kept(headers: IncomingHttpHeaders, without: ReadonlySet<string>): OutgoingHttpHeaders {
  const named = new Set(
    (headers.connection ?? "")
      .toLowerCase()
      .split(",")
      .map((name) => name.trim()),
  );
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !without.has(name) && !named.has(name) && !name.startsWith("access-control-")),
  );
}

/** Subprotocols of the application go through; those that carry the server's token do not. */
function applicationProtocols(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  const protocols = (headers["sec-websocket-protocol"] ?? "")
    .split(",")
    .map((text) => text.trim())
    .filter((text) => text !== "" && text !== "viv" && !text.startsWith("viv."));
  return protocols.length === 0 ? {} : { "sec-websocket-protocol": protocols.join(", ") };
}

async function open(streams: Streams, target: Target, incoming: IncomingMessage, upgrade: boolean): Promise<ClientRequest> {
  const connection = await streams.dial(target.sandbox, target.port);
  // The request handles errors once it has the connection; until then, this listener does.
  connection.on("error", () => connection.destroy());
  const headers = {
    ...kept(incoming.headers, NOT_INTO_SANDBOX),
    ...applicationProtocols(incoming.headers),
    host: `localhost:${target.port}`,
    ...(upgrade ? { connection: "Upgrade", upgrade: incoming.headers.upgrade } : {}),
  };
  try {
    const request = httpRequest({
      method: incoming.method,
      path: target.path,
      headers,
      setHost: false,
      createConnection: () => connection,
    });
    // A dialled connection is paused, so that no bytes are lost before a listener is there.
    request.once("socket", () => connection.resume());
    return request;
  } catch (error) {
    connection.destroy();
    throw error;
  }
}

/** Settles with the first of an answer, a switch or a failure. What comes from inside is hostile: an impossible status is a failure. */
function firstAnswer(request: ClientRequest, port: number): Promise<{ answer: IncomingMessage; inside?: Duplex; first?: Buffer }> {
  return new Promise((resolve, reject) => {
    const fail = (why: string, cause?: Error): void =>
      reject(new VivError("port_unreachable", `Port ${port} gave no answer: ${why}.`, { cause }));
    request.on("error", (error) => fail(error.message, error));
    request.once("close", () => fail("it closed the connection"));
    request.once("upgrade", (answer, inside, first) => resolve({ answer, inside, first }));
    request.once("response", (answer) => {
      const status = answer.statusCode ?? 0;
      if (status >= 200 && status <= 599) return resolve({ answer });
      fail(`it said status ${status}`);
      request.destroy();
    });
  });
}

function answerHeaders(answer: IncomingMessage, target: Target): OutgoingHttpHeaders {
  const headers = kept(answer.headers, NOT_OUT_OF_SANDBOX);
  const { location } = answer.headers;
  if (location?.startsWith("/") === true && !location.startsWith("//")) headers["location"] = target.prefix + location;
  return { ...headers, "content-security-policy": POLICY, "x-content-type-options": "nosniff", "cache-control": "no-store" };
}

/** Rejects while there is no answer yet; later failures break the connection off. */
export async function proxyRequest(streams: Streams, target: Target, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const request = await open(streams, target, incoming, false);
  outgoing.once("close", () => request.destroy());
  incoming.pipe(request);
  const { answer, inside } = await firstAnswer(request, target.port);
  if (inside !== undefined) {
    inside.destroy();
    throw new VivError("port_unreachable", `Port ${target.port} switched protocols without being asked.`);
  }
  outgoing.writeHead(answer.statusCode ?? 502, answerHeaders(answer, target));
  pipeline(answer, outgoing, () => request.destroy());
}

function head(answer: IncomingMessage, headers: OutgoingHttpHeaders): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one) => `${name}: ${String(one)}`),
  );
  return `HTTP/1.1 ${answer.statusCode ?? 502} ${answer.statusMessage ?? ""}\r\n${lines.join("\r\n")}\r\n\r\n`;
}

/** Passes an Upgrade through and joins the two connections; anything but a switch is answered and closed. */
export async function proxyUpgrade(
  streams: Streams,
  target: Target,
  incoming: IncomingMessage,
  socket: Duplex,
  early: Buffer,
): Promise<void> {
  const request = await open(streams, target, incoming, true);
  socket.once("close", () => request.destroy());
  request.end();
  const { answer, inside, first } = await firstAnswer(request, target.port);
  const headers = answerHeaders(answer, target);
  if (inside === undefined) {
    socket.write(head(answer, { ...headers, connection: "close" }));
    pipeline(answer, socket, () => request.destroy());
    return;
  }
  socket.write(head(answer, { ...headers, connection: "Upgrade", upgrade: answer.headers.upgrade }));
  if (first !== undefined && first.length > 0) socket.write(first);
  if (early.length > 0) inside.write(early);
  join(socket, inside);
}
