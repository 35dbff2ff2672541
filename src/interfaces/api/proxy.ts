/** HTTP into a sandbox: the sandbox sees neither the caller's token nor its cookies, and its answers get no authority over this origin. */
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { pipeline, type Duplex } from "node:stream";
import type { Streams } from "../operations/operations.ts";
import { VivError } from "../../base/schema/errors.ts";
import { STREAM_ROUTES } from "../../base/schema/stream-routes.ts";
import { join } from "../../base/wire/wire.ts";
import { parse } from "./input.ts";
import { applicationProtocols, beginInside, firstAnswer, headText, HOP_BY_HOP, keptHeaders } from "./inside-http.ts";

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

/** Leave to read answers is the API's to give. */
function kept(headers: IncomingMessage["headers"], without: ReadonlySet<string>): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(keptHeaders(headers, without)).filter(([name]) => !name.startsWith("access-control-")));
}

async function open(streams: Streams, target: Target, incoming: IncomingMessage, switches: boolean): Promise<ClientRequest> {
  const connection = await streams.dial(target.sandbox, target.port);
  const headers = {
    ...kept(incoming.headers, NOT_INTO_SANDBOX),
    ...applicationProtocols(incoming.headers),
    host: `localhost:${target.port}`,
  };
  return beginInside(connection, incoming, { path: target.path, headers, switches });
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
  const { answer, inside } = await firstAnswer(request, `Port ${target.port}`);
  if (inside !== undefined) {
    inside.destroy();
    throw new VivError("port_unreachable", `Port ${target.port} switched protocols without being asked.`);
  }
  outgoing.writeHead(answer.statusCode ?? 502, answerHeaders(answer, target));
  pipeline(answer, outgoing, () => request.destroy());
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
  const { answer, inside, first } = await firstAnswer(request, `Port ${target.port}`);
  const headers = answerHeaders(answer, target);
  if (inside === undefined) {
    socket.write(headText(answer, { ...headers, connection: "close" }));
    pipeline(answer, socket, () => request.destroy());
    return;
  }
  socket.write(headText(answer, { ...headers, connection: "Upgrade", upgrade: answer.headers.upgrade }));
  if (first !== undefined && first.length > 0) socket.write(first);
  if (early.length > 0) inside.write(early);
  join(socket, inside);
}
