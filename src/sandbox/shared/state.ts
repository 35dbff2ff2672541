/** The life of a sandbox (BOX-1): which state may follow which. */
import { VivError } from "../../base/schema/errors.ts";
import type { Outcome, SandboxState } from "../../base/schema/sandbox.ts";
import type { SandboxRow } from "../../base/store/rows.ts";

const NEXT: Readonly<Record<SandboxState, readonly SandboxState[]>> = {
  pending: ["creating", "completed"],
  creating: ["running", "failed", "completed"],
  running: ["paused", "completing", "failed", "completed"],
  paused: ["running", "completing", "failed", "completed"],
  completing: ["completed", "failed"],
  // Started again from the files that it left.
  completed: ["running"],
  failed: ["running"],
};

const FINAL: ReadonlySet<SandboxState> = new Set(["completed", "failed"]);

export function isFinal(state: SandboxState): boolean {
  return FINAL.has(state);
}

export function mayFollow(from: SandboxState, to: SandboxState): boolean {
  return NEXT[from].includes(to);
}

export function requireTransition(row: Pick<SandboxRow, "name" | "state">, to: SandboxState): void {
  if (mayFollow(row.state, to)) return;
  throw new VivError("illegal_transition", `Sandbox ${row.name} is ${row.state} and can't become ${to}.`);
}

/** The row in its next state. A final state carries an outcome, any other none. */
export function nextState(row: SandboxRow, to: SandboxState, now: Date, end?: { outcome: Outcome; reason: string | null }): SandboxRow {
  requireTransition(row, to);
  if (!isFinal(to)) return { ...row, state: to, outcome: null, endedAt: null, reason: end?.reason ?? null };
  return {
    ...row,
    state: to,
    outcome: end?.outcome ?? (to === "completed" ? "done" : "failed"),
    reason: end?.reason ?? null,
    endedAt: now.toISOString(),
    expiresAt: null,
    launched: null,
  };
}

export function requireLive(row: Pick<SandboxRow, "name" | "state">): void {
  if (row.state === "running") return;
  throw notRunning(row);
}

export function notRunning({ name, state }: Pick<SandboxRow, "name" | "state">): VivError {
  const hint = isFinal(state)
    ? `Start it again: \`viv start ${name}\`.`
    : state === "paused"
      ? `Resume it first: \`viv resume ${name}\`.`
      : undefined;
  return new VivError("not_running", `Sandbox ${name} is ${state}.`, hint === undefined ? {} : { remedy: hint });
}
