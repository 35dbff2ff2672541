import { describe, expect, test } from "vitest";
import { commandTimeoutMs, newAttempt } from "../../src/work/experiments/input.ts";
import { withOriginalTests } from "../../src/work/checks/manifest.ts";
import { withOriginalRunners } from "../../src/work/checks/pyproject.ts";
import { protectionOf, splitProtected } from "../../src/work/checks/protection.ts";
import { parallelByMachine, Queue } from "../../src/work/experiments/queue.ts";
import { obstacle, ONLY_PROTECTED, rank, whyItWon, type RankingOptions } from "../../src/work/experiments/ranking.ts";
import { needsOf } from "../../src/work/experiments/side-changes.ts";
import { DEFAULT_RULES, type Attempt, type Verdict } from "../../src/base/schema/experiment.ts";

const OPTIONS: RankingOptions = { rules: DEFAULT_RULES, goal: "min", ignoreExit: false, baseline: null };

function verdict(...passed: readonly boolean[]): Verdict {
  const checks = passed.map((isGood, index) => ({
    command: `check-${index}`,
    passed: isGood,
    exitCode: isGood ? 0 : 1,
    runs: 1,
    flaky: false,
    wallMs: 1,
    tests: null,
    output: "",
    cause: null,
  }));
  return { passed: passed.every(Boolean), checks, measure: null, setup: null };
}

/** One check that counted its tests. */
function tested(passed: number, failed: number): Verdict {
  const { checks, ...rest } = verdict(false);
  return { ...rest, checks: checks.map((check) => ({ ...check, tests: { format: "tap" as const, passed, failed, skipped: 0 } })) };
}

/** One that can win. */
function good(index: number, patch: Partial<Attempt> = {}): Attempt {
  return {
    ...newAttempt(index, String(index), "true"),
    state: "done",
    exitCode: 0,
    snapshot: "snp",
    wallMs: 1_000,
    diff: { files: 1, added: 5, removed: 5 },
    checked: verdict(true),
    ...patch,
  };
}

function order(attempts: readonly Attempt[], options: Partial<RankingOptions> = {}): number[] {
  return rank(attempts, { ...OPTIONS, ...options }).map(({ index }) => index);
}

