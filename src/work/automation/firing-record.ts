/** The row of a firing: made, changed from state to state with its events, and merged with what is seen while it waits. */
import type { Firing, FiringState } from "../../base/schema/automation.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { AutomationRow, FiringRow } from "../../base/store/rows.ts";
import type { Change } from "../../base/store/store.ts";
import { isFinalState, requireTransition } from "./firing-state.ts";

/** One thing that a trigger saw. */
export interface Sighting {
  /** What tells it from others: the same is taken once. Null where nothing does. */
  readonly key: string | null;
  readonly text: string;
  /** Automations whose promotions led to it, the first one first. */
  readonly causes?: readonly string[] | undefined;
}

export function newFiring(automation: AutomationRow, sequence: number, now: Date, batchMs: number): FiringRow {
  const at = now.toISOString();
  return {
    id: newId("firing"),
    automation: automation.id,
    name: automation.name,
    project: automation.project,
    kind: automation.kind,
    state: "seen",
    reason: null,
    seen: [],
    count: 0,
    triage: null,
    authority: null,
    experiment: null,
    promotion: null,
    files: [],
    output: null,
    before: [],
    after: [],
    undo: null,
    cost: 0,
    steps: [{ at, state: "seen", reason: null }],
    seenAt: at,
    notBefore: batchMs === 0 ? null : new Date(now.getTime() + batchMs).toISOString(),
    endedAt: null,
    sequence,
  };
}

/** A firing that has not begun stands for what is seen until then, too. What a person caused is no loop. */
export function withSighting(row: FiringRow, { text, causes }: Sighting, now: Date): FiringRow {
  const seen =
    row.seen.length < LIMITS.seenTexts ? [...row.seen, { at: now.toISOString(), text: text.slice(0, LIMITS.seenCharacters) }] : row.seen;
  const isFirst = row.count === 0;
  const kept = isFirst ? causes : row.causes === undefined || causes === undefined ? undefined : row.causes;
  const { causes: _, ...rest } = row;
  return { ...rest, seen, count: row.count + 1, ...(kept === undefined ? {} : { causes: kept }) };
}

/** The row in its next state. */
export function advanced(row: FiringRow, state: FiringState, reason: string | null, now: Date, patch: Partial<FiringRow> = {}): FiringRow {
  requireTransition(row.id, row.state, state);
  const at = now.toISOString();
  const steps = [...row.steps, { at, state, reason }];
  return { ...row, ...patch, state, reason, steps, notBefore: null, endedAt: isFinalState(state) ? at : null };
}

/** Writes a row that is in a new state, with its event. */
export async function putFiring(change: Change, row: FiringRow): Promise<void> {
  await change.firings.put(row);
  await change.event(`firing.${row.state}`, null, {
    firing: row.id,
    automation: row.automation,
    name: row.name,
    project: row.project,
    reason: row.reason,
    experiment: row.experiment,
    promotion: row.promotion,
  });
}

/** What the API shows of a row. */
export function shownFiring(row: FiringRow): Firing {
  const { sequence: _, worse: __, causes: ___, asked: ____, budget: _____, ...shown } = row;
  return shown;
}
