/** The rows and events with which the life of a sandbox begins. */
import type { Base, SandboxRow } from "../../base/store/rows.ts";
import type { Change } from "../../base/store/store.ts";
import { nextState } from "../shared/state.ts";
import type { Processes } from "./sandbox-start.ts";

/** What every new life of a sandbox starts with. */
export function beginning(
  idleMs: number,
): Pick<
  SandboxRow,
  "state" | "outcome" | "reason" | "createdAt" | "endedAt" | "expiresAt" | "launched" | "currentSnapshot" | "restoring" | "removing"
> {
  const now = Date.now();
  return {
    state: "creating",
    outcome: null,
    reason: null,
    createdAt: new Date(now).toISOString(),
    endedAt: null,
    expiresAt: idleMs === 0 ? null : new Date(now + idleMs).toISOString(),
    launched: null,
    currentSnapshot: null,
    restoring: null,
    removing: false,
  };
}

export async function recordCreating(change: Change, row: SandboxRow, base: Base): Promise<void> {
  // A base is never changed.
  if ((await change.bases.get(base.id)) === undefined) await change.bases.put(base);
  await change.sandboxes.put(row);
  await change.event("sandbox.creating", row.id, { name: row.name, project: row.project });
}

export async function recordRunning(change: Change, created: SandboxRow, processes: Processes): Promise<SandboxRow> {
  const row: SandboxRow = { ...nextState(created, "running", new Date()), ...processes };
  await change.sandboxes.put(row);
  await change.event("sandbox.running", row.id, { name: row.name });
  return row;
}

/** It never runs: it is there for its snapshot. */
export async function recordFrozen(
  change: Change,
  created: SandboxRow,
  snapshot: { readonly id: string; readonly seal: string },
): Promise<void> {
  const now = new Date();
  const row: SandboxRow = { ...nextState(created, "completed", now), currentSnapshot: snapshot.id };
  const taken = { sandbox: row.id, name: null, parent: null, current: true, createdAt: now.toISOString(), expiresAt: null, frozenMs: 0 };
  await change.sandboxes.put(row);
  await change.snapshots.put({ ...taken, ...snapshot, refreshedTo: row.refreshedTo });
  await change.event("snapshot.created", row.id, { id: snapshot.id, name: null, frozenMs: 0 });
  await change.event("sandbox.completed", row.id, { name: row.name, outcome: row.outcome, reason: null });
}