describe("ranking", () => {
  test("EXP-2: by default, of those that pass the same tests, protected files untouched come first, then the measure, the smallest diff, the time", () => {
    const small = { files: 1, added: 1, removed: 0 };
    const attempts = [
      good(1, { diff: small, wallMs: 9_000 }),
      good(2, { diff: small, wallMs: 8_000 }),
      good(3),
      good(4, { protectedChanged: ["test/a"], diff: { files: 1, added: 0, removed: 1 } }),
      good(5, { checked: { ...verdict(true), measure: 3 } }),
      good(6, { checked: { ...verdict(true), measure: 2 } }),
    ];
    expect(order(attempts)).toEqual([6, 5, 2, 1, 3, 4]);
    expect(order(attempts, { goal: "max" }).slice(0, 2)).toEqual([5, 6]);
    expect(order(attempts, { rules: ["time"] }).slice(0, 4)).toEqual([3, 4, 5, 6]);
  });

  test("EXP-1: by cost the cheapest comes first, an attempt without a model costs nothing, and the winner says what it saved", () => {
    const attempts = [
      good(1, { cost: 0.5 }),
      good(2, { cost: 0.02 }),
      good(3, { cost: 0.02, wallMs: 10 }),
      good(4),
      good(5, { cost: 0, exitCode: 3 }),
    ];
    expect(order(attempts, { rules: ["cost", "time"] })).toEqual([4, 3, 2, 1, 5]);
    expect(whyItWon(good(2, { cost: 0.02 }), [good(1, { cost: 0.5 })], 2, { ...OPTIONS, rules: ["cost"] })).toContain(
      "costs the least ($0.0200 against $0.5000)",
    );
  });

  test("EXP-2: what can't win comes last, whatever the rules, and says why", () => {
    const bad = [
      good(1, { exitCode: 3 }),
      good(2, { checked: verdict(true, false) }),
      good(3, { diff: { files: 0, added: 0, removed: 0 } }),
      good(4, { state: "cancelled" }),
      good(5, { flags: [ONLY_PROTECTED] }),
      good(6, { checked: { ...verdict(), passed: false, setup: verdict(false).checks[0] ?? null } }),
    ];
    expect(order([...bad, good(7)], { rules: ["diff"] })[0]).toBe(7);
    expect(bad.map((attempt) => obstacle(attempt, OPTIONS))).toEqual([
      "its command ended with 3",
      "the check `check-1` ended with 1",
      "it changes nothing that can be promoted",
      "it was cancelled",
      "it changes nothing but protected files",
      "the setup `check-0` ended with 1",
    ]);
    expect(obstacle(good(1, { exitCode: 3 }), { ignoreExit: true })).toBeNull();
  });

  test("EXP-2: one that made tests pass comes before one that hung and changed nothing, and failures come last", () => {
    const nothing = { files: 0, added: 0, removed: 0 };
    const baseline = tested(10, 2);
    const hung = good(1, { state: "failed", exitCode: 124, diff: nothing, wallMs: 1, checked: tested(10, 2) });
    const fixedOne = good(2, { checked: tested(11, 1) });
    const idle = good(3, { diff: nothing, wallMs: 1, checked: tested(10, 2) });
    const useless = good(4, { checked: tested(10, 2) });
    const broken = good(5, { diff: { files: 1, added: 1, removed: 0 }, checked: tested(0, 0) });
    const cancelled = good(6, { state: "cancelled", exitCode: null, checked: null, diff: null });
    expect(order([hung, fixedOne, idle, useless, broken, cancelled], { baseline })).toEqual([2, 4, 3, 5, 1, 6]);
    expect(DEFAULT_RULES.indexOf("tests")).toBe(1);
    // Where the tests did not run before, running them at all counts.
    expect(order([broken, fixedOne], { baseline: tested(0, 0) })).toEqual([2, 5]);
  });

  test("EXP-2: of those that pass, one that runs fewer tests comes later, and more tests than before are no advantage", () => {
    const baseline = tested(10, 2);
    const passing = (passed: number): Verdict => ({ ...tested(passed, 0), passed: true });
    const larger = { files: 1, added: 50, removed: 0 };
    const attempts = [good(1, { checked: passing(9) }), good(2, { checked: passing(90), diff: larger }), good(3, { checked: passing(12) })];
    expect(order(attempts, { baseline })).toEqual([3, 2, 1]);
    expect(whyItWon(attempts[2] ?? good(3), attempts.slice(0, 1), 2, { ...OPTIONS, baseline })).toContain(
      "it has the fewest tests that fail or do not run (0 against 3)",
    );
  });

  test("EXP-2: the sentence names the first rule that made the difference", () => {
    const winner = good(1, { name: "patch", diff: { files: 1, added: 1, removed: 1 } });
    expect(whyItWon(winner, [good(2)], 3, OPTIONS)).toBe(
      "Attempt 1 (patch) won: its check passes, also with its change alone on a fresh clone, and of 2 that could win it has the smallest diff (2 lines against 10 lines).",
    );
    expect(whyItWon(winner, [], 3, OPTIONS)).toContain("and no other attempt can win.");
    expect(whyItWon(good(1), [good(2)], 2, OPTIONS)).toContain("it comes first among equals.");
    expect(whyItWon(good(1, { wallMs: 500 }), [good(2)], 2, OPTIONS)).toContain("it is the fastest (0.50 s against 1.00 s).");
  });
});

