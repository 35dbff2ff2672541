import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { build, temporaryFolder } from "../support/cell-process.ts";
import { needs } from "../support/skip.ts";

const seconds = 4;

test("the frame decoder and the request handling stand hundreds of thousands of broken requests", needs("linux", "compiler"), () => {
  const folder = temporaryFolder();
  try {
    const program = join(folder, "fuzz");
    build(program, ["tests/fuzz.c", "shared/frames.c", "init/channel/*.c"], ["-DFUZZ_MAIN"]);
    const seed = Date.now() % 1_000_000;
    const report = execFileSync(program, [String(seconds), String(seed)], { encoding: "utf8" });
    const [, runs, acts] = /runs=(\d+) acts=(\d+)/.exec(report) ?? [];
    expect(Number(runs), `seed ${seed}`).toBeGreaterThan(10_000);
    expect(Number(acts), "some of the requests are good, so the handling behind them is reached").toBeGreaterThan(100);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
