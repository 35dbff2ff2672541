import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { sanitizedProgram } from "../support/native-programs.ts";
import { needs } from "../support/skip.ts";

const seconds = 4;

test("the frame decoder and the request handling stand hundreds of thousands of broken requests", needs("linux", "compiler"), () => {
  const { seed, runs, acts } = fuzz(sanitizedProgram("fuzz", "tests/fuzz.c shared/frames.c init/channel/*.c", "-DFUZZ_MAIN"));
  expect(runs, `seed ${seed}`).toBeGreaterThan(10_000);
  expect(acts, "some of the requests are good, so the handling behind them is reached").toBeGreaterThan(100);
});

test("the channel of the mover stands hundreds of thousands of broken messages", needs("linux", "compiler"), () => {
  const { seed, runs, acts } = fuzz(
    sanitizedProgram("fuzz-mover", "tests/fuzz_mover.c mover/channel.c mover/request.c", "-Dexit=fuzz_exit"),
  );
  expect(runs, `seed ${seed}`).toBeGreaterThan(10_000);
  expect(acts, "some of the messages are good").toBeGreaterThan(100);
});

test("the front stands hundreds of thousands of broken answers of a server", needs("linux", "compiler"), () => {
  const { seed, runs, acts } = fuzz(sanitizedProgram("fuzz-front", "tests/fuzz_front.c front/session.c front/output.c shared/frames.c"));
  expect(runs, `seed ${seed}`).toBeGreaterThan(10_000);
  expect(acts, "some of the answers are good, so what they ask for is done").toBeGreaterThan(100);
});

function fuzz(program: string): { seed: number; runs: number; acts: number } {
  const seed = Date.now() % 1_000_000;
  const report = execFileSync(program, [String(seconds), String(seed)], { encoding: "utf8" });
  const [, runs, acts] = /runs=(\d+) acts=(\d+)/.exec(report) ?? [];
  return { seed, runs: Number(runs), acts: Number(acts) };
}
