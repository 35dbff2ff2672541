/** Who may speak to the server: checks on the raw request, before anything else looks at it. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { VivError } from "../../base/schema/errors.ts";
import { SOCKET_TOKEN_PREFIX } from "../../base/schema/routes.ts";

export interface TcpAccess {
  readonly port: number;
  readonly token: string;
}

/** Documentation holds no secret, and a browser cannot send a token when it opens a page. */
const PUBLIC = new Set(["/docs", "/openapi.json"]);

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function headerCount(request: IncomingMessage, name: string): number {
  return request.rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === name).length;
}

/** Against DNS rebinding, and against pages of other origins, which send Origin or Sec-Fetch-Site. */
function checkSource(request: IncomingMessage, port: number): void {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
  const { host, origin } = request.headers;
  if (host === undefined || !hosts.includes(host) || headerCount(request, "host") !== 1) {
    throw new VivError("forbidden_origin", "The Host header is not this server's address.");
  }
  if (origin !== undefined && !hosts.some((own) => origin === `http://${own}`)) {
    throw new VivError("forbidden_origin", "The Origin header is not this server's address.");
  }
  const site = request.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none")
    throw new VivError("forbidden_origin", "The request comes from a page of another origin.");
}

/** The token a request carries: in Authorization, or for a browser's WebSocket among the subprotocols. Never in the address, which gets logged. */
function presentedToken(request: IncomingMessage): string | undefined {
  const match = /^Bearer ([^\s]+)$/i.exec(request.headers.authorization ?? "");
  if (match?.[1] !== undefined) return match[1];
  if (request.headers.upgrade === undefined) return undefined;
  const protocols = (request.headers["sec-websocket-protocol"] ?? "").split(",").map((text) => text.trim());
  return protocols.find((text) => text.startsWith(SOCKET_TOKEN_PREFIX))?.slice(SOCKET_TOKEN_PREFIX.length);
}

function checkToken(request: IncomingMessage, token: string): void {
  const presented = presentedToken(request);
  if (presented === undefined) throw new VivError("unauthorized", "The request carries no token.");
  if (!timingSafeEqual(digest(presented), digest(token))) throw new VivError("unauthorized", "The token is not this server's.");
}

/** Refuses what routers and URL parsers read differently: dot segments, NUL, broken percent signs, backslashes. */
function checkPath(path: string): void {
  const plain = /^(?:[!-$&-[\]-~]|%(?:[2-6][0-9a-f]|7[0-9a-e]|[89a-f][0-9a-f]))*$/i.test(path);
  const dots = path.split("/").some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment));
  if (!plain || dots) throw new VivError("invalid_input", "The path of the request is not in plain form.");
}

export function pathOf(request: IncomingMessage): string {
  const url = request.url ?? "";
  const query = url.indexOf("?");
  return query < 0 ? url : url.slice(0, query);
}

/** Throws when a request must not go further. */
export function guard(request: IncomingMessage, tcp: TcpAccess | undefined): void {
  if (request.url?.startsWith("/") !== true) throw new VivError("forbidden_origin", "The request names a whole address instead of a path.");
  if (tcp !== undefined) {
    checkSource(request, tcp.port);
    if (!(request.method === "GET" && PUBLIC.has(request.url))) checkToken(request, tcp.token);
  }
  checkPath(pathOf(request));
}
