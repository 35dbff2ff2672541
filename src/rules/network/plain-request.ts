/**
 * A request that asks a proxy for a page and nothing else: a method that only reads, a whole address, no body; or for a tunnel. What is
 * taken here, Node's strict parser takes, and reads the same; what is not, that parser reads.
 */
import { endToEnd } from "./exchange.ts";
import { parseAuthority, type Authority } from "./host.ts";

export interface PlainRequest extends Authority {
  readonly method: "GET" | "HEAD";
  readonly path: string;
  /** End to end, names and values in turn. */
  readonly headers: readonly string[];
  /** Whether the client wants to go on speaking. */
  readonly isKept: boolean;
}

const START = /^(GET|HEAD) http:\/\/([^/?#]{1,260})([/?][!"$-~]*)? HTTP\/1\.1$/;
const TUNNEL = /^CONNECT ([^/?# ]{1,260}) HTTP\/1\.[01]$/;
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([!-~]+(?:[ \t]+[!-~]+)*|)[ \t]*$/;
const END = "\r\n\r\n";
/** Say that more is to come than this head, or that something else is spoken. */
const MORE: ReadonlySet<string> = new Set(["content-length", "transfer-encoding", "upgrade", "expect", "trailer"]);
const LAST: ReadonlySet<string> = new Set(["close", "keep-alive"]);

/** Undefined for every other request; `data` is all that came. */
export function plainRequest(data: Buffer): PlainRequest | undefined {
  const { first, headers } = readHead(data) ?? {};
  const [, method, authority = "", target = "/"] = START.exec(first ?? "") ?? [];
  if ((method !== "GET" && method !== "HEAD") || headers === undefined) return undefined;
  const hosts = valuesOf(headers, "host");
  const connection = valuesOf(headers, "connection").map((value) => value.toLowerCase());
  const to = hosts.length === 1 && hosts[0] === authority ? parseAuthority(authority, 80) : undefined;
  if (to === undefined || connection.length > 1 || connection.some((word) => !LAST.has(word))) return undefined;
  const path = target.startsWith("?") ? `/${target}` : target;
  return { ...to, method, path, headers: endToEnd(headers), isKept: connection[0] !== "close" };
}

/** Where a request for a tunnel leads; undefined for every other request. */
export function tunnelRequest(data: Buffer): Authority | undefined {
  const { first, headers } = readHead(data) ?? {};
  const [, authority] = TUNNEL.exec(first ?? "") ?? [];
  if (authority === undefined || headers === undefined || valuesOf(headers, "host").length > 1) return undefined;
  return parseAuthority(authority);
}

function readHead(data: Buffer): { readonly first: string; readonly headers: readonly string[] } | undefined {
  const text = data.toString("latin1");
  if (text.indexOf(END) !== text.length - END.length) return undefined;
  const [first = "", ...lines] = text.slice(0, -END.length).split("\r\n");
  const headers = readHeaders(lines);
  return headers && { first, headers };
}

function readHeaders(lines: readonly string[]): string[] | undefined {
  const headers: string[] = [];
  for (const line of lines) {
    const [, name, value] = HEADER.exec(line) ?? [];
    if (name === undefined || value === undefined || MORE.has(name.toLowerCase())) return undefined;
    headers.push(name, value);
  }
  return headers;
}

function valuesOf(headers: readonly string[], wanted: string): string[] {
  return headers.filter((_, index) => index % 2 === 1 && headers[index - 1]?.toLowerCase() === wanted);
}
