/** Commands with the verdict each must get; half of them are tricks. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { decide, effectivePolicy, type EffectivePolicy } from "../../src/base/policy/policy.ts";
import type { AutonomyLevel, Role, Verdict, YoloLevel } from "../../src/base/schema/policy.ts";

interface Row {
  /** "level 1", "yolo 3", or a role at level 1. */
  readonly at: string;
  readonly command: string;
  readonly verdict: Verdict;
  readonly trick?: boolean;
}

const rows = readFileSync(new URL("../corpus/policy-commands.jsonl", import.meta.url), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Row);

function policyAt(at: string): EffectivePolicy {
  const [kind = "", number] = at.split(" ");
  const project = "/home/me/app";
  if (kind === "level") return effectivePolicy({ project, level: Number(number) as AutonomyLevel });
  if (kind === "yolo") return effectivePolicy({ project, yolo: Number(number) as YoloLevel });
  return effectivePolicy({ project, role: kind as Role });
}

describe("the corpus of commands", () => {
  test("POL-2, AP-15, AP-16: every row gets its verdict", () => {
    const wrong = rows.flatMap(({ at, command, verdict }) => {
      const found = decide(policyAt(at), { kind: "command", command });
      return found.verdict === verdict ? [] : [{ at, command, verdict, found: found.verdict, parts: found.parts }];
    });
    expect(wrong).toEqual([]);
  });

  test("has 300 rows and more, half of them tricks, and each verdict often", () => {
    expect(rows.length).toBeGreaterThan(300);
    expect(rows.filter(({ trick }) => trick === true).length).toBeGreaterThanOrEqual(rows.length / 2);
    for (const verdict of ["allow", "ask", "deny"]) expect(rows.filter((row) => row.verdict === verdict).length).toBeGreaterThan(50);
  });

  test("AP-15: a policy that reads only the first words would be fooled by the tricks", () => {
    const naive = (command: string): boolean => /^(npm|pnpm|git (status|diff|add|commit))\b/.test(command);
    const fooled = rows.filter(({ at, command, verdict }) => at === "level 1" && verdict !== "allow" && naive(command));
    expect(fooled.length).toBeGreaterThan(50);
  });
});
