/**
 * The one way out. Every request, of whatever protocol, is decided here: rules, further judges, the record, one
 * resolution, every address checked, and only a checked address is dialled.
 */
import { errorText } from "../../base/host/log.ts";
import type { MovedBytes } from "../../base/host/moved-connection.ts";
import { withTimeout } from "../../base/host/with-timeout.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { PrivateHost } from "../../base/schema/network.ts";
import { isLoopback, kindHere } from "./addresses.ts";
import { dialFirst } from "./dialling.ts";
import { isAddress } from "./host.ts";
import type { Interceptor } from "./interception.ts";
import type { OutsideConnection } from "./outside.ts";
import type { Resolve } from "./resolver.ts";
import { decide, deny, isLocalhost, privateAddress, type Allowed, type Denied, type Ruling } from "./rules.ts";
import type { Session } from "./session.ts";

/** `dns` is a name that was asked for and not dialled yet. */
export type Protocol = "http" | "https" | "connect" | "socks5" | "direct" | "dns";

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
  /** The question by which a person let it through. */
  readonly approval?: string;
  /** The address dialled. */
  readonly address?: string;
  /** Bytes that went either way, once it has ended. */
  readonly ended?: { readonly sentBytes: number; readonly receivedBytes: number };
}

/** Decides after the rules: the policy, and the people it asks. */
export interface Judge {
  /** Undefined leaves it at the ruling. A person may be asked, which takes as long as that takes. */
  judge(session: Session, question: Question, ruling: Allowed, signal: AbortSignal | undefined): Promise<Ruling | undefined>;
  /** Whether a person opens it after all, where there is a reason to ask one: opened, the answer, or nothing where no person is asked. */
  opens(session: Session, question: Question, signal: AbortSignal | undefined): Promise<"opened" | Denied | undefined>;
  /** Whether it lets a host through by itself; no person is asked. */
  lets(session: Session, host: string, ruling: Allowed): Promise<boolean>;
  /** Which open connections may stay by the present policy; no person is asked. */
  standing(session: Session): Promise<(host: string, port: number, ruling: Allowed) => boolean>;
}

export interface GateOptions {
  readonly resolve: Resolve;
  /** Hosts the user's own config opens. */
  readonly opened: readonly PrivateHost[];
  /** Ports of this machine that are never dialled at a private address: the server's own. */
  readonly ownPorts: () => readonly number[];
  /** Addresses of this machine: what listens there is no more for a sandbox than what listens on loopback. */
  readonly ownAddresses?: (() => readonly string[]) | undefined;
  /** Whether a program listens on a port of the real machine; a client that asks for loopback is told so. */
  readonly listens: (port: number) => boolean;
  readonly judge?: Judge | undefined;
  /** Opens TLS to hosts that a secret belongs to. */
  readonly interceptor?: (() => Interceptor | undefined) | undefined;
  /**
   * Told of every decision before it takes effect. What can't be recorded is refused. `written` is called once the record is written and
   * before the disk is synced, which may hold up the event loop; it is not called for the end of a connection.
   */
  readonly record: (record: NetworkRecord, written?: () => void) => Promise<void> | void;
  /** Called at named points; tests kill the process there. */
  readonly reach?: ((point: string) => void) | undefined;
}

/** Refusals that a person may lift for one host and port. */
const OPENED_BY_PEOPLE: ReadonlySet<string> = new Set(["private_address", "port_closed"]);
const TOO_MANY = deny("too_many_requests", "Too many requests came from this sandbox in a short time.", "Wait a few seconds.");

/** What may be dialled now, its record durable. */
export interface ReleasedHost {
  readonly ruling: Allowed;
  /** All of them are checked. */
  readonly addresses: readonly string[];
  /** Records the bytes of a connection to it, once that has ended. */
  readonly follow: (outside: { readonly bytes: MovedBytes; readonly ended: Promise<unknown> }) => void;
}

export interface DialledHost {
  readonly ruling: Allowed;
  readonly outside: OutsideConnection;
}

export function unreachable({ host, port }: { readonly host: string; readonly port: number }): Denied {
  return deny("unreachable", `${host}:${port} does not answer.`, "Check the host and port, and try again.");
}

export class Gate {
  readonly #options: GateOptions;
  /** Addresses of this machine when they were read last. */
  #own: readonly string[];

  constructor(options: GateOptions) {
    this.#options = options;
    this.#own = this.#ownNow();
  }

  /** Whether a request may go out, without a query or a packet; `leave` is what was allowed for the tunnel it came by. */
  async permit(session: Session, question: Question, signal?: AbortSignal, leave?: Allowed): Promise<Ruling> {
    const admitted = session.admitRequest();
    if (admitted === "no") return TOO_MANY;
    const ruling = admitted === "last" ? TOO_MANY : await this.#ruled(session, question, signal, leave);
    this.#options.reach?.("network.judged");
    return ruling.verdict === "deny" ? this.refuse(session, question, ruling) : ruling;
  }

