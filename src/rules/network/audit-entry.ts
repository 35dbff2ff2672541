/** A decision of the proxy as the audit trail keeps it. */
import type { AuditEntry } from "../../base/schema/audit.ts";
import type { NetworkRecord } from "./gate.ts";
import { shownHost } from "./host.ts";

export function auditEntry({
  sandbox,
  host,
  port,
  protocol,
  method,
  path,
  verdict,
  code,
  rule,
  reason,
  approval,
  address,
  ended,
}: NetworkRecord): AuditEntry {
  const details = { protocol, method, path: path?.slice(0, 1024), code, approval, address, ...ended };
  return {
    actor: { kind: "agent", name: sandbox },
    action: protocol === "dns" ? "network.lookup" : ended === undefined ? "network.request" : "network.ended",
    target: `${shownHost(host)}:${port}`,
    arguments: Object.fromEntries(Object.entries(details).filter((entry): entry is [string, string | number] => entry[1] !== undefined)),
    label: verdict === "deny" ? "DENIED" : approval === undefined ? "AUTONOMOUS (whitelisted)" : "APPROVED",
    rule: rule ?? null,
    reason: reason ?? null,
    sandbox,
    snapshot: null,
  };
}
