/** Who may speak to the server: checks on the raw request, before anything else looks at it. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { VivError } from "../../base/schema/errors.ts";
import type { PreviewSite } from "../../base/schema/preview.ts";
import { HOOK_PATH, LOGIN_PATH, SESSION_KEY_HEADER, SOCKET_KEY_PREFIX, SOCKET_TOKEN_PREFIX } from "../../base/schema/routes.ts";
import { isPageFile } from "./pages.ts";

/** The session that a cookie and a key prove together. */
export type CheckSession = (cookie: string, key: string) => { readonly id: string } | undefined;

export interface TcpAccess {
  /** Addresses of this server, as browsers write them: scheme, host, and the port if it is not the usual one. */
  readonly origins: readonly string[];
  /** Hosts that a proxy may call it by which does TLS and says in headers what browsers asked for; undefined where there is no proxy. */
  readonly behindProxy: readonly string[] | undefined;
  /** Name of the cookie. */
  readonly cookie: string;
  /** Whether browsers come by TLS. */
  readonly isSecure: boolean;
  /** Whether the host may be bound to TLS for all of its ports. */
  readonly isStrict: boolean;
  /** Where previews have their names; undefined where they have none. */
  readonly previews: PreviewSite | undefined;
  readonly token: string;
  readonly session: CheckSession;
}

/** Documentation holds no secret, and a browser cannot send a token when it opens a page. */
const DOCUMENTS = new Set(["/docs", "/openapi.json"]);

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function headerCount(request: IncomingMessage, name: string): number {
  return request.rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === name).length;
}

/** The host that the caller asked for; a proxy may tell of it in a header of its own. */
export function askedHost(request: IncomingMessage, { behindProxy }: TcpAccess): string | undefined {
  const { host, "x-forwarded-host": told, "x-forwarded-proto": protocol } = request.headers;
  if (host === undefined || headerCount(request, "host") !== 1 || behindProxy === undefined) return host;
  if (protocol !== undefined && protocol !== "https") throw new VivError("forbidden_origin", "The request came to the proxy without TLS.");
  if (told === undefined) return host;
  // The proxy names the server by its own address, or as the caller did: a name that is neither was brought by the caller.
  return host === told || behindProxy.includes(host) ? String(told) : undefined;
}

/** Whether a person opens a page of the dashboard by its address. */
function isVisit(request: IncomingMessage): boolean {
  const { "sec-fetch-mode": mode, "sec-fetch-dest": dest } = request.headers;
  return request.method === "GET" && mode === "navigate" && dest === "document" && isPageFile(pathOf(request));
}

/** Against DNS rebinding, and against pages of other origins, which send Origin or Sec-Fetch-Site. */
function checkSource(request: IncomingMessage, access: TcpAccess): void {
  const { origins } = access;
  const { origin } = request.headers;
  const host = askedHost(request, access);
  if (host === undefined || !origins.some((own) => new URL(own).host === host) || headerCount(request, "host") !== 1) {
    throw new VivError("forbidden_origin", "The Host header is not this server's address.");
  }
  if (origin !== undefined && !origins.includes(origin)) {
    throw new VivError("forbidden_origin", "The Origin header is not this server's address.");
  }
  // A link in a chat or a mail may lead to a page, which holds no secret and shows in no frame.
  if (isVisit(request)) return;
  const site = request.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none")
    throw new VivError("forbidden_origin", "The request comes from a page of another origin.");
}

/** The token a request carries: in Authorization, or for a browser's WebSocket among the subprotocols. Never in the address, which gets logged. */
function presentedToken(request: IncomingMessage): string | undefined {
  const match = /^Bearer ([^\s]+)$/i.exec(request.headers.authorization ?? "");
  if (match?.[1] !== undefined) return match[1];
  return amongProtocols(request, SOCKET_TOKEN_PREFIX);
}

/** What stands behind a prefix among the subprotocols of a request for a WebSocket. */
function amongProtocols(request: IncomingMessage, prefix: string): string | undefined {
  if (request.headers.upgrade === undefined) return undefined;
  const protocols = (request.headers["sec-websocket-protocol"] ?? "").split(",").map((text) => text.trim());
  return protocols.find((text) => text.startsWith(prefix))?.slice(prefix.length);
}

function cookieOf(request: IncomingMessage, name: string): string | undefined {
  const parts = (request.headers.cookie ?? "").split(";").map((text) => text.trim());
  return parts.find((text) => text.startsWith(`${name}=`))?.slice(name.length + 1);
}

/** Only scripts of the dashboard's own origin have the key, and a browser says Origin with all that is more than reading. */
function sessionOf(request: IncomingMessage, { cookie: name, session }: TcpAccess): { readonly id: string } | undefined {
  const cookie = cookieOf(request, name);
  const header = request.headers[SESSION_KEY_HEADER];
  const key = typeof header === "string" ? header : amongProtocols(request, SOCKET_KEY_PREFIX);
  if (cookie === undefined || key === undefined) return undefined;
  const reads = request.method === "GET" && request.headers.upgrade === undefined;
  if (!reads && request.headers.origin === undefined)
    throw new VivError("forbidden_origin", "A browser's request to change something, or for a WebSocket, must say its Origin.");
  return session(cookie, key);
}

/** The session of a browser, or undefined for a caller that has the token. */
function checkCaller(request: IncomingMessage, access: TcpAccess): string | undefined {
  const presented = presentedToken(request);
  if (presented !== undefined) {
    if (timingSafeEqual(digest(presented), digest(access.token))) return undefined;
    throw new VivError("unauthorized", "The token is not this server's.");
  }
  const session = sessionOf(request, access);
  if (session !== undefined) return session.id;
  if (request.headers[SESSION_KEY_HEADER] !== undefined)
    throw new VivError("unauthorized", "This browser is not logged in.", { remedy: "Open a new link with `viv open`." });
  throw new VivError("unauthorized", "The request carries no token.");
}

/** What needs neither token nor session: pages without data, the login itself, which has a secret of its own, and signed calls of webhooks. */
function isPublic(request: IncomingMessage): boolean {
  if (request.headers.upgrade !== undefined) return false;
  if (request.method === "POST") return request.url === LOGIN_PATH || request.url?.startsWith(HOOK_PATH) === true;
  return request.method === "GET" && (DOCUMENTS.has(request.url ?? "") || isPageFile(pathOf(request)));
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

/** Throws when a request must not go further. Returns the id of the session where a browser sends it. */
export function guard(request: IncomingMessage, tcp: TcpAccess | undefined): string | undefined {
  if (request.url?.startsWith("/") !== true) throw new VivError("forbidden_origin", "The request names a whole address instead of a path.");
  let session: string | undefined;
  if (tcp !== undefined) {
    checkSource(request, tcp);
    if (!isPublic(request)) session = checkCaller(request, tcp);
  }
  checkPath(pathOf(request));
  return session;
}