  /** The connection of a request that was permitted, to a checked address; or why there is none. Nothing was sent through it yet. */
  async connect(session: Session, question: Question, permitted: Allowed, signal?: AbortSignal): Promise<DialledHost | Denied> {
    let dialling: Promise<OutsideConnection | undefined> | undefined;
    const released = await this.release(session, question, permitted, signal, (addresses) => {
      dialling = dialFirst(addresses, question.port, signal);
    });
    if ("verdict" in released) {
      void dialling?.then((outside) => outside?.cut());
      return released;
    }
    const { ruling, follow } = released;
    const outside = await dialling;
    if (outside === undefined) return unreachable(question);
    this.#options.reach?.("network.dialled");
    const late = this.ruling(session, question.host, question.port);
    if (late.verdict === "deny") {
      // The rules changed while it was dialled.
      outside.cut();
      return this.refuse(session, question, late);
    }
    follow(outside);
    return { ruling, outside };
  }

  /**
   * What a request that was permitted may use: its name looked up once, every address checked, and the record of it on the disk. The
   * addresses may be dialled from `dial` on: the record is written by then, so that a kill of the server leaves it. Nothing may be sent
   * before the promise resolves: then a loss of power leaves it, too.
   */
  async release(
    session: Session,
    question: Question,
    permitted: Allowed,
    signal: AbortSignal | undefined,
    dial: (addresses: readonly string[]) => void,
  ): Promise<ReleasedHost | Denied> {
    // It may have waited for a person since.
    const now = this.ruling(session, question.host, question.port);
    let ruling = permitted;
    let addresses = now.verdict === "deny" ? now : await this.#addresses(session, question, ruling);
    if (!Array.isArray(addresses)) {
      const opened = await this.#openedBy(session, question, addresses, signal);
      if (opened.verdict === "deny") return this.refuse(session, question, opened);
      ruling = opened;
      addresses = await this.#addresses(session, question, ruling);
      if (!Array.isArray(addresses)) return this.refuse(session, question, addresses);
    }
    const { rule, approval } = ruling;
    const asked = approval === undefined ? {} : { approval };
    const allowed = { ...question, verdict: "allow", rule, address: addresses[0] ?? "", ...asked } as const;
    const fit = addresses;
    let unfit: Denied | undefined;
    let isDialled = false;
    const written = (): void => {
      isDialled = true;
      this.#options.reach?.("network.written");
      // The machine may have got the address a moment ago.
      unfit = this.#unfit(question, fit, ruling, () => this.#ownNow());
      if (unfit === undefined && signal?.aborted !== true) dial(fit);
    };
    const failure = await this.#recorded(session, allowed, written);
    if (failure !== undefined) return failure;
    this.#options.reach?.("network.recorded");
    if (!isDialled) written();
    if (unfit !== undefined) return this.refuse(session, question, unfit);
    session.allowed += 1;
    const follow: ReleasedHost["follow"] = (outside) =>
      void outside.ended.then(() => {
        const { sent, received } = outside.bytes;
        return this.#recorded(session, { ...allowed, ended: { sentBytes: sent, receivedBytes: received } });
      });
    return { ruling, addresses, follow };
  }

  /** What opens TLS to this host and port, if anything does. */
  interceptor(host: string, port: number): Interceptor | undefined {
    const found = this.#options.interceptor?.();
    return found?.wants(host, port) === true ? found : undefined;
  }

