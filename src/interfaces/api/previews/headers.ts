/** Headers between a browser and a program inside, at a preview's origin: what is the server's stays outside, what is the program's goes through. */
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { SESSION_KEY_HEADER } from "../../../base/schema/routes.ts";
import { applicationProtocols, HOP_BY_HOP, keptHeaders } from "../inside-http.ts";
import { cookiePairs, isOwnCookie } from "./visitor.ts";

const NOT_INSIDE = new Set([...HOP_BY_HOP, "cookie", "sec-websocket-protocol", SESSION_KEY_HEADER]);

/** What would reach beyond the origin of the preview, or is said by the server instead. */
const NOT_OUTSIDE = new Set([
  ...HOP_BY_HOP,
  "set-cookie",
  "set-cookie2",
  "clear-site-data",
  "strict-transport-security",
  "public-key-pins",
  "alt-svc",
  "content-security-policy",
  "x-frame-options",
]);

export interface InwardOptions {
  /** The server's own token: a caller that sends it here by mistake keeps it. */
  readonly token: string;
  /** Whether the program expects to be asked as localhost, by callers without an origin. */
  readonly asLocalhost: boolean;
  /** Origin of the preview. */
  readonly origin: string;
  /** The same, as the program is told it. */
  readonly inside: string;
}

/** What a proxy in front says of an address that the program is not told. */
const OF_PROXY = ["forwarded", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port", "x-forwarded-for"];

/**
 * What the program inside gets. Host and Origin are equal, so that its own checks find them so, and below localhost, which dev servers
 * take without being told: where the browser knows the preview by another name, both are put in its place.
 */
export function inwardHeaders(incoming: IncomingMessage, { token, asLocalhost, origin, inside }: InwardOptions): OutgoingHttpHeaders {
  const headers = { ...keptHeaders(incoming.headers, NOT_INSIDE), ...applicationProtocols(incoming.headers) };
  const cookies = cookiePairs(incoming).filter(([name]) => !isOwnCookie(name));
  if (cookies.length > 0) headers["cookie"] = cookies.map(([name, value]) => (name === "" ? value : `${name}=${value}`)).join("; ");
  if (incoming.headers.authorization?.includes(token) === true) delete headers["authorization"];
  if (origin !== inside) {
    headers["host"] = new URL(inside).host;
    for (const name of ["origin", "referer"] as const) {
      const said = incoming.headers[name];
      if (said === origin || said?.startsWith(`${origin}/`) === true) headers[name] = inside + said.slice(origin.length);
    }
    for (const name of OF_PROXY) delete headers[name];
  }
  if (asLocalhost) {
    headers["host"] = "localhost";
    for (const name of ["origin", "referer"]) delete headers[name];
  }
  return headers;
}

/** A cookie belongs to this preview alone: none is set for the names above it, and none of the server's. */
function ownCookie(line: string, frame: boolean): string[] {
  const [pair = "", ...attributes] = line.split(";").map((text) => text.trim());
  const name = pair.slice(0, Math.max(0, pair.indexOf("="))).trim();
  if (isOwnCookie(name)) return [];
  const replaced = frame ? ["domain", "samesite", "secure", "partitioned"] : ["domain"];
  const kept = attributes.filter((text) => !replaced.includes((text.split("=")[0] ?? "").trim().toLowerCase()));
  return [[pair, ...kept, ...(frame ? ["SameSite=None", "Secure", "Partitioned"] : [])].join("; ")];
}

/** The program's policy but for who may frame it, which the server says. */
function withoutAncestors(policy: string): string {
  const directives = policy.split(";").filter((text) => !/^\s*frame-ancestors(?:\s|$)/i.test(text));
  return directives.join(";").trim();
}

export interface OutwardOptions {
  /** Origin of the preview. */
  readonly origin: string;
  /** Addresses that the program may name instead of it: its port inside, and the preview as it is told of it. */
  readonly door: string;
  readonly inside: string;
  readonly frame: boolean;
  /** Who may frame the preview, as a policy. */
  readonly ancestors: string;
}

/** What the browser gets. */
export function outwardHeaders(
  { headers }: IncomingMessage,
  { origin, door, inside, frame, ancestors }: OutwardOptions,
): OutgoingHttpHeaders {
  const kept = keptHeaders(headers, NOT_OUTSIDE);
  const policies = String(headers["content-security-policy"] ?? "")
    .split(",")
    .map(withoutAncestors)
    .filter((policy) => policy !== "");
  const cookies = (headers["set-cookie"] ?? []).flatMap((line) => ownCookie(line, frame));
  const known = `localhost:${door}|127\\.0\\.0\\.1:${door}|\\[::1\\]:${door}|${new URL(inside).host.replaceAll(".", "\\.")}`;
  const location = headers.location?.replace(new RegExp(`^http://(?:${known})(?=[/?#]|$)`), origin);
  return {
    ...kept,
    ...(location === undefined ? {} : { location }),
    ...(cookies.length === 0 ? {} : { "set-cookie": cookies }),
    "content-security-policy": [...policies, ancestors].join(", "),
  };
}
