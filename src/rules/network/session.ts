/** One sandbox as the proxy sees it: its rules, what it has open, and what it has used. */
import type { Socket } from "node:net";
import type { MovedBytes, MovedConnection } from "../../base/host/moved-connection.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { NetworkRules, PrivateHost } from "../../base/schema/network.ts";
import { KnownNames } from "./names.ts";
import { Lookups } from "./resolver.ts";
import { matches } from "./rules.ts";

/** A connection to the outside that is under way. */
export interface Flow {
  readonly host: string;
  readonly port: number;
  /** The side outside; bytes are counted there. */
  readonly outside: { readonly bytes: MovedBytes; readonly ended: Promise<unknown> };
  /** Cuts it off on both sides. */
  readonly cut: () => void;
}

/** A connection from inside. */
interface Client {
  readonly closed: Promise<void>;
  destroy(): void;
}

export class Session {
  readonly sandbox: string;
  rules: NetworkRules;
  allowed = 0;
  denied = 0;
  /** Bodies in memory that wait for a person. */
  heldBytes = 0;
  /** Hosts and ports that a person let through; what is open to them may stay. */
  readonly approved = new Set<string>();
  /** Hosts and ports with private addresses that a person opened for this sandbox. */
  readonly opened: PrivateHost[] = [];
  readonly lookups = new Lookups();
  readonly names = new KnownNames();
  readonly #flows = new Set<Flow>();
  readonly #clients = new Set<Client>();
  readonly #moved = new WeakMap<Socket, MovedConnection>();
  /** Bytes of connections that have ended. */
  #sent = 0;
  #received = 0;
  /** When each name below a pattern was asked for last. */
  readonly #names = new Map<string, Map<string, number>>();

  #windowBegan = 0;
  #requests = 0;

  constructor(sandbox: string, rules: NetworkRules) {
    this.sandbox = sandbox;
    this.rules = rules;
  }

  /** False if there are too many connections from inside. One that was admitted stays so. */
  admit(client: Client): boolean {
    if (this.#clients.has(client)) return true;
    if (this.#clients.size >= LIMITS.egressConnections) return false;
    this.#clients.add(client);
    void client.closed.then(() => this.#clients.delete(client));
    return true;
  }

  /** The same for one that the server speaks with. */
  admitSocket(socket: Socket, connection: MovedConnection): boolean {
    this.#moved.set(socket, connection);
    return this.admit({ closed: connection.closed, destroy: () => socket.destroy() });
  }

  /** What the mover has of a connection from inside; undefined for TLS that was opened. */
  movedOf(client: Socket): MovedConnection | undefined {
    return this.#moved.get(client);
  }

  begin(flow: Flow): void {
    this.#flows.add(flow);
    void flow.outside.ended.then(() => {
      this.#flows.delete(flow);
      const { sent, received } = flow.outside.bytes;
      this.#sent += sent;
      this.#received += received;
    });
  }

  get connections(): number {
    return this.#clients.size;
  }

  get isIdle(): boolean {
    return this.#flows.size === 0;
  }

  get bytes(): { sent: number; received: number } {
    let sent = this.#sent;
    let received = this.#received;
    for (const { outside } of this.#flows) {
      const { bytes } = outside;
      sent += bytes.sent;
      received += bytes.received;
    }
    return { sent, received };
  }

  get exhausted(): boolean {
    const { sent, received } = this.bytes;
    return sent + received > LIMITS.egressBytes;
  }

  /** Whether one more request may be decided on now; the first that may not is `last`. */
  admitRequest(): "yes" | "last" | "no" {
    const now = performance.now();
    if (now - this.#windowBegan > LIMITS.egressRequestsMs) {
      this.#windowBegan = now;
      this.#requests = 0;
    }
    this.#requests += 1;
    if (this.#requests <= LIMITS.egressRequests) return "yes";
    return this.#requests === LIMITS.egressRequests + 1 ? "last" : "no";
  }

  /** Ends every flow that is not right any more. */
  cutUnless(right: (flow: Flow) => boolean): void {
    for (const flow of this.#flows) if (!right(flow)) flow.cut();
  }

  /** Whether one more name below a pattern may be asked for: labels can carry data out. */
  admitName(host: string): boolean {
    const pattern = this.rules.allow.find((rule) => rule.host.startsWith("*.") && matches(rule.host, host))?.host;
    if (pattern === undefined) return true;
    const seen = this.#names.get(pattern) ?? new Map<string, number>();
    this.#names.set(pattern, seen);
    const now = performance.now();
    for (const [name, at] of seen) if (now - at > LIMITS.egressNamesMs) seen.delete(name);
    if (!seen.has(host) && seen.size >= LIMITS.egressNames) return false;
    seen.set(host, now);
    return true;
  }

  close(): void {
    for (const flow of this.#flows) flow.cut();
    for (const client of this.#clients) client.destroy();
  }
}