describe("protection", () => {
  const defaults = protectionOf(null);

  test("EXP-2: existing tests and their configuration are protected by default, new ones are not", () => {
    const paths = [
      "test/a.js",
      "src/__tests__/deep/b.ts",
      "pkg/tests/data.json",
      "spec/a_spec.rb",
      "src/a.test.ts",
      "src/a.spec.tsx",
      "pkg/thing_test.go",
      "test_thing.py",
      "a/conftest.py",
      "vitest.config.ts",
      "jest.config.cjs",
      ".mocharc.json",
      "playwright.config.ts",
      "pytest.ini",
      "tox.ini",
      "src/ThingTest.java",
    ];
    expect(paths.filter((path) => !defaults.protects(path, false))).toEqual([]);
    expect(paths.filter((path) => defaults.protects(path, true))).toEqual([]);
    const others = ["src/contest.ts", "latest/a.js", "src/attest.go", "package.json", "src/testing.ts", "protest.py", "README.md"];
    expect(others.filter((path) => defaults.protects(path, false))).toEqual([]);
  });

  test("EXP-2: named paths hold what is below them, patterns have wildcards, a bare name is meant anywhere", () => {
    const protects = (pattern: string, path: string): boolean => protectionOf([pattern]).protects(path, true);
    expect(protects("lib", "lib/a/b")).toBe(true);
    expect(protects("./lib/", "lib/a")).toBe(true);
    expect(protects("lib/", "other/lib/a")).toBe(false);
    expect(protects("*.lock", "deep/down/yarn.lock")).toBe(true);
    expect(protects("src/*.ts", "src/a.ts")).toBe(true);
    expect(protects("src/*.ts", "src/a/b.ts")).toBe(false);
    expect(protects("src/**/*.ts", "src/a/b.ts")).toBe(true);
    expect(protects("src/**/*.ts", "src/b.ts")).toBe(true);
    expect(protects("a.b", "aXb")).toBe(false);
  });

  test("EXP-2: what stands in the place of a protected file's folder goes with it", () => {
    const file = (id: string): { mode: string; id: string } => ({ mode: "100644", id });
    const change = (path: string, old: string | null, now: string | null) => ({
      path: Buffer.from(path),
      old: old === null ? null : file(old),
      new: now === null ? null : file(now),
    });
    const { free, putBack, changed } = splitProtected(
      [change("tests/a.js", "1", null), change("tests", null, "2"), change("src", "3", "4")],
      defaults,
    );
    expect(changed).toEqual(["tests/a.js"]);
    expect(free.map(({ path }) => path.toString())).toEqual(["src"]);
    expect(putBack.map((each) => [each.path.toString(), each.new?.id ?? null])).toEqual([
      ["tests/a.js", "1"],
      ["tests", null],
    ]);
  });
});

describe("what a change needs", () => {
  const changed = (...paths: readonly string[]) =>
    paths.map((path) => ({ path: Buffer.from(path), old: null, new: { mode: "100644", id: "1" } }));

  test("EXP-2: an install where a lock file changed, else the side changes", () => {
    expect(needsOf(changed("package.json", "package-lock.json"), ["node_modules/ (3 files)"])).toEqual(["npm ci"]);
    expect(needsOf(changed("api/requirements.txt"), [])).toEqual(["pip install -r api/requirements.txt"]);
    expect(needsOf(changed("package.json"), ["node_modules/ (3 files)"])).toEqual(["npm install"]);
    expect(needsOf(changed("src/a"), ["build/ (1 file)", "/etc/hosts"])).toEqual(["build/ (1 file)", "/etc/hosts"]);
  });
});

describe("the queue", () => {
  test("TASK-1: gives turns by priority, then in order, within the limits of all and of a group", async () => {
    const queue = new Queue(2);
    const never = new AbortController().signal;
    const got: string[] = [];
    const leaves = new Map<string, () => void>();
    const ask = async (name: string, priority: number, group: string, groupMost = 9): Promise<void> => {
      leaves.set(name, await queue.take({ priority, order: name, group, groupMost }, never));
      got.push(name);
    };
    const all = [ask("a", 0, "one", 1), ask("b", 0, "one", 1), ask("c", 0, "two"), ask("d", 5, "two"), ask("e", 0, "three")];
    const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    await settle();
    // b waits for its group, d for the limit of all although it is more urgent: turns are not taken away.
    expect(got).toEqual(["a", "c"]);
    leaves.get("c")?.();
    await settle();
    expect(got).toEqual(["a", "c", "d"]);
    leaves.get("a")?.();
    leaves.get("a")?.();
    await settle();
    expect(got).toEqual(["a", "c", "d", "b"]);
    leaves.get("d")?.();
    await Promise.all(all);
    expect(got).toEqual(["a", "c", "d", "b", "e"]);
  });

  test("TASK-1: one that is cancelled leaves the queue", async () => {
    const queue = new Queue(1);
    const stop = new AbortController();
    const leave = await queue.take({ priority: 0, order: "a", group: "g", groupMost: 1 }, stop.signal);
    const waiting = queue.take({ priority: 0, order: "b", group: "g", groupMost: 1 }, stop.signal);
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ code: "cancelled" });
    leave();
    await queue.take({ priority: 0, order: "c", group: "g", groupMost: 1 }, new AbortController().signal);
  });

  test("TASK-1: the machine's size bounds it", () => {
    expect(parallelByMachine(2, 4 * 1024 ** 3)).toBe(8);
    expect(parallelByMachine(16, 64 * 1024 ** 3)).toBe(64);
    expect(parallelByMachine(16, 1024 ** 3)).toBe(4);
    expect(parallelByMachine(1, 256 * 1024 ** 2)).toBe(2);
  });
});

