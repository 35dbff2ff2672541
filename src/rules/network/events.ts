/** Decisions of the proxy as events: each once within a minute, and so many at most. All of them are in the audit trail. */
import { describe, type Logger } from "../../base/host/log.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Store } from "../../base/store/store.ts";
import type { NetworkRecord } from "./gate.ts";

interface Teller {
  since: number;
  readonly told: Set<string>;
}

export class NetworkEvents {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #tellers = new Map<string, Teller>();

  constructor(store: Store, log: Logger) {
    this.#store = store;
    this.#log = log;
  }

  tell(record: NetworkRecord): void {
    // What a name was asked for, its connection tells.
    if (record.ended !== undefined || record.protocol === "dns") return;
    const teller = this.#teller(record.sandbox);
    const key = `${record.verdict} ${record.code ?? ""} ${record.host}:${record.port}`;
    if (teller.told.has(key) || teller.told.size >= LIMITS.networkEvents) return;
    teller.told.add(key);
    this.#write(record);
  }

  /** Forgets events of earlier minutes, and sandboxes without events since. */
  #teller(sandbox: string): Teller {
    const known = this.#tellers.get(sandbox);
    if (known !== undefined && performance.now() - known.since < LIMITS.networkEventsMs) return known;
    for (const [id, { since }] of this.#tellers) if (performance.now() - since >= LIMITS.networkEventsMs) this.#tellers.delete(id);
    const teller: Teller = { since: performance.now(), told: new Set() };
    this.#tellers.set(sandbox, teller);
    return teller;
  }

  #write({ sandbox, verdict, host, port, protocol, code, rule, reason, address }: NetworkRecord): void {
    const data = { host, port, protocol, code, rule, reason, address };
    const given = Object.fromEntries(Object.entries(data).filter((entry): entry is [string, string | number] => entry[1] !== undefined));
    this.#store
      .change((change) => change.event(verdict === "allow" ? "network.allowed" : "network.denied", sandbox, given))
      .catch((error: unknown) => this.#log.warn("a decision of the proxy is no event", { sandbox, error: describe(error) }));
  }
}
