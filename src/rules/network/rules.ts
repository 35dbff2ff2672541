/** What a sandbox's rules say of a host and port. A pure function: a denied name causes no query. */
import type { HostRule, NetworkRules, PrivateHost } from "../../base/schema/network.ts";
import { addressKind } from "./addresses.ts";
import { isAddress, shownHost } from "./host.ts";

export type DenialCode =
  | "network_off"
  | "metadata"
  | "production"
  | "private_address"
  | "port_closed"
  | "host_not_allowed"
  | "policy"
  | "host_held"
  | "own_port"
  | "too_many_names"
  | "too_many_requests"
  | "too_many_connections"
  | "too_many_bytes"
  | "not_recorded"
  | "not_tls"
  | "wrong_tls_name"
  | "bad_request"
  | "not_resolved"
  | "unreachable"
  | "effect_held"
  | "effect_denied"
  | "secret_held"
  | "secret_denied";

export interface Allowed {
  readonly verdict: "allow";
  /** The rule that decided, for people. */
  readonly rule: string;
  /** Any protocol, instead of TLS and HTTP. */
  readonly tcp: boolean;
  /** Private addresses are fine. */
  readonly private: boolean;
  /** The question by which a person let it through. */
  readonly approval?: string;
}

export interface Denied {
  readonly verdict: "deny";
  readonly code: DenialCode;
  readonly reason: string;
  /** What to do now. */
  readonly remedy: string;
  readonly rule?: string;
}

export type Ruling = Allowed | Denied;

/** Names under which clouds offer their metadata. */
const METADATA_NAMES = new Set([
  "metadata",
  "metadata.google.internal",
  "metadata.goog",
  "metadata.azure.internal",
  "instance-data",
  "instance-data.ec2.internal",
]);

const PUBLIC = "public";

/** Last labels that no server of the public DNS knows: what is found under them is of one machine or network. */
const RESERVED = new Set(["alt", "arpa", "invalid", "local", "localhost", "onion", "test"]);

export function matches(pattern: string, host: string): boolean {
  return pattern.startsWith("*.") ? host.length > pattern.length - 1 && host.endsWith(pattern.slice(1)) : pattern === host;
}

/** Whether only a rule that names it can make it a host. */
export function isReserved(host: string): boolean {
  return !isAddress(host) && (!host.includes(".") || RESERVED.has(host.slice(host.lastIndexOf(".") + 1)));
}

/** Whether a host is a metadata service by its name or address alone. */
export function isMetadata(host: string): boolean {
  return METADATA_NAMES.has(host) || (isAddress(host) && addressKind(host) === "metadata");
}

export function decide(rules: NetworkRules, opened: readonly PrivateHost[], host: string, port: number): Ruling {
  return closed(rules, host) ?? open(rules, opened, host, port);
}

export function deny(code: DenialCode, reason: string, remedy: string, rule?: string): Denied {
  return { verdict: "deny", code, reason, remedy, ...(rule === undefined ? {} : { rule }) };
}

/** What no rule opens. */
function closed(rules: NetworkRules, host: string): Denied | undefined {
  if (rules.mode === "off")
    return deny(
      "network_off",
      "This sandbox has no network.",
      "Set `network` in vivarium.json, or run `viv network SANDBOX --mode public` outside.",
    );
  if (isMetadata(host))
    return deny(
      "metadata",
      `${host} is a metadata service, which no sandbox reaches.`,
      "Pass what is needed from it as a variable or a secret.",
    );
  const named = rules.production.find((pattern) => matches(pattern, host));
  if (named === undefined) return undefined;
  return deny(
    "production",
    `${host} is named as production.`,
    "Use a test system; production is reached from no sandbox.",
    `production ${named}`,
  );
}

function open(rules: NetworkRules, opened: readonly PrivateHost[], host: string, port: number): Ruling {
  const own = [...opened, ...(rules.private ?? [])].find((rule) => matches(rule.host, host) && rule.ports.includes(port));
  if (own !== undefined) return { verdict: "allow", rule: `private ${own.host}`, tcp: own.tcp, private: true };
  const named = rules.allow.filter((rule) => matches(rule.host, host));
  const rule = named.find(({ ports }) => (ports ?? rules.ports).includes(port));
  if (rule !== undefined) return { verdict: "allow", rule: `allow ${rule.host}`, tcp: rule.tcp, private: false };
  if (isAddress(host) && addressKind(host) !== "public") return privateAddress(host, port);
  if (rules.mode === "allow-list" && named.length === 0)
    return deny(
      "host_not_allowed",
      `${host} is not on the list of allowed hosts.`,
      `Add it to network.allow in vivarium.json, or run \`viv network SANDBOX --allow ${host}\` outside.`,
    );
  if (!rules.ports.includes(port) || rules.mode === "allow-list") return portClosed(host, port, named);
  if (isReserved(host) && !isLocalhost(host)) return reserved(host, port);
  return { verdict: "allow", rule: PUBLIC, tcp: false, private: false };
}

/** Whether a config or a person named the host, rather than all of the web. */
export function isNamed({ rule }: Allowed): boolean {
  return rule !== PUBLIC;
}

function portClosed(host: string, port: number, named: readonly HostRule[]): Denied {
  const rule = named[0]?.host;
  return deny(
    "port_closed",
    `Port ${port} of ${host} is closed.`,
    "Name the port with the host in network.allow of vivarium.json.",
    rule === undefined ? undefined : `allow ${rule}`,
  );
}

/** Names that no public server knows (RFC 6761, 6762, 8375, and .internal). */
const NEVER_PUBLIC = /^[^.]+$|(^|\.)(localhost|local|internal|home\.arpa)$/;

/** Whether a host, or all that a pattern stands for, has no public address, as far as its name tells. */
export function isNeverPublic(host: string): boolean {
  return isAddress(host) ? addressKind(host) !== "public" : NEVER_PUBLIC.test(host);
}

/** It has an address everywhere, and what is said of that says more. */
export function isLocalhost(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost");
}

function reserved(host: string, port: number): Denied {
  return deny(
    "not_resolved",
    `${host} has no address: no public name is like it.`,
    `If it is a host of your own network, \`viv network allow-private ${shownHost(host)}:${port}\` opens it for this project, outside.`,
  );
}

export function privateAddress(host: string, port: number, address = host): Denied {
  const where = address === host ? `${host} is` : `${host} leads to ${address}, which is`;
  return deny(
    "private_address",
    `${where} not a public address.`,
    `Outside, \`viv network allow-private ${shownHost(host)}:${port}\` opens it for this project.`,
  );
}
