/** Parts of automations that need no sandbox. */
import { appendFileSync, mkdtempSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { AutomationSpec } from "../../src/base/schema/automation.ts";
import { AUTHORITIES, FIRING_STATES } from "../../src/base/schema/choices.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { effectivePolicy } from "../../src/base/policy/policy.ts";
import type { AutomationRow, FiringRow } from "../../src/base/store/rows.ts";
import { within } from "../../src/work/automation/authority.ts";
import { newAutomation } from "../../src/work/automation/definitions.ts";
import { advanced, newFiring, withSighting } from "../../src/work/automation/firing-record.ts";
import { isFinalState, requireTransition } from "../../src/work/automation/firing-state.ts";
import { triageFiring } from "../../src/work/automation/firing-triage.ts";
import { FilePatterns } from "../../src/work/automation/triggers/file-patterns.ts";
import { endOfLog, newLines, type LogPlace } from "../../src/work/automation/triggers/log-tail.ts";
import { signHook, WebhookTrigger } from "../../src/work/automation/triggers/webhook.ts";
import { hindranceOf, type Surroundings } from "../../src/work/automation/turns.ts";

const NOW = new Date("2030-01-10T01:00:00Z");

function automation(spec: Partial<AutomationSpec> = {}): AutomationRow {
  return newAutomation({ name: "one", project: "/p", source: "person", spec: AutomationSpec.parse({ run: ["make"], ...spec }) }, NOW);
}

describe("bad input", () => {
  test.each([
    [{ task: "x", run: ["y"] }, "both a task and lines"],
    [{}, "neither"],
    [{ run: ["x"], agent: "claude" }, "an agent without a task"],
    [{ run: ["x"], when: { on: "schedule", cron: "0 3 * * *", timezone: "Mars/Base" } }, "an unknown time zone"],
    [{ run: ["x"], when: { on: "commit", branch: "../../etc" } }, "a branch that leads elsewhere"],
    [{ run: ["x"], when: { on: "commit", branch: "-x" } }, "a branch that is an option"],
    [{ run: ["x"], when: { on: "log", file: "relative.log", line: "*" } }, "a log that is no absolute path"],
    [{ run: ["x"], when: { on: "check", command: "x", every: "1ms" } }, "a check without a pause"],
    [{ run: ["x"], quiet: { from: "8", to: "25:00" } }, "hours that are none"],
    [{ run: ["x"], authority: "everything" }, "an authority that is none"],
    [{ run: ["x"], more: 1 }, "a field that is none"],
  ] as [object, string][])("is refused: %j (%s)", (spec) => {
    expect(AutomationSpec.safeParse(spec).success).toBe(false);
  });
});

describe("authority and triage", () => {
  test("DMN-2: the lesser of both counts, whichever it is", () => {
    for (const [low, own] of AUTHORITIES.entries())
      for (const [high, most] of AUTHORITIES.entries()) expect(within(own, most)).toBe(AUTHORITIES[Math.min(low, high)]);
  });

  test("POL-9: no way acts in reality with less authority than to act, or without a check", () => {
    const policy = effectivePolicy({ project: "/p" });
    for (const authority of AUTHORITIES)
      for (const checks of [[], ["make test"]])
        for (const run of [["make"], ["git push origin main"], ["curl -d x https://example.com"]]) {
          const { way, reason } = triageFiring({ spec: automation({ run }).spec, authority, policy, checks });
          expect(reason).toMatch(/\.$/);
          const isHeldBack = authority === "propose-and-wait" || checks.length === 0 || run[0] !== "make";
          expect(way).toBe(authority === "alert-only" ? "alert" : isHeldBack ? "propose" : "sandbox");
        }
  });
});

describe("a firing", () => {
  test("goes from state to state as its table says, and refuses others", () => {
    for (const state of FIRING_STATES.filter(isFinalState))
      for (const next of FIRING_STATES) expect(() => requireTransition("fir", state, next)).toThrow("can't become");
    const seen = newFiring(automation(), 1, NOW, 0);
    expect(() => advanced(seen, "promoted", null, NOW)).toThrow("can't become promoted");
    expect(advanced(advanced(seen, "triaged", null, NOW), "alerted", "x", NOW)).toMatchObject({
      state: "alerted",
      endedAt: NOW.toISOString(),
    });
  });

  test("DMN-1: stands for all that comes before it begins, within bounds; what a person did is no loop", () => {
    let row: FiringRow = newFiring(automation(), 1, NOW, 0);
    for (let index = 0; index < 500; index += 1) row = withSighting(row, { key: null, text: "x".repeat(9_000), causes: ["aut"] }, NOW);
    expect(row.count).toBe(500);
    expect(row.seen).toHaveLength(LIMITS.seenTexts);
    expect(JSON.stringify(row).length).toBeLessThan(60_000);
    expect(row.causes).toEqual(["aut"]);
    expect(withSighting(row, { key: null, text: "a person" }, NOW).causes).toBeUndefined();
  });
});

describe("a turn", () => {
  const around: Surroundings = {
    now: NOW,
    config: { authority: "act-and-log", parallel: 2, budget: undefined },
    running: [],
    spent: { own: 0, all: 0 },
    reserved: { own: 0, all: 0 },
  };
  const free = { notBefore: null };
  const busy = { automation: "other", project: "/p", name: "other", together: false };

  test("is given at once where nothing is in the way", () => {
    expect(hindranceOf(automation(), free, around)).toBeNull();
  });

  test("waits for the batch, for quiet hours, for the night's budget, for others; each with its reason", () => {
    const later = new Date(NOW.getTime() + 1_000).toISOString();
    expect(hindranceOf(automation(), { notBefore: later }, around)?.until?.toISOString()).toBe(later);
    const quiet = automation({ quiet: { from: "00:00", to: "06:00", timezone: "UTC" } });
    expect(hindranceOf(quiet, free, around)?.until).toEqual(new Date("2030-01-10T06:00:00Z"));
    expect(hindranceOf(quiet, { ...free, asked: true }, around)).toBeNull();
    expect(hindranceOf(automation({ budget: { night: 2 } }), free, { ...around, spent: { own: 2, all: 2 } })?.reason).toContain("$2");
    const all = { ...around, config: { ...around.config, budget: 5 }, spent: { own: 0, all: 6 } };
    expect(hindranceOf(automation(), free, all)?.until?.getTime()).toBeGreaterThan(NOW.getTime());
    expect(hindranceOf(automation(), free, { ...around, running: [busy] })?.reason).toBe("The automation other works on the project.");
    expect(hindranceOf(automation({ together: true }), free, { ...around, running: [busy] })).toBeNull();
    expect(hindranceOf(automation(), free, { ...around, running: [{ ...busy, together: true }] })).toBeNull();
    const elsewhere = [1, 2].map((index) => ({ ...busy, project: `/${index}` }));
    expect(hindranceOf(automation(), free, { ...around, running: elsewhere })?.reason).toContain("no more are allowed");
  });
});

describe("patterns of files", () => {
  test.each([
    ["src", "src/a/b.ts", true],
    ["src/*", "src/a/b.ts", true],
    ["src/**/*.ts", "src/b.ts", true],
    ["src/**.ts", "src/a/b.ts", true],
    ["*.ts", "src/a/b.ts", true],
    ["./package.json", "package.json", true],
    ["package.json", "web/package.json", false],
    ["src", "srcs/a", false],
  ])("%s and %s: %s", (pattern, path, isMatch) => {
    expect(new FilePatterns([pattern]).matches(path)).toBe(isMatch);
  });

  test("pass over what others write, unless it is named", () => {
    expect(new FilePatterns(["*"]).mayMatchBelow("node_modules")).toBe(false);
    expect(new FilePatterns(["node_modules/x/*"]).mayMatchBelow("node_modules")).toBe(true);
    expect(new FilePatterns(["src/*"]).mayMatchBelow("docs")).toBe(false);
    expect(new FilePatterns(["src/deep/*.ts"]).mayMatchBelow("src")).toBe(true);
  });
});

describe("the tail of a log", () => {
  const folder = mkdtempSync(join(tmpdir(), "viv-tail-"));
  const file = join(folder, "app.log");
  let place: LogPlace;
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  beforeEach(async () => {
    rmSync(`${file}.1`, { force: true });
    writeFileSync(file, "old\n");
    place = await endOfLog(file);
  });

  async function all(): Promise<string[]> {
    const lines: string[] = [];
    for (let more = true; more;) {
      const read = await newLines(file, place);
      lines.push(...read.lines);
      ({ place, more } = read);
    }
    return lines;
  }

  test("is what is new, in whole lines", async () => {
    appendFileSync(file, "one\ntw");
    expect(await all()).toEqual(["one"]);
    appendFileSync(file, "o\n");
    expect(await all()).toEqual(["two"]);
  });

  test("goes on through a rotation: first what was left of the old file, then the new one", async () => {
    appendFileSync(file, "one\n");
    renameSync(file, `${file}.1`);
    appendFileSync(`${file}.1`, "two");
    writeFileSync(file, "three\n");
    expect(await all()).toEqual(["one", "two", "three"]);
  });

  test("begins anew in a file that was made shorter, and waits for one that is gone", async () => {
    truncateSync(file, 0);
    appendFileSync(file, "a\n");
    expect(await all()).toEqual(["a"]);
    rmSync(file);
    expect(await all()).toEqual([]);
    writeFileSync(file, "b\n");
    expect(await all()).toEqual(["b"]);
  });

  test("reads a line without an end in pieces, and passes over what is too much", async () => {
    appendFileSync(file, "x".repeat(3 * LIMITS.logReadBytes));
    expect((await all()).every((line) => line.length <= LIMITS.logLineBytes)).toBe(true);
    appendFileSync(file, `\n${"y\n".repeat(LIMITS.logBehindBytes)}`);
    const read = await newLines(file, place);
    expect(read.skipped).toBeGreaterThan(LIMITS.logBehindBytes / 2);
  });
});

describe("DMN-1: a webhook", () => {
  const clock = { now: () => NOW.getTime(), after: () => () => undefined };
  const seconds = NOW.getTime() / 1000;
  const body = Buffer.from('{"ok":1}');

  function hook(keys = new Set<string>()): { hook: WebhookTrigger; taken: () => number } {
    const made = new WebhookTrigger("secret", clock, async (sightings) => {
      await new Promise((resolve) => setImmediate(resolve));
      const fresh = sightings.filter(({ key }) => key !== null && !keys.has(key));
      for (const { key } of fresh) keys.add(key ?? "");
      return fresh.length === 0 ? undefined : newFiring(automation(), 1, NOW, 0);
    });
    return { hook: made, taken: () => keys.size };
  }

  test("takes a call that is signed with the time, and refuses every other", async () => {
    const { hook: one, taken } = hook();
    const good = signHook("secret", seconds, body);
    for (const signature of [
      undefined,
      "",
      good.replace("v1=", "v2="),
      signHook("other", seconds, body),
      signHook("secret", seconds, "{}"),
      signHook("secret", seconds - 301, body),
      signHook("secret", seconds + 301, body),
      good.replace(/t=\d+/, `t=${seconds + 1}`),
      `${good}00`,
    ])
      await expect(one.call({ signature, body })).rejects.toMatchObject({ code: "unauthorized" });
    expect(taken()).toBe(0);
    await expect(one.call({ signature: good, body })).resolves.toMatch(/^fir/);
  });

  test("refuses what came before, also at the same time and after a restart", async () => {
    const keys = new Set<string>();
    const signature = signHook("secret", seconds, body);
    const { hook: one } = hook(keys);
    const both = await Promise.allSettled([one.call({ signature, body }), one.call({ signature, body })]);
    expect(both.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    await expect(one.call({ signature, body })).rejects.toMatchObject({ code: "exists" });
    await expect(hook(keys).hook.call({ signature, body })).rejects.toMatchObject({ code: "exists" });
  });

  test("keeps at most a bounded number waiting: of 10,000 at once the rest is turned away, and none is lost that was taken", async () => {
    const { hook: one, taken } = hook();
    const calls = Array.from({ length: 10_000 }, (_, index) => {
      const each = Buffer.from(String(index));
      return one.call({ signature: signHook("secret", seconds, each), body: each });
    });
    const results = await Promise.allSettled(calls);
    const good = results.filter(({ status }) => status === "fulfilled").length;
    const refused = results.flatMap((result) => (result.status === "rejected" ? [(result.reason as { code: string }).code] : []));
    expect(new Set(refused)).toEqual(new Set(["rate_limited"]));
    expect(good).toBe(LIMITS.waitingHooks);
    expect(taken()).toBe(good);
  });
});