describe("a manifest", () => {
  const judge = (old: unknown, now: unknown): unknown => {
    const text = withOriginalTests(JSON.stringify(old), JSON.stringify(now));
    return text === null ? null : text === JSON.stringify(old) ? "original" : JSON.parse(text);
  };

  test("EXP-2: is judged with its original scripts and test runners", () => {
    const old = { name: "p", scripts: { test: "vitest", build: "tsc" }, jest: { bail: 1 } };
    expect(judge(old, { ...old, dependencies: { a: "2" } })).toBeNull();
    expect(judge(old, { ...old, scripts: { ...old.scripts, lint: "oxlint" } })).toBeNull();
    expect(judge(old, { ...old, scripts: { test: "true" } })).toBe("original");
    expect(judge(old, { ...old, jest: undefined })).toBe("original");
    expect(judge(old, { ...old, mocha: {}, scripts: { ...old.scripts, pretest: "rm -r test" } })).toBe("original");
    expect(judge(old, { ...old, version: "2", scripts: { ...old.scripts, test: "true", lint: "x" } })).toEqual({
      ...old,
      version: "2",
      scripts: { ...old.scripts, lint: "x" },
    });
    expect(withOriginalTests("{", "{}")).toBeNull();
    expect(withOriginalTests("{}", "[]")).toBeNull();
  });
});

describe("a pyproject.toml", () => {
  const old = '[project]\nname = "p"\n\n[tool.pytest.ini_options]\naddopts = "-q"\n\n[tool.ruff]\nline-length = 100\n';
  const judge = (now: string): string | null => withOriginalRunners(old, now);

  test("EXP-2: is judged with its original test runners", () => {
    expect(judge(old.replace('"p"', '"q"'))).toBeNull();
    expect(judge(old.replace("-q", "-q --ignore=test"))).toBe(old);
    expect(judge(old.replace('"p"', '"q"').replace("-q", "--co"))).toMatch(
      /^\[project\]\nname = "q"\n[^]*\[tool\.pytest\.ini_options\]\naddopts = "-q"\n/,
    );
    expect(judge(old.replace("-q", "--co"))).toBe(old);
    expect(withOriginalRunners("[project]\n", '[project]\n[tool.coverage.run]\nomit = ["*"]\n')).toBe("[project]\n");
  });

  test("EXP-2: what only looks like a runner's table is left as it is", () => {
    expect(judge(old.replace('"p"', '"""\n[tool.pytest.ini_options]\naddopts = 1\n"""'))).toBeNull();
    expect(judge(old.replace('"-q"', "'-q' # another comment"))).toBeNull();
    expect(judge(`${old}[tool`)).toBe(old);
  });

  test("EXP-2: a runner's table is found however it is written", () => {
    const bare = "[project]\nname = 'p'\n";
    for (const hidden of [
      "[ tool . pytest . ini_options ]\naddopts = '--co'\n",
      '["tool"."pytest"."ini_options"]\naddopts = "--co"\n',
      "[tool]\npytest.ini_options.addopts = '--co'\n",
      "[tool]\n'pytest' . ini_options = { addopts = '--co' }\n",
      "tool.pytest.ini_options.addopts = '--co'\n",
      "tool = { pytest = { ini_options = { addopts = '--co' } } }\n",
      '["tool"."p\\u0079test"."ini_options"]\naddopts = "--co"\n',
    ]) {
      const now = hidden.startsWith("tool") ? hidden + bare : bare + hidden;
      expect(withOriginalRunners(bare, now) ?? now, hidden).not.toContain("--co");
    }
  });
});

test("LIM-1: a task has ten minutes, or the time it asks for", () => {
  const row = (timeoutMs?: number) => ({ input: { timeoutMs } }) as Parameters<typeof commandTimeoutMs>[0];
  expect(commandTimeoutMs(row())).toBe(600_000);
  expect(commandTimeoutMs(row(5_000))).toBe(5_000);
});
