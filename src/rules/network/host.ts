/**
 * Hosts and ports as a client names them. What is not canonical is refused before any rule looks at it: two readers of
 * one name must never see two hosts.
 */
import { isIPv4, isIPv6 } from "node:net";
import { portNumber } from "../../base/schema/numbers.ts";

const MAX_NAME = 253;
const NAME = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/;

/** Names that every reader takes as they are: no address ends with a word, and nothing in them is encoded. Reading an URL takes longer. */
const SAME = /^(?!(?:.*\.)?xn--)(?:.*\.)?[a-z][a-z0-9_-]*$/;

export interface Authority {
  /** Lower case; an IPv6 address without brackets. */
  readonly host: string;
  readonly port: number;
}

/** The canonical form of a host, undefined if it is none. IPv6 addresses stand in brackets where `bracketed`. */
export function parseHost(text: string, bracketed = true): string | undefined {
  if (text.length === 0 || text.length > MAX_NAME + 2) return undefined;
  const lower = text.toLowerCase();
  if (lower.startsWith("[") || (!bracketed && lower.includes(":"))) return parseSix(bracketed ? lower : `[${lower}]`);
  if (lower.length > MAX_NAME || !NAME.test(lower)) return undefined;
  // The last word on what is an address: 127.1, 0x7f000001 and 2130706433 come out as another host than they went in.
  return isIPv4(lower) || SAME.test(lower) || canonical(lower) === lower ? lower : undefined;
}

function parseSix(text: string): string | undefined {
  const inner = text.endsWith("]") ? text.slice(1, -1) : "";
  // A zone (%eth0) names an interface of this machine.
  if (!/^[0-9a-f:.]+$/.test(inner) || !isIPv6(inner)) return undefined;
  return canonical(`[${inner}]`)?.slice(1, -1);
}

function canonical(host: string): string | undefined {
  const url = URL.parse(`http://${host}/`);
  return url?.hostname;
}

/** `host`, `host:port` or `[address]:port`; without a port, the one given. */
export function parseAuthority(text: string, defaultPort?: number): Authority | undefined {
  const match = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/s.exec(text);
  if (match === null) return undefined;
  const host = parseHost(match[1] ?? "");
  const port = match[2] === undefined ? defaultPort : portNumber(match[2]);
  return host === undefined || port === undefined ? undefined : { host, port };
}

export function isAddress(host: string): boolean {
  return isIPv4(host) || isIPv6(host);
}

/** As it stands in a Host header or a URL. */
export function shownHost(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
