/** The morning page: what automations did in a time. Pure. */
import type { Automation, MorningReport } from "../../base/schema/automation.ts";
import { FIRING_STATES } from "../../base/schema/choices.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { FiringRow } from "../../base/store/rows.ts";
import { shownFiring } from "./firing-record.ts";

/** What was seen in the time, what ended in it, and what still waits for a person. */
export function morningReport(rows: readonly FiringRow[], automations: readonly Automation[], since: Date, until: Date): MorningReport {
  const from = since.toISOString();
  const told = rows.filter(({ seenAt, endedAt, state }) => seenAt >= from || (endedAt ?? "") >= from || state === "waiting");
  const states = FIRING_STATES.map((state) => ({ state, firings: told.filter((row) => row.state === state).length }));
  return {
    since: from,
    until: until.toISOString(),
    triggers: told.reduce((sum, { count }) => sum + count, 0),
    states: states.filter(({ firings }) => firings > 0),
    cost: told.reduce((sum, { cost }) => sum + cost, 0),
    firings: told.slice(0, LIMITS.reportedFirings).map(shownFiring),
    left: Math.max(0, told.length - LIMITS.reportedFirings),
    stopped: automations.filter(({ state }) => state === "muted" || state === "broken"),
  };
}
