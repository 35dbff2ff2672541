/** Decisions of the proxy as events: the same one again within a while is only counted, and there is a most. */
import { describe, type Logger } from "../host/log.ts";
import { LIMITS } from "../schema/limits.ts";
import type { Store } from "../store/store.ts";
import type { NetworkRecord } from "./gate.ts";

interface Told {
  at: number;
  /** Since it was told last. */
  again: number;
}

interface Teller {
  since: number;
  events: number;
  readonly told: Map<string, Told>;
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
    if (record.ended !== undefined) return;
    const teller = this.#teller(record.sandbox);
    const key = `${record.verdict} ${record.code ?? ""} ${record.host}:${record.port}`;
    const told = teller.told.get(key);
    if (told !== undefined || teller.events >= LIMITS.networkEvents) {
      if (told !== undefined) told.again += 1;
      return;
    }
    teller.events += 1;
    teller.told.set(key, { at: performance.now(), again: 0 });
    this.#write(record);
  }

  forget(sandbox: string): void {
    this.#tellers.delete(sandbox);
  }

  /** What was counted is forgotten with the minute it belongs to. */
  #teller(sandbox: string): Teller {
    const known = this.#tellers.get(sandbox);
    if (known !== undefined && performance.now() - known.since < LIMITS.networkEventsMs) return known;
    const teller: Teller = { since: performance.now(), events: 0, told: new Map() };
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
