/** Automations in words, for the command line and the pages. No schema library: both load it at once. */
import type { Authority, Automation, AutomationSpec, Firing } from "./automation.ts";
import { durationInMs } from "./numbers.ts";

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/** Completes "It waits for …". */
export function triggerText({ spec: { when } }: Pick<Automation, "spec">): string {
  switch (when?.on) {
    case undefined:
      return "a person who starts it";
    case "files":
      return `changes of ${when.paths.join(", ")}`;
    case "schedule":
      return `${cronText(when.cron)}${when.timezone === undefined ? "" : ` (${when.timezone})`}`;
    case "webhook":
      return "a signed call";
    case "commit":
      return `commits of ${when.branch}${when.remote === undefined ? "" : ` at ${when.remote}`}`;
    case "check":
      return `\`${when.command}\` to fail`;
    case "log":
      return `the line ${when.line} in ${when.file}`;
  }
}

/** The usual lines of cron in words; others as they are. */
export function cronText(line: string): string {
  const fields = line.trim().split(/\s+/);
  const [minute = "", hour = "", day, month, weekday = ""] = fields;
  if (fields.length !== 5 || day !== "*" || month !== "*") return `cron ${line}`;
  const step = /^\*\/([1-9]\d?)$/.exec(minute)?.[1];
  if (hour === "*" && weekday === "*") {
    if (minute === "*") return "every minute";
    if (step !== undefined && 60 % Number(step) === 0) return step === "1" ? "every minute" : `every ${step} minutes`;
    return /^[0-5]?\d$/.test(minute) ? `every hour at minute ${Number(minute)}` : `cron ${line}`;
  }
  if (!/^[0-5]?\d$/.test(minute) || !/^(?:[01]?\d|2[0-3])$/.test(hour)) return `cron ${line}`;
  const at = `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  if (weekday === "*") return `${at} every day`;
  if (weekday === "1-5") return `${at} on workdays`;
  return /^[0-7]$/.test(weekday) ? `${at} every ${DAYS[Number(weekday) % 7] ?? ""}` : `cron ${line}`;
}

/** Completes "It …". */
export const AUTHORITY_TEXT: Readonly<Record<Authority, string>> = {
  "alert-only": "tells you, and does nothing",
  "propose-and-wait": "tries and verifies, and you decide",
  "act-and-notify": "promotes what is verified, and tells you",
  "act-and-log": "promotes what is verified, and the record says so",
};

/** Quiet hours, budgets and the rest that bounds an automation; one phrase each. */
export function boundsText({ quiet, budget, batch, together, dryRun }: AutomationSpec): string[] {
  const zone = quiet?.timezone === undefined ? "" : ` (${quiet.timezone})`;
  return [
    ...(quiet === undefined ? [] : [`quiet from ${quiet.from} to ${quiet.to}${zone}`]),
    ...(budget.run === undefined ? [] : [`$${budget.run} a firing`]),
    ...(budget.night === undefined ? [] : [`$${budget.night} a night`]),
    ...(batch === undefined ? [] : [batch === 0 ? "each trigger alone" : `triggers within ${batch / 1000} s are one firing`]),
    ...(together ? ["beside other automations"] : []),
    ...(dryRun ? ["dry run: promotes nothing"] : []),
  ];
}

/** The parts of the morning page, in their order: what waits for a person comes first. */
export const REPORT_SECTIONS: readonly (readonly [title: string, states: readonly Firing["state"][]])[] = [
  ["Waits for you", ["waiting"]],
  ["Promoted", ["promoted"]],
  ["Undone", ["undone"]],
  ["Alerts", ["alerted"]],
  ["Failed", ["failed"]],
  ["Muted", ["muted"]],
  ["Under way", ["seen", "triaged", "working", "verified"]],
  ["Nothing to do", ["done"]],
];

/** Yesterday and today begin at midnight, a duration ends now, and anything else is a time; undefined for what is none. */
export function reportSince(text: string, now: Date): Date | undefined {
  const midnight = (daysAgo: number): Date => new Date(now.getFullYear(), now.getMonth(), now.getDate() - daysAgo);
  if (text === "today") return midnight(0);
  if (text === "yesterday") return midnight(1);
  const ms = durationInMs(text);
  const at = ms === undefined ? new Date(text) : new Date(now.getTime() - ms);
  return Number.isNaN(at.getTime()) ? undefined : at;
}