  /** What the rules say now. No person is asked, and nothing is recorded. */
  ruling(session: Session, host: string, port: number): Ruling {
    return decide(session.rules, [...this.#options.opened, ...session.opened], host, port);
  }

  /** Counts and records a denial, and gives it back. */
  async refuse(session: Session, question: Question, denied: Denied): Promise<Denied> {
    session.denied += 1;
    const { code, reason, rule } = denied;
    await this.#recorded(session, { ...question, verdict: "deny", code, reason, ...(rule === undefined ? {} : { rule }) });
    return denied;
  }

  /** Ends what rules or policy no longer allow. */
  async cutFallen(session: Session): Promise<void> {
    if (session.isIdle) return;
    const stands = await this.#options.judge?.standing(session);
    session.cutUnless(({ host, port }) => {
      const ruling = this.ruling(session, host, port);
      return ruling.verdict === "allow" && (stands?.(host, port, ruling) ?? true);
    });
  }

  /** Why a tunnel that was opened a while ago may not be used now. */
  async fallen(session: Session, host: string, port: number, withPolicy = true): Promise<Denied | undefined> {
    const ruling = this.ruling(session, host, port);
    if (ruling.verdict === "deny") return ruling;
    if (!withPolicy) return undefined;
    const stands = (await this.#options.judge?.standing(session)) ?? (() => true);
    return stands(host, port, ruling) ? undefined : deny("policy", `The policy no longer allows ${host}.`, "Go on without it.");
  }

  async #ruled(session: Session, question: Question, signal: AbortSignal | undefined, leave: Allowed | undefined): Promise<Ruling> {
    if (leave === undefined) return this.#rule(session, question, signal);
    return (await this.fallen(session, question.host, question.port)) ?? leave;
  }

  async #rule(session: Session, question: Question, signal: AbortSignal | undefined): Promise<Ruling> {
    const ruled = this.ruling(session, question.host, question.port);
    const ruling = ruled.verdict === "deny" ? await this.#openedBy(session, question, ruled, signal) : ruled;
    if (ruling.verdict === "deny") return this.#explained(ruling, question);
    if (session.exhausted)
      return deny("too_many_bytes", "This sandbox has used up the bytes it may move.", "Make a new sandbox, or fork this one.");
    if (!session.admitName(question.host))
      return deny("too_many_names", `Too many names below ${ruling.rule} within a minute.`, "Wait a minute.", ruling.rule);
    return (await this.#options.judge?.judge(session, question, ruling, signal)) ?? ruling;
  }

  /** What a person opens, or the refusal as it is. */
  async #openedBy(session: Session, question: Question, denied: Denied, signal: AbortSignal | undefined): Promise<Ruling> {
    if (!OPENED_BY_PEOPLE.has(denied.code)) return denied;
    const answer = await this.#options.judge?.opens(session, question, signal);
    return answer === "opened" ? this.ruling(session, question.host, question.port) : (answer ?? denied);
  }

  async #recorded(session: Session, record: Omit<NetworkRecord, "sandbox">, written?: () => void): Promise<Denied | undefined> {
    try {
      await this.#options.record({ ...record, sandbox: session.sandbox }, written);
      return undefined;
    } catch (error) {
      return deny(
        "not_recorded",
        `The request could not be recorded: ${errorText(error)}`,
        "Free space on the host: a request that can't be recorded is refused.",
      );
    }
  }

  /** Every address of the host, all of them fit to be dialled; one that is not spoils the rest. */
  async #addresses(session: Session, { host, port }: Question, ruling: Allowed): Promise<string[] | Denied> {
    const found = isAddress(host) ? [host] : await this.#resolved(session, host);
    if (found.length === 0) return deny("not_resolved", `${host} has no address.`, "Check the name.");
    // Reading the machine's own addresses takes longer than all else here: they are read anew before one of these is dialled.
    if (this.#unfit({ host, port }, found, ruling, () => this.#own) === undefined) return found;
    // The machine may have lost an address since.
    return this.#unfit({ host, port }, found, ruling, () => this.#ownNow()) ?? found;
  }

  /** Why one of these addresses may not be dialled. */
  #unfit(
    { host, port }: { host: string; port: number },
    addresses: readonly string[],
    ruling: Allowed,
    own: () => readonly string[],
  ): Denied | undefined {
    for (const address of addresses) {
      const kind = kindHere(address, own);
      if (kind === "metadata") return deny("metadata", `${host} leads to the metadata service ${address}.`, "No sandbox reaches it.");
      if (kind === "public") continue;
      if (!ruling.private) return this.#explained(privateAddress(host, port, address), { host, port });
      if (this.#options.ownPorts().includes(port)) return deny("own_port", `Port ${port} is the server's own.`, "Use `viv` outside.");
    }
    return undefined;
  }

  #ownNow(): readonly string[] {
    this.#own = this.#options.ownAddresses?.() ?? [];
    return this.#own;
  }

  async #resolved(session: Session, host: string): Promise<string[]> {
    try {
      return [
        ...new Set(await withTimeout(session.lookups.find(host, this.#options.resolve), LIMITS.egressResolveMs, "Looking up a name")),
      ];
    } catch {
      // Whatever went wrong, the name has no address now, and the client is told so.
      return [];
    }
  }

  /** A client that asks for a port of this machine mostly wants a service of the project. */
  #explained(denied: Denied, { host, port }: { host: string; port: number }): Denied {
    const local = isLocalhost(host) || (isAddress(host) && isLoopback(host));
    if (denied.code !== "private_address" || !local || !this.#options.listens(port)) return denied;
    return {
      ...denied,
      reason: `${denied.reason} In reality something listens on port ${port}, but a sandbox has a loopback of its own.`,
      remedy: `Start it inside each clone: declare it under \`services\` in vivarium.json.`,
    };
  }
}
