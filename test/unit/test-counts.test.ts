import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { countTests } from "../../src/work/checks/test-counts.ts";
import { workMs } from "../support/work.ts";

const VITEST = fileURLToPath(new URL("../../node_modules/vitest/vitest.mjs", import.meta.url));

describe("tests counted in the output of the real runner", () => {
  let place: string;

  beforeAll(() => {
    place = mkdtempSync(join(tmpdir(), "viv-counts-"));
    const head = 'import test from "node:test"; import assert from "node:assert";\n';
    const body = 'test("a", () => {}); test("b > c", () => assert.equal(1, 2)); test.skip("d", () => {}); test.todo("e");';
    writeFileSync(join(place, "some.test.mjs"), head + body);
    writeFileSync(
      join(place, "other.test.ts"),
      'import { expect, test } from "vitest"; test("a", () => {}); test("b", () => {}); test("c", () => expect(1).toBe(2)); test.skip("d", () => {});',
    );
  });

  afterAll(() => rmSync(place, { recursive: true, force: true }));

  function node(...args: readonly string[]): string {
    // A test runner inside a test runner is told so by the environment, and then behaves differently.
    const env = { PATH: process.env["PATH"], FORCE_COLOR: "1" };
    const { stdout, stderr } = spawnSync(process.execPath, [...args], { cwd: place, env, encoding: "utf8" });
    return stdout + stderr;
  }

  for (const [reporter, format] of [
    ["spec", "node"],
    ["tap", "node"],
    ["junit", "junit"],
  ] as const) {
    test(`EXP-2: node --test, reporter ${reporter}`, () => {
      const counted = countTests(node("--test", `--test-reporter=${reporter}`, "some.test.mjs"));
      expect(counted).toEqual({ format, passed: 1, failed: 1, skipped: 2 });
    });
  }

  for (const [reporter, format] of [
    ["default", "vitest"],
    ["tap-flat", "tap"],
  ] as const) {
    test(`EXP-2: vitest, reporter ${reporter}`, () => {
      const counted = countTests(node(VITEST, "run", "--root", place, `--reporter=${reporter}`, "other.test.ts"));
      expect(counted).toEqual({ format, passed: 2, failed: 1, skipped: 1 });
    });
  }

  test("EXP-2: vitest, reporter junit", () => {
    const file = join(place, "report.xml");
    node(VITEST, "run", "--root", place, "--reporter=junit", `--outputFile=${file}`, "other.test.ts");
    expect(countTests(readFileSync(file, "utf8"))).toEqual({ format: "junit", passed: 2, failed: 1, skipped: 1 });
  });
});

describe("tests counted in output", () => {
  test("EXP-2: pytest with its frame, with colours, and quiet", () => {
    const expected = { format: "pytest", passed: 1, failed: 2, skipped: 2 };
    const summary = "1 failed, 1 passed, 1 skipped, 1 xfailed, 1 error in 1.41s";
    expect(countTests(`FAILED test_p.py::test_bad - assert 1 == 2\n========== ${summary} ==========\n`)).toEqual(expected);
    expect(countTests(`x\n${summary}\n`)).toEqual(expected);
    expect(
      countTests(
        "\u001B[31m========== \u001B[31m\u001B[1m1 failed\u001B[0m, \u001B[32m1 passed\u001B[0m, \u001B[33m1 skipped\u001B[0m, \u001B[33m1 xfailed\u001B[0m, \u001B[31m\u001B[1m1 error\u001B[0m\u001B[31m in 2.14s\u001B[0m\u001B[31m ==========\u001B[0m\n",
      ),
    ).toEqual(expected);
    expect(countTests("===== 12 passed, 3 warnings in 61.05s (0:01:01) =====\n")).toEqual({
      format: "pytest",
      passed: 12,
      failed: 0,
      skipped: 0,
    });
  });

  test("EXP-2: nested suites of JUnit are counted once", () => {
    const xml = `<testsuites tests="9"><testsuite tests="3" failures="1"><testsuite tests="3">
      <testcase name="a" time="1"/><testcase name="b > c"><failure message="no"/></testcase><testcase name="d"><error/></testcase>
      <testcase name="e"><skipped/></testcase></testsuite></testsuite></testsuites>`;
    expect(countTests(xml)).toEqual({ format: "junit", passed: 1, failed: 2, skipped: 1 });
  });

  test("EXP-2: TAP without a runner's summary is counted by its lines", () => {
    expect(countTests("TAP version 14\nok 1 - a\n    not ok 1 - inner\nnot ok 2 - b\nok 3 # SKIP later\nnot ok 4 # todo\n1..4\n")).toEqual({
      format: "tap",
      passed: 1,
      failed: 1,
      skipped: 2,
    });
  });

  test("EXP-2: runs of several packages are added up", () => {
    expect(countTests("      Tests  2 passed (2)\nnext\n      Tests  1 failed | 3 passed (4)\n")).toMatchObject({ passed: 5, failed: 1 });
  });

  test("EXP-2: other output is of no known kind", () => {
    for (const text of ["", "ok then\n", "Tests passed\n", "all good in 3s\n", "# tests are fun\n"]) expect(countTests(text)).toBeNull();
  });

  test("EXP-2: hostile output takes no time", () => {
    const began = workMs();
    for (const piece of ["1 a, ", "<testcase ", "Tests  1 x | ", "ok ", "\u001B[", "= "]) countTests(piece.repeat(200_000));
    countTests(`      Tests  ${"1 a | ".repeat(150_000)}!`);
    countTests(`<testsuite ${"<testcase>".repeat(100_000)}`);
    expect(workMs() - began).toBeLessThan(5_000);
  });
});
