/** A check: a command whose exit code says whether something is right, and what its output tells about tests. */
import { z } from "zod";

export const TestCounts = z
  .object({
    format: z.enum(["junit", "tap", "node", "vitest", "pytest"]).describe("Whose output was understood."),
    passed: z.number().int(),
    failed: z.number().int(),
    skipped: z.number().int(),
  })
  .describe("Tests counted in the output of a check.")
  .meta({ id: "TestCounts" });
export type TestCounts = z.infer<typeof TestCounts>;

export const CheckResult = z
  .object({
    command: z.string().describe("The shell line."),
    passed: z.boolean().describe("Whether it ended with 0, every time it ran."),
    exitCode: z.number().int().describe("Of the first run that failed, else 0."),
    runs: z.number().int().describe("How often it ran."),
    flaky: z.boolean().describe("Whether it passed and failed on the same state."),
    wallMs: z.number().describe("Time of all runs."),
    tests: TestCounts.nullable().describe("Null where the output is of no known kind."),
    output: z.string().describe("The last part of its output."),
    cause: z.string().nullable().describe("What else ended it: timeout, memory, ..."),
  })
  .describe("What a check said.")
  .meta({ id: "CheckResult" });
export type CheckResult = z.infer<typeof CheckResult>;

/** A check, a setup step or what runs after a stage: a line for the shell. */
export const ShellLine = z
  .string()
  .min(1)
  .max(65_536)
  .regex(/^[^\0]*$/, "a command has no NUL byte");
