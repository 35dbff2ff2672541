import { expect, test } from "vitest";
import { requireRunnable } from "../../src/work/experiments/runnable-checks.ts";

const PATH = "/usr/bin:/bin";

test.each(["no-such-program", "no-such-program --all && true", "  no-such-program | cat"])(
  "the check %j can't run, and is told before anything starts",
  (line) => {
    expect(() => requireRunnable(["true", line], PATH)).toThrow(/there is no program no-such-program on your PATH/);
  },
);

test.each([
  "sh -c no-such-program",
  "cd sub && no-such-program",
  "./made-by-the-agent.sh",
  "node_modules/.bin/made-later",
  "$RUNNER test",
  "A=1 no-such-program",
  "f() { no-such-program; }; f",
  "for i in 1 2; do no-such-program; done",
  "[ -f x ]",
  "! grep -q x y",
  "test -f x || no-such-program",
])("the check %j may run", (line) => {
  expect(() => requireRunnable([line], PATH)).not.toThrow();
});

test("without a PATH nothing is known of programs", () => {
  expect(() => requireRunnable(["no-such-program"], undefined)).not.toThrow();
});
