/** What a person chose for the agents of a sandbox. */
import type { Audit } from "../../rules/audit/audit.ts";
import { VivError } from "../../base/schema/errors.ts";
import { type Autonomy, type AutonomyLevel, NO_CHOICE, type Role, type YoloLevel } from "../../base/schema/policy.ts";
import type { SandboxRow } from "../../base/store/rows.ts";

export interface AutonomyChange {
  readonly level?: AutonomyLevel | undefined;
  readonly yolo?: YoloLevel | undefined;
  readonly role?: Role | undefined;
}

/** A level takes the place of a yolo level, and the other way round. */
export function changedAutonomy(now: Autonomy | undefined, { level, yolo, role }: AutonomyChange): Autonomy {
  if (level !== undefined && yolo !== undefined) throw new VivError("invalid_input", "level and yolo exclude each other.");
  const before = now ?? NO_CHOICE;
  const keeps = level === undefined && yolo === undefined;
  return { level: keeps ? before.level : (level ?? null), yolo: keeps ? before.yolo : (yolo ?? null), role: role ?? before.role };
}

/** Called with the sandbox's lock held. The change and its record are one. */
export async function setAutonomy(audit: Audit, row: SandboxRow, change: AutonomyChange): Promise<Autonomy> {
  return audit.recordWith(async (writing) => {
    const now = (await writing.sandboxes.get(row.id)) ?? row;
    const [before, after] = [now.autonomy ?? NO_CHOICE, changedAutonomy(now.autonomy, change)];
    await writing.sandboxes.put({ ...now, autonomy: after });
    await writing.event("policy.changed", row.id, { ...after });
    const entry = {
      actor: { kind: "person", name: "approver" },
      action: "policy.set",
      target: row.name,
      arguments: { before, after },
      label: "RECORDED",
      rule: null,
      reason: null,
      sandbox: row.id,
      snapshot: row.currentSnapshot,
    } as const;
    return { entry, result: after };
  });
}
