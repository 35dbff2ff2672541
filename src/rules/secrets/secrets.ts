/**
 * The secrets of this machine's user. Sealed values lie in the store; the part of the server that sends a request opens them for that
 * request alone, if it goes to a host that the secret is bound to. Changes count from the next request on.
 */
import { randomBytes } from "node:crypto";
import type { Approvals } from "../approvals/approvals.ts";
import type { Audit } from "../audit/audit.ts";
import type { HeadersWithSecrets } from "../network/interception.ts";
import { matches, type Denied } from "../network/rules.ts";
import { OWNER, type AuditEntry } from "../../base/schema/audit.ts";
import { VivError } from "../../base/schema/errors.ts";
import { canonicalHost } from "../../base/schema/network.ts";
import { boundHost, type Secret, type SecretBinding, type SecretKind } from "../../base/schema/secret.ts";
import type { Store } from "../../base/store/store.ts";
import type { SecretRow } from "../../base/store/rows.ts";
import { SecretScope } from "./scope.ts";
import type { SealingKey } from "./sealing-key.ts";

/** Where a request goes, as the one who sends it knows. */
export interface Destination {
  readonly protocol: "http" | "https";
  readonly host: string;
  readonly port: number;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
}

export interface SecretsOptions {
  /** Used by a part of the server that counts what they cost: no other part sends them. */
  readonly reserved?: Pick<ReadonlySet<string>, "has">;
  /** Asks a person about projects that a secret was not kept for; without it they don't get it. */
  readonly approvals?: Approvals;
  readonly holdMs?: number;
}

/** A placeholder is random letters: it tells nothing about the secret. */
const PLACEHOLDER_BYTES = 18;

export class Secrets {
  readonly #store: Store;
  readonly #audit: Audit;
  readonly #key: SealingKey;
  /** All rows; this server is the only one that writes them. */
  readonly #rows = new Map<string, SecretRow>();
  /** Counts up with every change of them. */
  #version = 0;

  readonly #reserved: Pick<ReadonlySet<string>, "has">;
  readonly #scope: SecretScope;

  private constructor(store: Store, audit: Audit, key: SealingKey, { reserved, approvals, holdMs }: SecretsOptions) {
    this.#store = store;
    this.#audit = audit;
    this.#key = key;
    this.#reserved = reserved ?? new Set();
    this.#scope = new SecretScope(store, approvals, holdMs);
  }

  static async open(store: Store, audit: Audit, key: SealingKey, options: SecretsOptions = {}): Promise<Secrets> {
    const secrets = new Secrets(store, audit, key, options);
    for (const row of await store.secrets.list()) secrets.#rows.set(row.name, row);
    return secrets;
  }

