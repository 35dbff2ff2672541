/** Whether a firing may begin now, or why it waits and until when. Pure. */
import type { AutomationsConfig } from "../../base/schema/automation.ts";
import type { AutomationRow, FiringRow } from "../../base/store/rows.ts";
import type { Dollars } from "./budgets.ts";
import { nightOf, quietUntil } from "./hours.ts";

export interface Hindrance {
  readonly reason: string;
  /** When it is over by itself; null where something has to happen. */
  readonly until: Date | null;
}

export interface Surroundings {
  readonly now: Date;
  readonly config: AutomationsConfig;
  /** What is at work. */
  readonly running: readonly { readonly automation: string; readonly project: string; readonly together: boolean; readonly name: string }[];
  /** Dollars of this night. */
  readonly spent: Dollars;
  /** Dollars that firings at work may still spend. */
  readonly reserved: Dollars;
}

export function hindranceOf(
  automation: AutomationRow,
  firing: Pick<FiringRow, "notBefore" | "asked">,
  around: Surroundings,
): Hindrance | null {
  return (firing.asked === true ? null : ofTime(automation, firing, around)) ?? ofMoney(automation, around) ?? ofWork(automation, around);
}

function ofTime({ spec }: AutomationRow, { notBefore }: Pick<FiringRow, "notBefore">, { now }: Surroundings): Hindrance | null {
  if (notBefore !== null && notBefore > now.toISOString())
    return { reason: "More may come that belongs to it.", until: new Date(notBefore) };
  const until = quietUntil(spec.quiet, now);
  return until === null ? null : { reason: `It is quiet until ${spec.quiet?.to ?? ""}.`, until };
}

function ofMoney({ spec }: AutomationRow, { now, config, spent, reserved }: Surroundings): Hindrance | null {
  const until = nightOf(now, spec.quiet?.timezone).ends;
  const { night } = spec.budget;
  if (night !== undefined && spent.own >= night) return { reason: `Its budget of $${night} for the night is spent.`, until };
  if (config.budget !== undefined && spent.all >= config.budget)
    return { reason: `The budget of $${config.budget} for all automations and the night is spent.`, until };
  // Lines cost nothing; an agent begins with what is left for sure.
  if (spec.task === undefined) return null;
  const isHeld = (limit: number | undefined, both: number): boolean => limit !== undefined && both >= limit;
  if (isHeld(night, spent.own + reserved.own) || isHeld(config.budget, spent.all + reserved.all))
    return { reason: "Firings at work may spend what is left of the budget for the night.", until: null };
  return null;
}

function ofWork({ id, project, spec }: AutomationRow, { config, running }: Surroundings): Hindrance | null {
  if (running.some(({ automation }) => automation === id)) return { reason: "An earlier firing of it is at work.", until: null };
  const other = spec.together ? undefined : running.find((each) => each.project === project && !each.together);
  if (other !== undefined) return { reason: `The automation ${other.name} works on the project.`, until: null };
  if (running.length >= config.parallel) return { reason: `${running.length} firings are at work, and no more are allowed.`, until: null };
  return null;
}
