/** The states of a firing, and which follows which. */
import type { FiringState } from "../../base/schema/automation.ts";
import { VivError } from "../../base/schema/errors.ts";

const NEXT: Readonly<Record<FiringState, readonly FiringState[]>> = {
  seen: ["triaged", "muted", "failed"],
  triaged: ["working", "done", "alerted", "failed"],
  working: ["verified", "done", "failed"],
  verified: ["promoted", "waiting", "done", "failed"],
  waiting: ["promoted", "failed"],
  promoted: ["undone"],
  done: [],
  alerted: [],
  failed: [],
  muted: [],
  undone: [],
};

/** States in which a firing is at its end. One that is promoted is judged before it ends. */
const FINAL: ReadonlySet<FiringState> = new Set(["done", "alerted", "failed", "muted", "undone"]);

export function isFinalState(state: FiringState): boolean {
  return FINAL.has(state);
}

export function requireTransition(id: string, from: FiringState, to: FiringState): void {
  if (NEXT[from].includes(to)) return;
  throw new VivError("illegal_transition", `Firing ${id} is ${from} and can't become ${to}.`, {
    remedy: "Look at `viv automation history`.",
  });
}