  list(): Secret[] {
    return [...this.#rows.values()].map(shown).toSorted((one, other) => (one.name < other.name ? -1 : 1));
  }

  /** The same name keeps its placeholder: what holds it inside goes on working with the new value. */
  async set(
    name: string,
    value: string,
    binding: SecretBinding & { readonly kind?: SecretKind },
    given?: Secret["projects"],
  ): Promise<Secret> {
    const before = this.#rows.get(name);
    const projects = given === undefined ? (before === undefined ? [] : before.projects) : given;
    const now = new Date().toISOString();
    const placeholder = before?.placeholder ?? `viv-secret-${randomBytes(PLACEHOLDER_BYTES).toString("base64url")}`;
    const { kind = "key" } = binding;
    const known: Secret = { name, ...bindingOf(binding), kind, projects, placeholder, createdAt: before?.createdAt ?? now, changedAt: now };
    const row: SecretRow = { ...known, sealed: this.#key.seal(value, contextOf(known)) };
    await this.#audit.record(this.#entry(before === undefined ? "secret.set" : "secret.replace", name, binding.hosts, projects));
    await this.#store.change((change) => change.secrets.put(row));
    this.#rows.set(name, row);
    this.#version += 1;
    return known;
  }

  /** Whether exactly this is kept already. */
  has(name: string, value: string, binding: SecretBinding): boolean {
    const row = this.#rows.get(name);
    if (row === undefined || JSON.stringify(bindingOf(row)) !== JSON.stringify(bindingOf(binding))) return false;
    return this.#key.open(row.sealed, contextOf(row)) === value;
  }

  get version(): number {
    return this.#version;
  }

  async remove(name: string): Promise<void> {
    if (!this.#rows.has(name))
      throw new VivError("not_found", `There is no secret ${name}.`, { remedy: "`viv secret ls` shows those that exist." });
    // Whatever happens to the row, it is not used again.
    this.#rows.delete(name);
    this.#version += 1;
    await this.#store.change((change) => change.secrets.remove(name));
    // It is gone: whether that can be recorded changes nothing any more.
    this.#audit.note(this.#entry("secret.remove", name, [], []));
  }

  find(name: string): Secret | undefined {
    const row = this.#rows.get(name);
    return row === undefined ? undefined : shown(row);
  }

  /** The value, if it may go there. Keep it no longer than the request. */
  valueFor(name: string, destination: Destination): string {
    const row = this.#rows.get(name);
    if (row === undefined)
      throw new VivError("not_found", `There is no secret ${name}.`, { remedy: `Keep one with \`viv secret set ${name} --host HOST\`.` });
    if (!isBound(row, destination))
      throw new VivError(
        "denied",
        `The secret ${name} is not bound to ${destination.method} ${destination.host}:${destination.port}${destination.path}.`,
        {
          remedy: "`viv secret ls` shows where it may go; set it again to change that.",
        },
      );
    return this.#key.open(row.sealed, contextOf(row));
  }

  /** Whether a secret is put into requests to this host. */
  isInjected(place: Pick<Destination, "protocol" | "host" | "port">): boolean {
    return this.#injected().some((row) => isFor(row, place));
  }

  /** Nothing if the sandbox's project may use the secrets that headers ask for by their placeholders, or why not. */
  async permit(sandbox: string, to: Destination, headers: readonly string[], signal: AbortSignal): Promise<Denied | undefined> {
    const usable = this.#usable(to).map((row) => ({ row, value: "" }));
    const asked = new Set<string>();
    for (const [index, text] of headers.entries()) if (index % 2 === 1) fillValue(headers[index - 1] ?? "", text, usable, asked);
    const rows = usable.flatMap(({ row }) => (asked.has(row.name) ? [row] : []));
    return this.#scope.permit(sandbox, rows, signal);
  }

  /** The same for one that is asked for by its name. */
  async permitNamed(sandbox: string, name: string, signal: AbortSignal): Promise<Denied | undefined> {
    const row = this.#rows.get(name);
    return row === undefined ? undefined : this.#scope.permit(sandbox, [row], signal);
  }

  /** What stands for secrets that are put into requests, by name. */
  placeholders(): Record<string, string> {
    return Object.fromEntries(this.#injected().map(({ name, placeholder }) => [name, placeholder]));
  }

  /**
   * Headers, names and values in turn, with secrets in place of placeholders where they may go; also within a login of Basic. With
   * them what an answer of that host must not bring back.
   */
  fill(to: Destination, headers: readonly string[]): HeadersWithSecrets {
    const known = this.#injected().filter((row) => isFor(row, to));
    const opened = known.map((row) => ({ row, value: this.#key.open(row.sealed, contextOf(row)) }));
    const bound = new Set(this.#usable(to));
    const usable = opened.filter(({ row }) => bound.has(row));
    const used = new Set<string>();
    const filled = headers.map((text, index) => (index % 2 === 0 ? text : fillValue(headers[index - 1] ?? "", text, usable, used)));
    const put = filled.filter((text, index) => text !== headers[index]);
    const hidden = [
      ...opened.flatMap(({ value }) => [value, ...withinBase64(value)]),
      ...put.flatMap((text) => /^Basic (.*)$/i.exec(text)?.[1] ?? []),
    ];
    if (put.length === 0) return { headers, hidden, used: [] };
    // What comes back packed could not be searched.
    const others = filled.flatMap((text, index) =>
      index % 2 === 0 && text.toLowerCase() !== "accept-encoding" ? [text, filled[index + 1] ?? ""] : [],
    );
    return { headers: [...others, "Accept-Encoding", "identity"], hidden, used: [...used] };
  }

  /** Resolves once it is durable that these go to a host; without that they must not. */
  async recordUse(
    sandbox: { readonly id: string; readonly name: string },
    { host, port, method, path }: Destination,
    names: readonly string[],
  ): Promise<void> {
    await this.#audit.record({
      actor: { kind: "agent", name: sandbox.name },
      action: "secret.use",
      target: names.join(", "),
      arguments: { host, port, method, path: path.slice(0, 1024) },
      label: "AUTONOMOUS (whitelisted)",
      rule: `bound to ${host}`,
      reason: null,
      sandbox: sandbox.id,
      snapshot: null,
    });
  }

  /** The server itself sends a secret, as the user's config says. */
  async recordOwnUse({ host, port, method, path }: Destination, name: string): Promise<void> {
    await this.#audit.record({
      actor: { kind: "server", name: "server" },
      action: "secret.use",
      target: name,
      arguments: { host, port, method, path: path.slice(0, 1024) },
      label: "RECORDED",
      rule: `bound to ${host}`,
      reason: null,
      sandbox: null,
      snapshot: null,
    });
  }

  #usable(to: Destination): SecretRow[] {
    // A client does not log in with OPTIONS; it only asks what could be asked.
    return to.method === "OPTIONS" ? [] : this.#injected().filter((row) => isBound(row, to));
  }

  #injected(): SecretRow[] {
    return [...this.#rows.values()].filter(({ name }) => !this.#reserved.has(name));
  }

  #entry(action: string, name: string, hosts: readonly string[], projects: Secret["projects"]): AuditEntry {
    return {
      actor: OWNER,
      action,
      target: name,
      arguments: { hosts: [...hosts], projects },
      label: "RECORDED",
      rule: null,
      reason: null,
      sandbox: null,
      snapshot: null,
    };
  }
}

/** How a text stands in base64, wherever in it: without the letters that its neighbours have a part in. */
function withinBase64(text: string): string[] {
  return [0, 1, 2].map((before) =>
    Buffer.from(" ".repeat(before) + text, "latin1")
      .toString("base64")
      .slice(Math.ceil((before * 4) / 3), Math.floor(((before + text.length) * 4) / 3)),
  );
}

function fillValue(
  name: string,
  value: string,
  usable: readonly { readonly row: SecretRow; readonly value: string }[],
  used: Set<string>,
): string {
  const basic = /^Basic ([A-Za-z0-9+/]+={0,2})$/i.exec(value)?.[1];
  const text = basic === undefined ? value : Buffer.from(basic, "base64").toString("latin1");
  let filled = text;
  for (const { row, value: secret } of usable) {
    if (row.header !== null && !row.header.toLowerCase().startsWith(`${name.toLowerCase()}: `)) continue;
    if (!filled.includes(row.placeholder)) continue;
    filled = filled.replaceAll(row.placeholder, () => secret);
    used.add(row.name);
  }
  if (filled === text) return value;
  return basic === undefined ? filled : `Basic ${Buffer.from(filled, "latin1").toString("base64")}`;
}

const USUAL_PORTS = { http: 80, https: 443 } as const;

/** By host and port. */
function isFor({ hosts }: Pick<SecretBinding, "hosts">, to: Pick<Destination, "protocol" | "host" | "port">): boolean {
  return hosts.some((text) => {
    const { host, port } = boundHost(text);
    return matches(canonicalHost(host), to.host) && to.port === (port === undefined ? USUAL_PORTS[to.protocol] : Number(port));
  });
}

export function isBound(binding: SecretBinding, to: Destination): boolean {
  const { methods, path } = binding;
  if (!isFor(binding, to)) return false;
  if (methods.length > 0 && !methods.some((method) => method === to.method)) return false;
  return path === null || isBelow(path, to.path);
}

/** Whole parts alone: /v1 is not the beginning of /v10, and a path that climbs is below nothing, also for who decodes it twice. */
function isBelow(prefix: string, path: string): boolean {
  if (/(^|\/)(\.|%(25)*2e){1,2}([/;]|%(25)*3b|$)/i.test(path) || /%(25)*(2f|5c)|\\/i.test(path)) return false;
  return path === prefix || path.startsWith(prefix.endsWith("/") ? prefix : `${prefix}/`);
}

/** A row that was edited behind our back does not open any more. What older rows did not have is left out where it is as it was for them. */
function contextOf({ name, hosts, methods, path, header, kind, projects, placeholder }: Secret): string {
  const scope = projects?.length === 0 ? [] : [projects];
  return JSON.stringify([name, hosts, methods, path, header, placeholder, ...scope, ...(kind === "key" ? [] : [kind])]);
}

function bindingOf({ hosts, methods, path, header }: SecretBinding): SecretBinding {
  return { hosts, methods, path, header };
}

function shown(row: SecretRow): Secret {
  const { sealed: _, ...secret } = row;
  return secret;
}
