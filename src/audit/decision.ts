/** What an agent reports of itself, as the audit trail keeps it: who it is says the channel, never the report. */
import type { z } from "zod";
import type { AuditEntry, Decision } from "../schema/audit.ts";
import type { SandboxRow } from "../store/store.ts";

export function decisionEntry(
  { id, name, currentSnapshot }: Pick<SandboxRow, "id" | "name" | "currentSnapshot">,
  { tool, args, ...rest }: z.infer<typeof Decision>,
): AuditEntry {
  return {
    actor: { kind: "agent", name },
    action: tool,
    target: typeof args === "string" ? args : "",
    arguments: { args: args ?? null, ...(rest as Record<string, never>) },
    label: "AUTONOMOUS",
    rule: null,
    reason: null,
    sandbox: id,
    snapshot: currentSnapshot,
  };
}
