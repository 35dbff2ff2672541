/** What the command line and the pages say of automations. */
import { describe, expect, test } from "vitest";
import { AutomationSpec } from "../../src/base/schema/automation.ts";
import { boundsText, cronText, REPORT_SECTIONS, reportSince, triggerText } from "../../src/base/schema/automation-words.ts";
import { FIRING_STATES } from "../../src/base/schema/choices.ts";

const spec = (fields: object): AutomationSpec => AutomationSpec.parse({ run: ["true"], ...fields });

describe("automations in words", () => {
  test.each([
    ["0 3 * * *", "03:00 every day"],
    ["30 8 * * 1-5", "08:30 on workdays"],
    ["0 9 * * 1", "09:00 every Monday"],
    ["0 9 * * 7", "09:00 every Sunday"],
    ["*/15 * * * *", "every 15 minutes"],
    ["* * * * *", "every minute"],
    ["5 * * * *", "every hour at minute 5"],
    ["0 3 1 * *", "cron 0 3 1 * *"],
    ["*/7 * * * *", "cron */7 * * * *"],
    ["0 0 3 * * *", "cron 0 0 3 * * *"],
    ["0 1,13 * * *", "cron 0 1,13 * * *"],
  ])("the line %s is %s", (line, words) => expect(cronText(line)).toBe(words));

  test("each kind of trigger completes the sentence that it waits for", () => {
    const text = (when: object | undefined): string => triggerText({ spec: spec(when === undefined ? {} : { when }) });
    expect(text(undefined)).toBe("a person who starts it");
    expect(text({ on: "files", paths: ["src/*", "a"] })).toBe("changes of src/*, a");
    expect(text({ on: "schedule", cron: "0 3 * * *", timezone: "Europe/Berlin" })).toBe("03:00 every day (Europe/Berlin)");
    expect(text({ on: "webhook" })).toBe("a signed call");
    expect(text({ on: "commit", branch: "main", remote: "origin" })).toBe("commits of main at origin");
    expect(text({ on: "check", command: "npm test" })).toBe("`npm test` to fail");
    expect(text({ on: "log", file: "/var/log/a", line: "*ERROR*" })).toBe("the line *ERROR* in /var/log/a");
  });

  test("bounds are said only where there are any", () => {
    expect(boundsText(spec({}))).toEqual([]);
    const full = { quiet: { from: "08:00", to: "18:00" }, budget: { run: 1, night: 5 }, batch: 0, together: true, dryRun: true };
    expect(boundsText(spec(full))).toEqual([
      "quiet from 08:00 to 18:00",
      "$1 a firing",
      "$5 a night",
      "each trigger alone",
      "beside other automations",
      "dry run: promotes nothing",
    ]);
  });

  test("every state of a firing has one place in the report", () => {
    expect(REPORT_SECTIONS.flatMap(([, states]) => states).toSorted()).toEqual([...FIRING_STATES].toSorted());
  });

  test("the report's time is a day, a duration or a time, and nothing else", () => {
    const now = new Date(2026, 2, 29, 15, 30);
    expect(reportSince("today", now)).toEqual(new Date(2026, 2, 29));
    expect(reportSince("yesterday", now)).toEqual(new Date(2026, 2, 28));
    expect(reportSince("12h", now)).toEqual(new Date(now.getTime() - 12 * 3_600_000));
    expect(reportSince("2026-01-01", now)).toEqual(new Date("2026-01-01"));
    expect(reportSince("soon", now)).toBeUndefined();
  });
});
