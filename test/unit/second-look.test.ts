import { describe, expect, test } from "vitest";
import { afterSecondLook, forSecondLook, unsteadyParts, type FileRecord, type Run } from "../../scripts/second-look.ts";

const file = (name: string, tests: Readonly<Record<string, string>>, status = "failed"): FileRecord => ({
  name,
  startTime: 0,
  endTime: 1,
  status,
  message: "",
  assertionResults: Object.entries(tests).map(([fullName, how]) => ({ fullName, status: how })),
});
const run = (files: readonly FileRecord[], exitCode = 1, strayErrors = 0): Run => ({ exitCode, files, strayErrors });

describe("a second look at files that failed", () => {
  const failed = file("a", { one: "passed", two: "failed" });

  test("takes the results of a file whose failed tests pass alone, and names those", () => {
    const passed = file("a", { one: "passed", two: "passed" }, "passed");
    expect(forSecondLook(run([failed, file("b", { three: "passed" }, "passed")]))).toEqual([failed]);
    expect(afterSecondLook(run([failed]), run([passed], 0))).toEqual(run([passed], 0));
    expect(unsteadyParts(failed, run([passed])).map(({ what }) => what)).toEqual(["two (a)"]);
  });

  test("names a hook that failed and passes alone", () => {
    const hook = { ...file("a", { one: "skipped" }), message: "no server" };
    expect(unsteadyParts(hook, run([file("a", { one: "passed" }, "passed")]))).toEqual([{ what: "a hook (a)", why: "no server" }]);
  });

  test.each([
    ["fails again", file("a", { one: "passed", two: "failed" })],
    ["is skipped then", file("a", { one: "passed", two: "skipped" }, "passed")],
    ["is missing then", file("a", { one: "passed" }, "passed")],
    ["passes in a file whose hooks fail", file("a", { one: "passed", two: "passed" })],
  ])("keeps the failure of a test that %s", (_, second) => {
    expect(afterSecondLook(run([failed]), run([second], 0)).files).toEqual([failed]);
  });

  test("keeps the failure of a file that was not run again", () => {
    expect(afterSecondLook(run([failed]), run([], 0)).files).toEqual([failed]);
  });

  test("is not taken when an error came from outside any test, or when many files failed", () => {
    expect(forSecondLook(run([failed], 1, 1))).toEqual([]);
    expect(forSecondLook(run(["a", "b", "c", "d", "e"].map((name) => file(name, { one: "failed" }))))).toEqual([]);
  });
});
