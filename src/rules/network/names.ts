/**
 * Whether a name exists, for the resolver inside a sandbox. A name that may be dialled is looked up, as its connection would
 * do anyway, and that is recorded. Any other name causes no query: it exists, and the proxy says why once it is dialled.
 */
import { withTimeout } from "../../base/host/with-timeout.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { NetworkRules } from "../../base/schema/network.ts";
import type { GateOptions } from "./gate.ts";
import { isAddress } from "./host.ts";
import { isMissing } from "./resolver.ts";
import { decide, isReserved, matches, type Allowed } from "./rules.ts";
import type { Session } from "./session.ts";

export type Existence = "exists" | "missing" | "unknown";

const DNS_PORT = 53;

interface Known {
  readonly answer: Promise<Existence>;
  /** Far off while it is looked up. */
  until: number;
}

/** What one sandbox asked for lately; the oldest makes room. */
export class KnownNames {
  readonly #known = new Map<string, Known>();

  find(host: string, look: () => Promise<Existence>): Promise<Existence> {
    const present = this.#known.get(host);
    if (present !== undefined && present.until > performance.now()) return present.answer;
    this.#known.delete(host);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size < LIMITS.egressNamesKept) break;
      this.#known.delete(oldest);
    }
    const known: Known = { answer: look(), until: Infinity };
    this.#known.set(host, known);
    void known.answer.then((answer) => (known.until = performance.now() + LIMITS.egressNameKeptMs[answer]));
    return known.answer;
  }
}

export class Names {
  readonly #options: GateOptions;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  async look(session: Session, host: string): Promise<Existence> {
    const { rules } = session;
    if (isAddress(host)) return "missing";
    const opening = [...rules.allow, ...(rules.private ?? []), ...this.#options.opened].filter((rule) => matches(rule.host, host));
    const isSpokenOf = opening.length > 0 || rules.production.some((pattern) => matches(pattern, host));
    if (isReserved(host) && !isSpokenOf) return "missing";
    const ports = new Set([...rules.ports, ...opening.flatMap((rule) => rule.ports ?? [])]);
    const ruling = this.#ruling(rules, host, ports);
    const permitted = ruling !== undefined && ((await this.#options.judge?.lets(session, host, ruling)) ?? true);
    if (!permitted || session.exhausted) return "exists";
    return session.names.find(host, () => this.#lookUp(session, host, ruling.rule));
  }

  /** That of the first port on which it may be dialled. */
  #ruling(rules: NetworkRules, host: string, ports: Iterable<number>): Allowed | undefined {
    for (const port of ports) {
      const ruling = decide(rules, this.#options.opened, host, port);
      if (ruling.verdict === "allow") return ruling;
    }
    return undefined;
  }

  async #lookUp(session: Session, host: string, rule: string): Promise<Existence> {
    // Beyond these limits the connection is refused, and says so.
    if (session.admitRequest() !== "yes" || !session.admitName(host)) return "exists";
    try {
      await this.#options.record({ host, port: DNS_PORT, protocol: "dns", verdict: "allow", rule, sandbox: session.sandbox });
      const addresses = await withTimeout(session.lookups.find(host, this.#options.resolve), LIMITS.egressNameMs, "Looking up a name");
      return addresses.length > 0 ? "exists" : "missing";
    } catch (error) {
      return isMissing(error) ? "missing" : "unknown";
    }
  }
}
