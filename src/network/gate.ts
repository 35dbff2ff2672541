/**
 * The one way out. Every request, of whatever protocol, is decided here: rules, further judges, the record, one
 * resolution, every address checked, and only a checked address is dialled.
 */
import { describe } from "../host/log.ts";
import { LIMITS } from "../schema/limits.ts";
import type { PrivateHost } from "../schema/network.ts";
import { addressKind, isLoopback } from "./addresses.ts";
import { isAddress } from "./host.ts";
import type { Interceptor } from "./interception.ts";
import { Outside } from "./outside.ts";
import type { Resolve } from "./resolver.ts";
import { decide, deny, privateAddress, type Allowed, type Denied, type Ruling } from "./rules.ts";
import type { Session } from "./session.ts";

export type Protocol = "http" | "https" | "connect" | "socks5" | "direct";

export interface Question {
  readonly host: string;
  readonly port: number;
  readonly protocol: Protocol;
  /** Of HTTP that can be read: plain, or in TLS that was opened. */
  readonly method?: string;
  readonly path?: string;
}

/** What was decided, or how it went on. */
export interface NetworkRecord extends Question {
  readonly sandbox: string;
  readonly verdict: "allow" | "deny";
  /** Why it was denied. */
  readonly code?: string;
  readonly rule?: string;
  readonly reason?: string;
  /** The address dialled. */
  readonly address?: string;
  /** Bytes that went either way, once it has ended. */
  readonly ended?: { readonly sentBytes: number; readonly receivedBytes: number };
}

export interface GateOptions {
  readonly resolve: Resolve;
  /** Hosts the user's own config opens. */
  readonly opened: readonly PrivateHost[];
  /** Ports of this machine that are never dialled at a private address: the server's own. */
  readonly ownPorts: () => readonly number[];
  /** Whether somebody listens on a port of this machine, to tell it to who asks for loopback. */
  readonly listens: (port: number) => boolean;
  /** Asked after the rules allowed; undefined leaves it at that. */
  readonly judge?: ((session: Session, question: Question) => Promise<Denied | undefined>) | undefined;
  /** Opens TLS to hosts that a secret belongs to; there once the server has its secrets. */
  readonly interceptor?: (() => Interceptor | undefined) | undefined;
  /** Told of every decision before it takes effect. What can't be recorded is refused. */
  readonly record: (record: NetworkRecord) => Promise<void> | void;
}

const TOO_MANY = deny("too_many_requests", "Too many requests came from this sandbox in a short time.", "Wait a few seconds.");

export interface Dialled {
  readonly ruling: Allowed;
  readonly outside: Outside;
}

