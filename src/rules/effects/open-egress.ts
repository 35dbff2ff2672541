/** Makes the proxy and the parts that decide and record its requests. A request that can't be recorded is not sent. */
import type { Approvals } from "../approvals/approvals.ts";
import type { Audit } from "../audit/audit.ts";
import { listeningPorts } from "../../base/host/listening.ts";
import type { Logger } from "../../base/host/log.ts";
import type { Mover } from "../../base/host/mover.ts";
import { ownAddresses } from "../network/addresses.ts";
import { auditEntry } from "../network/audit-entry.ts";
import { Egress } from "../network/egress.ts";
import { NetworkEvents } from "../network/events.ts";
import type { Interceptor } from "../network/interception.ts";
import type { PrivateHosts } from "../network/private-hosts.ts";
import { resolverOf } from "../network/resolver.ts";
import type { UserNetwork } from "../../base/schema/network.ts";
import type { Store } from "../../base/store/store.ts";
import { HostJudge } from "./host-judge.ts";
import { Ledger } from "./ledger.ts";

interface EgressParts {
  readonly store: Store;
  readonly log: Logger;
  /** Takes connections from inside, and moves what was decided on. */
  readonly mover: Mover;
  readonly audit: Audit;
  readonly approvals: Approvals;
  readonly privateHosts: PrivateHosts;
  /** Puts secrets into requests. */
  readonly interceptor: Interceptor;
  readonly user: UserNetwork;
  /** The server's own ports. */
  readonly ownPorts: () => readonly number[];
  readonly reach: (point: string) => void;
}

export function openEgress({ store, log, mover, audit, approvals, privateHosts, interceptor, user, ownPorts, reach }: EgressParts): Egress {
  const events = new NetworkEvents(store, log);
  return new Egress({
    effects: new Ledger({ store, log, approvals, reach }),
    judge: new HostJudge({ store, approvals, reach, renew: () => privateHosts.renew() }),
    interceptor: () => interceptor,
    log,
    mover,
    resolve: resolverOf(user),
    opened: user.private,
    ownPorts,
    ownAddresses,
    listens: (port) => listeningPorts().has(port),
    reach,
    record: async (record, written) => {
      events.report(record);
      if (record.ended === undefined) await audit.record(auditEntry(record), written);
      else audit.note(auditEntry(record));
    },
  });
}
