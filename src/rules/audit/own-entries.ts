/** What the trail says about itself. */
import type { AuditEntry, AuditRecord } from "../../base/schema/audit.ts";
import type { Anchor } from "./anchor.ts";

const BROKEN = "audit.broken";

function own(action: string, target: string, details: AuditEntry["arguments"], reason: string): AuditEntry {
  return {
    actor: { kind: "server", name: "audit" },
    action,
    target,
    arguments: details,
    label: "RECORDED",
    rule: null,
    reason,
    sandbox: null,
    snapshot: null,
  };
}

export function lostEntry(records: number): AuditEntry {
  return own("audit.lost", `${records} reports`, { records }, "They could not be written, and too many others waited.");
}

export function brokenEntry(problem: string, noted: Anchor | undefined): AuditEntry {
  return own(BROKEN, "the records before this one", { noted: noted === undefined ? null : { ...noted } }, problem);
}

/** What was wrong before this record, as it was found when it was written. */
export function brokenBefore({ actor, action, reason }: AuditRecord): string | undefined {
  return actor.kind === "server" && action === BROKEN ? (reason ?? "The records before were not whole.") : undefined;
}