export class Gate {
  readonly #options: GateOptions;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /** A connection to a checked address, or why there is none. */
  async open(session: Session, question: Question, signal?: AbortSignal): Promise<Dialled | Denied> {
    const admitted = session.admitRequest();
    if (admitted === "no") return TOO_MANY;
    const ruling = admitted === "last" ? TOO_MANY : await this.#rule(session, question);
    if (ruling.verdict === "deny") return this.refuse(session, question, ruling);
    const addresses = await this.#addresses(question, ruling);
    if (!Array.isArray(addresses)) return this.refuse(session, question, addresses);
    const [address = ""] = addresses;
    const failure = await this.#recorded(session, { ...question, verdict: "allow", rule: ruling.rule, address });
    if (failure !== undefined) return failure;
    session.allowed += 1;
    const outside = await dialFirst(addresses, question.port, signal);
    if (outside === undefined)
      return deny("unreachable", `${question.host}:${question.port} does not answer.`, "Check the host and port, and try again.");
    const { socket } = outside;
    const late = decide(session.rules, this.#options.opened, question.host, question.port);
    if (late.verdict === "deny") {
      // The rules changed while it was dialled.
      socket.destroy();
      return this.refuse(session, question, late);
    }
    socket.once("close", () => {
      const ended = { sentBytes: socket.bytesWritten, receivedBytes: socket.bytesRead };
      void this.#recorded(session, { ...question, verdict: "allow", rule: ruling.rule, address, ended });
    });
    return { ruling, outside };
  }

  /** What opens TLS to this host, if anything does. */
  interceptor(host: string): Interceptor | undefined {
    const found = this.#options.interceptor?.();
    return found?.wants(host) === true ? found : undefined;
  }

  /** What the rules say now, without asking or telling anybody. */
  ruling(session: Session, host: string, port: number): Ruling {
    return decide(session.rules, this.#options.opened, host, port);
  }

  /** Counts and records a denial, and gives it back. */
  async refuse(session: Session, question: Question, denied: Denied): Promise<Denied> {
    session.denied += 1;
    const { code, reason, rule } = denied;
    await this.#recorded(session, { ...question, verdict: "deny", code, reason, ...(rule === undefined ? {} : { rule }) });
    return denied;
  }

  async #rule(session: Session, question: Question): Promise<Ruling> {
    const ruling = decide(session.rules, this.#options.opened, question.host, question.port);
    if (ruling.verdict === "deny") return this.#explained(ruling, question);
    if (session.exhausted)
      return deny("too_many_bytes", "This sandbox has used up the bytes it may move.", "Make a new sandbox, or fork this one.");
    if (!session.admitName(question.host))
      return deny("too_many_names", `Too many names below ${ruling.rule} within a minute.`, "Wait a minute.", ruling.rule);
    return (await this.#options.judge?.(session, question)) ?? ruling;
  }

  async #recorded(session: Session, record: Omit<NetworkRecord, "sandbox">): Promise<Denied | undefined> {
    try {
      await this.#options.record({ ...record, sandbox: session.sandbox });
      return undefined;
    } catch (error) {
      return deny(
        "not_recorded",
        `The request could not be recorded: ${describe(error)}`,
        "Free space on the host; what can't be recorded is refused.",
      );
    }
  }

  /** Every address of the host, all of them fit to be dialled; one that is not spoils the rest. */
  async #addresses({ host, port }: Question, ruling: Allowed): Promise<string[] | Denied> {
    const found = isAddress(host) ? [host] : await this.#resolved(host);
    if (found.length === 0) return deny("not_resolved", `${host} has no address.`, "Check the name.");
    for (const address of found) {
      const kind = addressKind(address);
      if (kind === "metadata") return deny("metadata", `${host} leads to the metadata service ${address}.`, "No sandbox reaches it.");
      if (kind === "public") continue;
      if (!ruling.private) return this.#explained(privateAddress(host, port, address), { host, port });
      if (this.#options.ownPorts().includes(port)) return deny("own_port", `Port ${port} is the server's own.`, "Use `viv` outside.");
    }
    return found;
  }

  async #resolved(host: string): Promise<string[]> {
    const late = new Promise<never>((_, reject) =>
      setTimeout(() => reject(new Error("no answer in time")), LIMITS.egressResolveMs).unref(),
    );
    try {
      return [...new Set(await Promise.race([this.#options.resolve(host), late]))];
    } catch {
      // Whatever went wrong, the name has no address now, and the client is told so.
      return [];
    }
  }

  /** Who asks for a port of this machine mostly wants a service of the project. */
  #explained(denied: Denied, { host, port }: { host: string; port: number }): Denied {
    const local = host === "localhost" || host.endsWith(".localhost") || (isAddress(host) && isLoopback(host));
    if (denied.code !== "private_address" || !local || !this.#options.listens(port)) return denied;
    return {
      ...denied,
      reason: `${denied.reason} In reality something listens on port ${port}, but a sandbox has a loopback of its own.`,
      remedy: `Start it inside each clone: declare it under \`services\` in vivarium.json.`,
    };
  }
}

/** One after the other, each for a share of the time. */
async function dialFirst(addresses: readonly string[], port: number, signal: AbortSignal | undefined): Promise<Outside | undefined> {
  const tried = addresses.slice(0, LIMITS.egressAddresses);
  const each = LIMITS.egressDialMs / tried.length;
  for (const address of tried) {
    if (signal?.aborted === true) return undefined;
    const outside = await dial(address, port, each);
    if (outside !== undefined) return outside;
  }
  return undefined;
}

function dial(address: string, port: number, withinMs: number): Promise<Outside | undefined> {
  return new Promise((resolve) => {
    const outside = new Outside(address, port);
    const { socket } = outside;
    const timer = setTimeout(() => socket.destroy(), withinMs);
    socket.once("connect", () => {
      clearTimeout(timer);
      resolve(outside);
    });
    // After a connection it says nothing new.
    socket.once("close", () => {
      clearTimeout(timer);
      resolve(undefined);
    });
  });
}
