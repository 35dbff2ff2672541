/** Quiet hours and nights, in a time zone. Pure. */
import type { AutomationSpec } from "../../base/schema/automation.ts";
import { CronLine } from "./cron-line.ts";

const DAY_MS = 24 * 3_600_000;

/** The end of the quiet hours that it is in now; null where it is in none. */
export function quietUntil(quiet: AutomationSpec["quiet"], now: Date): Date | null {
  if (quiet === undefined || quiet.from === quiet.to) return null;
  const time = timeOfDay(now, quiet.timezone);
  const { from, to } = quiet;
  const isQuiet = from < to ? time >= from && time < to : time >= from || time < to;
  if (!isQuiet) return null;
  const [hour = "0", minute = "0"] = to.split(":");
  return new CronLine(`${Number(minute)} ${Number(hour)} * * *`, quiet.timezone).next(now);
}

/** A night is from noon to noon: the last noon, and the next. */
export function nightOf(now: Date, timezone: string | undefined): { readonly began: Date; readonly ends: Date } {
  const noon = new CronLine("0 12 * * *", timezone);
  const ends = noon.next(now) ?? new Date(now.getTime() + DAY_MS);
  // Days are 23 to 25 hours long where clocks are changed.
  let began = noon.next(new Date(now.getTime() - 1.5 * DAY_MS)) ?? now;
  for (let next = noon.next(began); next !== null && next <= now; next = noon.next(next)) began = next;
  return { began, ends };
}

/** As "08:30". */
function timeOfDay(at: Date, timezone: string | undefined): string {
  const format = new Intl.DateTimeFormat("en-GB", { timeZone: timezone, hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  return format.format(at);
}
