/** Decisions of the proxy as events: each once within a minute, and so many at most. All of them are in the audit trail. */
import { errorText, type Logger } from "../../base/host/log.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Store } from "../../base/store/store.ts";
import type { NetworkRecord } from "./gate.ts";

interface RecentEvents {
  since: number;
  readonly keys: Set<string>;
}

export class NetworkEvents {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #recent = new Map<string, RecentEvents>();

  constructor(store: Store, log: Logger) {
    this.#store = store;
    this.#log = log;
  }

  report(record: NetworkRecord): void {
    // The connection that follows a look-up has its own event.
    if (record.ended !== undefined || record.protocol === "dns") return;
    const recent = this.#recentOf(record.sandbox);
    const key = `${record.verdict} ${record.code ?? ""} ${record.host}:${record.port}`;
    if (recent.keys.has(key) || recent.keys.size >= LIMITS.networkEvents) return;
    recent.keys.add(key);
    this.#write(record);
  }

  /** Forgets events of earlier minutes, and sandboxes without events since. */
  #recentOf(sandbox: string): RecentEvents {
    const known = this.#recent.get(sandbox);
    if (known !== undefined && performance.now() - known.since < LIMITS.networkEventsMs) return known;
    for (const [id, { since }] of this.#recent) if (performance.now() - since >= LIMITS.networkEventsMs) this.#recent.delete(id);
    const recent: RecentEvents = { since: performance.now(), keys: new Set() };
    this.#recent.set(sandbox, recent);
    return recent;
  }

  #write({ sandbox, verdict, host, port, protocol, code, rule, reason, address }: NetworkRecord): void {
    const data = { host, port, protocol, code, rule, reason, address };
    const given = Object.fromEntries(Object.entries(data).filter((entry): entry is [string, string | number] => entry[1] !== undefined));
    this.#store
      .change((change) => change.event(verdict === "allow" ? "network.allowed" : "network.denied", sandbox, given))
      .catch((error: unknown) => this.#log.warn("a decision of the proxy is no event", { sandbox, error: errorText(error) }));
  }
}
