/** DMN-2: whether reality is worse after a promotion, and what firings may spend. */
import { describe, expect, test } from "vitest";
import { AutomationSpec } from "../../src/base/schema/automation.ts";
import type { CheckResult } from "../../src/base/schema/check.ts";
import type { FiringRow } from "../../src/base/store/rows.ts";
import { budgetOf, reservedBy } from "../../src/work/automation/budgets.ts";
import { newAutomation } from "../../src/work/automation/definitions.ts";
import { newFiring } from "../../src/work/automation/firing-record.ts";
import { worseIn } from "../../src/work/automation/reality.ts";
import { hindranceOf } from "../../src/work/automation/turns.ts";

const NOW = new Date("2030-01-10T01:00:00Z");

const result = (command: string, exitCode = 0): CheckResult => ({
  command,
  passed: exitCode === 0,
  exitCode,
  runs: 1,
  flaky: false,
  wallMs: 1,
  tests: null,
  output: "",
  cause: null,
});

describe("reality after a promotion", () => {
  const before = [result("npm test"), result("npm run lint", 1)];
  const asked = ["npm test", "npm run lint"];

  test("is not worse where what passed before passes, and what failed before fails", () => {
    expect(worseIn(before, { asked, results: before })).toBeUndefined();
  });

  test("is worse where a line that passed before fails", () => {
    const reason = worseIn(before, { asked, results: [result("npm test", 2), result("npm run lint")] });
    expect(reason).toBe("`npm test` passed before the promotion and ended with 2 after it.");
  });

  test("is worse where the setup fails, so that no check runs", () => {
    const reason = worseIn(before, { asked, results: [result("npm ci", 1)] });
    expect(reason).toBe("`npm test` passed before the promotion and did not run after it: `npm ci` ended with 1.");
  });

  test("is not judged by a line that the config has no more", () => {
    expect(worseIn(before, { asked: ["npm run lint"], results: [result("npm run lint", 1)] })).toBeUndefined();
  });
});

describe("the budget of a firing", () => {
  const spec = (fields: object): AutomationSpec => AutomationSpec.parse({ task: "mend it", ...fields });
  const config = { authority: "act-and-log", parallel: 2, budget: undefined } as const;
  const none = { own: 0, all: 0 };
  const atWork = (patch: Partial<FiringRow>): FiringRow => ({
    ...newFiring(newAutomation({ name: "one", project: "/p", source: "person", spec: spec({}) }, NOW), 1, NOW, 0),
    ...patch,
  });

  test("is the least of its own, of what is left of its night, and of what is left of the night of all", () => {
    expect(budgetOf(spec({}), config, none, none)).toBeUndefined();
    expect(budgetOf(spec({ budget: { run: 2 } }), config, none, none)).toBe(2);
    expect(budgetOf(spec({ budget: { run: 2, night: 5 } }), config, { own: 4, all: 4 }, none)).toBe(1);
    expect(budgetOf(spec({ budget: { night: 5 } }), { ...config, budget: 6 }, { own: 1, all: 3 }, { own: 0, all: 2.5 })).toBe(0.5);
    expect(budgetOf(AutomationSpec.parse({ run: ["make"], budget: { night: 5 } }), config, none, none)).toBeUndefined();
  });

  test("counts as spent while the firing is at work, until what it did spend is known", () => {
    const rows = [
      atWork({ automation: "a", state: "working", budget: 3 }),
      atWork({ automation: "b", state: "verified", budget: 3, cost: 1 }),
      atWork({ automation: "b", state: "working" }),
    ];
    expect(reservedBy(rows, "a")).toEqual({ own: 3, all: 4 });
    expect(reservedBy(rows, "b")).toEqual({ own: 1, all: 4 });
  });

  test("holds up an agent where those at work may spend the rest, and no lines, which cost nothing", () => {
    const around = { now: NOW, config: { ...config, budget: 5 }, running: [], spent: { own: 0, all: 2 }, reserved: { own: 0, all: 3 } };
    const of = (fields: AutomationSpec): ReturnType<typeof hindranceOf> =>
      hindranceOf(newAutomation({ name: "one", project: "/p", source: "person", spec: fields }, NOW), { notBefore: null }, around);
    expect(of(spec({}))).toEqual({ reason: "Firings at work may spend what is left of the budget for the night.", until: null });
    expect(of(AutomationSpec.parse({ run: ["make"] }))).toBeNull();
  });
});
