/** Makes the proxy with all who have a say in it. Until there is an audit trail, and whenever it can't be written, nothing is let out. */
import type { Approvals } from "../approvals/approvals.ts";
import type { Audit } from "../audit/audit.ts";
import { listeningPorts } from "../../base/host/listening.ts";
import type { Logger } from "../../base/host/log.ts";
import { ownAddresses } from "../network/addresses.ts";
import { auditEntry } from "../network/audit-entry.ts";
import { Egress } from "../network/egress.ts";
import { NetworkEvents } from "../network/events.ts";
import type { Interceptor } from "../network/interception.ts";
import type { PrivateHosts } from "../network/private-hosts.ts";
import { resolverOf } from "../network/resolver.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { UserNetwork } from "../../base/schema/network.ts";
import type { Store } from "../../base/store/store.ts";
import { HostJudge } from "./host-judge.ts";
import { Ledger } from "./ledger.ts";

interface WayOutParts {
  readonly store: Store;
  readonly log: Logger;
  readonly user: UserNetwork;
  /** The server's own ports. */
  readonly ownPorts: () => readonly number[];
  readonly interceptor: () => Interceptor | undefined;
  readonly reach: (point: string) => void;
  readonly privateHosts: PrivateHosts;
}

export class WayOut {
  readonly egress: Egress;
  readonly #ledger: Ledger;
  readonly #judge: HostJudge;
  #audit: Audit | undefined;

  constructor({ store, log, user, ownPorts, interceptor, reach, privateHosts }: WayOutParts) {
    const events = new NetworkEvents(store, log);
    this.#ledger = new Ledger(store, log, { reach });
    this.#judge = new HostJudge(store, { reach, renew: () => privateHosts.renew() });
    this.egress = new Egress({
      effects: this.#ledger,
      judge: this.#judge,
      interceptor,
      log,
      resolve: resolverOf(user),
      opened: user.private,
      ownPorts,
      ownAddresses,
      listens: (port) => listeningPorts().has(port),
      reach,
      record: async (record) => {
        if (this.#audit === undefined) throw new VivError("audit_unavailable", "The server is starting or stopping.");
        events.tell(record);
        if (record.ended === undefined) await this.#audit.record(auditEntry(record));
        else this.#audit.note(auditEntry(record));
      },
    });
  }

  /** From now on it lets out what may go out. */
  serve(audit: Audit, approvals: Approvals): void {
    this.#audit = audit;
    this.#ledger.approvals = approvals;
    this.#judge.approvals = approvals;
  }
}
