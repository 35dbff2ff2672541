/** AGT-4: a wait for a model API is told once, with its end, whether the agent tells of it or the gateway sees it. */
import { describe, expect, test } from "vitest";
import type { RunEventBody } from "../../src/base/schema/run.ts";
import type { Run } from "../../src/base/schema/run.ts";
import { stateText } from "../../src/interfaces/cli/commands/tasks.ts";
import { modelAnswer } from "../../src/rules/models/retry-after.ts";
import { ModelWaits } from "../../src/work/agents/model-waits.ts";
import { activityWords } from "../../web/src/parts/activity.ts";

const NOW = Date.parse("2026-01-01T12:00:00.000Z");
const at = (seconds: number): string => new Date(NOW + seconds * 1000).toISOString();
const waits = (seconds: number | null, what: "rate_limit" | "retry" | "person" = "rate_limit"): RunEventBody => ({
  type: "waiting",
  for: what,
  until: seconds === null ? null : at(seconds),
  text: "",
});
const RESUMED: RunEventBody = { type: "resumed", for: "rate_limit" };

describe("a wait of a run for its model API", () => {
  const fresh = (): ModelWaits => new ModelWaits({ activity: "model", activityUntil: null });

  test("is told by the gateway, and what the agent says of the same wait is no news", () => {
    const known = fresh();
    expect([waits(30), waits(30.4), waits(null)].map((event) => known.isNews(event, NOW))).toEqual([true, false, false]);
    expect(known.for).toBe("rate_limit");
    expect([RESUMED, RESUMED].map((event) => known.isNews(event, NOW))).toEqual([true, false]);
    expect(known.for).toBeUndefined();
  });

  test("is told again when its end becomes known, changes, or has passed", () => {
    const known = fresh();
    expect([waits(null), waits(5), waits(60)].map((event) => known.isNews(event, NOW))).toEqual([true, true, true]);
    expect(known.isNews(waits(null), NOW + 61_000)).toBe(true);
  });

  test("for another try is told beside one for a rate limit", () => {
    const known = fresh();
    expect([waits(30), waits(30, "retry")].map((event) => known.isNews(event, NOW))).toEqual([true, true]);
    expect(known.for).toBe("retry");
  });

  test("is over when the agent acts, and that of an earlier server is known", () => {
    const known = new ModelWaits({ activity: "rate_limit", activityUntil: at(30) });
    expect(known.isNews(waits(30), NOW)).toBe(false);
    expect(known.isNews({ type: "turn", state: "ended" }, NOW)).toBe(true);
    expect(known.isNews(RESUMED, NOW)).toBe(false);
  });

  test("leaves a wait for a person alone", () => {
    const known = fresh();
    const events: readonly RunEventBody[] = [waits(null, "person"), waits(null, "person"), { type: "resumed", for: "person" }];
    expect(events.map((event) => known.isNews(event, NOW))).toEqual([true, true, true]);
  });
});

describe("a model API that wants to be asked later", () => {
  test.each([
    ["in seconds", { "retry-after": "30" }, "", 30_000],
    ["in milliseconds", { "retry-after-ms": "1500", "retry-after": "2" }, "", 1500],
    ["as a date", { "retry-after": "Thu, 01 Jan 2026 12:01:00 GMT" }, "", 60_000],
    ["in Google's words", {}, '{"error": {"details": [{"@type": "…RetryInfo", "retryDelay": "34.5s"}]}}', 34_500],
    ["with a time that no provider means", { "retry-after": "1e9" }, "", null],
    ["without a time", {}, "{}", null],
  ])("says so %s", (_name, headers, text, waitMs) => {
    expect(modelAnswer(429, headers, text, NOW)).toEqual({ status: 429, waitMs });
    expect(modelAnswer(200, headers, text, NOW)).toEqual({ status: 200, waitMs: null });
  });
});

describe("a run that waits", () => {
  const row = (activity: Run["activity"], seconds: number | null): Run =>
    ({ state: "running", outcome: null, health: "ok", activity, activityUntil: seconds === null ? null : at(seconds) }) as Run;

  test("is shown with the end of its wait by `viv tasks` and by the dashboard", () => {
    expect(stateText(row("rate_limit", 30), NOW)).toBe("running, waits for a rate limit, which ends in 30 s");
    expect(stateText(row("rate_limit", null), NOW)).toBe("running, waits for a rate limit");
    expect(stateText(row("tool", null), NOW)).toBe("running, tool");
    expect(activityWords(row("rate_limit", 30))).toMatch(/^waits for a rate limit, until \d\d:\d\d:30$/);
    expect(activityWords(row("rate_limit", null))).toBe("waits for a rate limit");
    expect(activityWords(row("person", 30))).toBe("waits for you");
  });
});
