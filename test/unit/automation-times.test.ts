/** DMN-1: schedules over a clock that is set, changed for summer, and stands still while no server is there. */
import { describe, expect, test } from "vitest";
import type { Clock } from "../../src/work/automation/clock.ts";
import { CronLine } from "../../src/work/automation/cron-line.ts";
import type { Sighting } from "../../src/work/automation/firing-record.ts";
import { nightOf, quietUntil } from "../../src/work/automation/hours.ts";
import { ScheduleTrigger } from "../../src/work/automation/triggers/schedule.ts";
import { HandClock } from "../support/hand-clock.ts";

const at = (text: string): Date => new Date(text);
const DAY = 24 * 3_600_000;

describe("a line of cron", () => {
  test.each([
    ["60 3 * * *", "minute 60"],
    ["", "empty"],
    ["every day", "words"],
    ["* * * * * * * *", "too many fields"],
    ["0 0 31 2 *", "a day that never comes"],
    ["*/0 * * * *", "a step of nothing"],
  ])("that is wrong is refused in one sentence: %s (%s)", (line) => {
    expect(() => new CronLine(line, undefined)).toThrowError(
      expect.objectContaining({ code: "invalid_input", message: expect.stringMatching(/^[^\n]+\.$/) }),
    );
  });

  test("in spring, a time that the clocks leave out comes once, right after, and days before and after are as written", () => {
    const line = new CronLine("30 2 * * *", "Europe/Berlin");
    const times = [];
    for (let now = at("2030-03-29T12:00:00Z"); times.length < 4; now = times.at(-1) ?? now) times.push(line.next(now) ?? now);
    expect(times.map((time) => time.toISOString())).toEqual([
      "2030-03-30T01:30:00.000Z",
      "2030-03-31T01:00:00.000Z",
      "2030-04-01T00:30:00.000Z",
      "2030-04-02T00:30:00.000Z",
    ]);
  });

  test("in autumn, a time that comes twice fires once", () => {
    const line = new CronLine("30 2 * * *", "Europe/Berlin");
    const missed = line.missed(at("2030-10-26T12:00:00Z"), at("2030-10-27T12:00:00Z"));
    expect(missed?.count).toBe(1);
  });

  test("counts what was missed, and names the last; of very many, the last all the same", () => {
    const line = new CronLine("0 3 * * *", "UTC");
    expect(line.missed(at("2030-01-01T12:00:00Z"), at("2030-01-05T12:00:00Z"))).toEqual({ last: at("2030-01-05T03:00:00Z"), count: 4 });
    expect(line.missed(at("2030-01-01T12:00:00Z"), at("2030-01-01T13:00:00Z"))).toBeNull();
    const often = new CronLine("* * * * * *", "UTC").missed(at("2030-01-01T00:00:00Z"), at("2030-01-05T00:00:00Z"));
    expect(often).toEqual({ last: at("2030-01-05T00:00:00Z"), count: 1000 });
  });
});

