/** Runs the examples that stand beside rules: does a pattern match what its writer thinks it matches? */
import type { OutputOf } from "../schema/contracts.ts";
import type { PolicyConfig } from "../schema/policy.ts";
import { partsOf } from "./parts.ts";
import { compile, specificityOf } from "./pattern.ts";
import { rulesOf } from "./policy.ts";

type Report = OutputOf<"testPolicy">;

export function testExamples(policy: PolicyConfig): Report {
  const rules = rulesOf(policy);
  const failures: Report["failures"] = [];
  let passed = 0;
  for (const [tool, patterns] of Object.entries(policy.examples ?? {})) {
    for (const [source, { match, not_match }] of Object.entries(patterns)) {
      const rule = `${tool}: ${source}`;
      const own = rules[tool];
      const exists = typeof own === "string" ? source === "*" : own !== undefined && Object.hasOwn(own, source);
      for (const [expected, examples] of [
        ["match", match],
        ["not_match", not_match],
      ] as const) {
        for (const example of examples) {
          const found = exists && doesMatch(tool, source, example);
          const reason = exists ? (found ? "The rule matches it." : "The rule does not match it.") : "There is no such rule.";
          if (exists && found === (expected === "match")) passed += 1;
          else failures.push({ rule, example, expected, reason });
        }
      }
    }
  }
  return { passed, failures };
}

/** A rule for commands matches if it matches any part. */
function doesMatch(tool: string, source: string, example: string): boolean {
  const pattern = compile(source);
  if (tool !== "bash") return specificityOf(pattern, example) !== undefined;
  return partsOf(example).some(
    (part) => part.kind === "command" && [part.text, ...part.otherTexts].some((text) => specificityOf(pattern, text) !== undefined),
  );
}
