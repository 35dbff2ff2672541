/** The walk of a new user with an agent, as its script does it: from nothing installed to the promoted change. */
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { CHECKOUT, PROGRAM, USER_CACHE } from "../support/compiled.ts";
import { realAgent } from "../support/real-agents.ts";
import { missing, needs } from "../support/skip.ts";

const { needed } = await realAgent("claude");

describe("the first task for an agent", missing("root") === undefined ? needed : needs("root"), () => {
  const place = mkdtempSync(join(CHECKOUT, ".cache/example-"));
  afterAll(() => rmSync(place, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 }));

  test("COORD-4: ends as its README says", { timeout: 180_000 }, async () => {
    // Fetched once for all tests of this checkout; the script finds it as one that is installed already.
    mkdirSync(join(place, "state/agents"), { recursive: true, mode: 0o700 });
    execFileSync("cp", ["-al", join(CHECKOUT, ".cache/agents/claude"), join(place, "state/agents/")]);
    const env = {
      ...process.env,
      PATH: `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`,
      VIV: PROGRAM,
      XDG_CACHE_HOME: USER_CACHE,
      HOME: place,
      VIV_HOME: join(place, "state"),
    };
    const script = join(CHECKOUT, "examples/first-agent-task/run.sh");
    const { stdout, stderr } = await promisify(execFile)("bash", [script], { env, cwd: place });
    for (const promise of [
      "A project with a bug: tests fail.",
      "Claude Code",
      "asks reviewer: Is this fix of src/discount.js right?",
      "reviewer: APPROVED: src/discount.js:3",
      "leaves for later: Refuse discounts above 100 percent",
      "Attempt 1 won",
      "Nothing of that is in your project yet: tests fail.",
      "Refuse discounts above 100 percent",
      "return Math.round((cents * (100 - percent)) / 100);",
      "Now: tests pass.",
      "coordinate_sibling: reviewer [AUTONOMOUS]",
    ])
      expect(`${stdout}${stderr}`).toContain(promise);
  });
});