describe("DMN-1: a schedule", () => {
  const seen: (Sighting & { readonly cursor: unknown })[] = [];

  /** As the store does it: a key is taken once. */
  function trigger(clock: Clock, cursor: Record<string, string>, line: CronLine): ScheduleTrigger {
    return new ScheduleTrigger(line, clock, cursor, async (sightings, next) => {
      for (const sighting of sightings) if (!seen.some(({ key }) => key === sighting.key)) seen.push({ ...sighting, cursor: next });
    });
  }

  async function through(
    start: string,
    work: (clock: HandClock) => Promise<void>,
    cursor: Record<string, string> = {},
    line = new CronLine("0 3 * * *", "UTC"),
  ): Promise<string[]> {
    seen.length = 0;
    const clock = new HandClock(start);
    const schedule = trigger(clock, cursor, line);
    await schedule.start();
    await work(clock);
    await schedule.stop();
    return seen.map(({ key }) => key ?? "");
  }

  test("fires once a day", async () => {
    const keys = await through("2030-01-01T00:00:00Z", (clock) => clock.pass(3 * DAY));
    expect(keys).toEqual(["01", "02", "03"].map((day) => `schedule:2030-01-${day}T03:00:00.000Z`));
  });

  test("fires once a day where the clocks are changed: at a time that is left out, and at one that comes twice", async () => {
    const line = new CronLine("30 2 * * *", "Europe/Berlin");
    const spring = await through("2030-03-30T12:00:00Z", (clock) => clock.pass(2 * DAY), {}, line);
    expect(spring).toEqual(["schedule:2030-03-31T01:00:00.000Z", "schedule:2030-04-01T00:30:00.000Z"]);
    const autumn = await through("2030-10-26T12:00:00Z", (clock) => clock.pass(2 * DAY), {}, line);
    expect(autumn).toHaveLength(2);
    expect(autumn[1]).toBe("schedule:2030-10-28T01:30:00.000Z");
  });

  test("catches up once after downtime, and says how many were missed", async () => {
    const keys = await through("2030-01-05T12:00:00Z", (clock) => clock.pass(60_000), { looked: "2030-01-01T12:00:00Z" });
    expect(keys).toEqual(["schedule:2030-01-05T03:00:00.000Z"]);
    expect(seen[0]?.text).toContain("3 earlier times were missed");
  });

  test("does not fire for the time before it was added", async () => {
    expect(await through("2030-01-05T12:00:00Z", (clock) => clock.pass(60_000))).toEqual([]);
  });

  test("of a clock that jumps a day ahead fires once for it, within a minute", async () => {
    const keys = await through("2030-01-01T04:00:00Z", async (clock) => {
      clock.set(DAY);
      await clock.pass(2 * 60_000);
    });
    expect(keys).toEqual(["schedule:2030-01-02T03:00:00.000Z"]);
  });

  test("of a clock that jumps a day back fires no time of day twice, and goes on after it", async () => {
    const keys = await through("2030-01-02T02:00:00Z", async (clock) => {
      await clock.pass(2 * 3_600_000);
      clock.set(-DAY);
      await clock.pass(3 * DAY);
    });
    expect(keys).toEqual(["02", "03"].map((day) => `schedule:2030-01-${day}T03:00:00.000Z`).concat("schedule:2030-01-04T03:00:00.000Z"));
  });
});

describe("quiet hours", () => {
  const quiet = { from: "08:00", to: "18:00", timezone: "Europe/Berlin" };

  test("end at their end, in their time zone", () => {
    expect(quietUntil(quiet, at("2030-01-10T06:59:00Z"))).toBeNull();
    expect(quietUntil(quiet, at("2030-01-10T07:00:00Z"))).toEqual(at("2030-01-10T17:00:00Z"));
    expect(quietUntil(quiet, at("2030-01-10T17:00:00Z"))).toBeNull();
    expect(quietUntil(quiet, at("2030-07-10T06:00:00Z"))).toEqual(at("2030-07-10T16:00:00Z"));
  });

  test("may go over midnight", () => {
    const night = { from: "22:00", to: "06:00", timezone: "UTC" };
    expect(quietUntil(night, at("2030-01-10T23:00:00Z"))).toEqual(at("2030-01-11T06:00:00Z"));
    expect(quietUntil(night, at("2030-01-11T05:59:00Z"))).toEqual(at("2030-01-11T06:00:00Z"));
    expect(quietUntil(night, at("2030-01-11T06:00:00Z"))).toBeNull();
    expect(quietUntil(undefined, at("2030-01-11T05:00:00Z"))).toBeNull();
  });

  test("a night is from noon to noon, also where clocks are changed", () => {
    expect(nightOf(at("2030-01-11T05:00:00Z"), "UTC")).toEqual({ began: at("2030-01-10T12:00:00Z"), ends: at("2030-01-11T12:00:00Z") });
    expect(nightOf(at("2030-01-11T12:00:00Z"), "UTC").began).toEqual(at("2030-01-11T12:00:00Z"));
    const spring = nightOf(at("2030-03-31T04:00:00Z"), "Europe/Berlin");
    expect(spring).toEqual({ began: at("2030-03-30T11:00:00Z"), ends: at("2030-03-31T10:00:00Z") });
  });
});
