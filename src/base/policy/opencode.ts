/** Converts the permission block of an opencode.json, whose last matching rule wins, to rules whose most specific one wins. */
import { VivError } from "../schema/errors.ts";
import { PolicyConfig, PolicyRule, type Verdict } from "../schema/policy.ts";
import { compareSpecificity, compile, mayMatch, type Specificity, UNKNOWN } from "./pattern.ts";

interface ImportedPolicy {
  policy: PolicyConfig;
  warnings: string[];
}

export function importOpenCode(file: unknown): ImportedPolicy {
  const permission = isRecord(file) ? file["permission"] : undefined;
  if (permission === undefined) throw new VivError("invalid_input", "The file has no permission block.");
  const warnings: string[] = [];
  const rules = typeof permission === "string" ? { "*": permission } : permission;
  if (!isRecord(rules)) throw new VivError("invalid_input", "The permission block is neither a verdict nor an object.");
  const policy: Record<string, PolicyRule> = {};
  for (const [tool, given] of Object.entries(rules)) {
    const rule = PolicyRule.safeParse(given);
    if (!rule.success) {
      warnings.push(`${tool} is left out: it has neither a verdict nor patterns with verdicts.`);
      continue;
    }
    policy[tool] = rule.data;
    if (typeof rule.data !== "string") warnings.push(...orderWarnings(tool, rule.data));
  }
  const parsed = PolicyConfig.safeParse(policy);
  if (!parsed.success)
    throw new VivError("invalid_input", `The permission block can't be converted: ${parsed.error.issues[0]?.message ?? ""}.`);
  return { policy: parsed.data, warnings };
}

/** Pairs in which the later rule wins there and the earlier one here, over texts that both match. */
function orderWarnings(tool: string, rule: Readonly<Record<string, Verdict>>): string[] {
  const entries = Object.entries(rule).map(([source, verdict]) => ({ source, verdict, pattern: compile(source) }));
  const warnings: string[] = [];
  for (const [index, earlier] of entries.entries()) {
    for (const later of entries.slice(index + 1)) {
      if (earlier.verdict === later.verdict) continue;
      if (!winsHere(earlier, later) || !mayMatch(earlier.pattern, later.source.replaceAll("*", UNKNOWN))) continue;
      warnings.push(
        `${tool}: what matches both \`${earlier.source}\` (${earlier.verdict}) and \`${later.source}\` (${later.verdict}) is ${later.verdict} in OpenCode, where the last rule wins, and ${earlier.verdict} here, where the most specific one does.`,
      );
    }
    if (/[?[\]{}]/.test(earlier.source))
      warnings.push(`${tool}: \`${earlier.source}\` has wildcards other than \`*\`, which are letters here.`);
  }
  return warnings;
}

const STRICT: Readonly<Record<Verdict, number>> = { allow: 0, ask: 1, deny: 2 };

function winsHere(a: { pattern: ReturnType<typeof compile>; verdict: Verdict }, b: typeof a): boolean {
  const at = ({ pattern }: typeof a): Specificity => [pattern.before, pattern.literal, 1];
  const order = compareSpecificity(at(a), at(b));
  return order > 0 || (order === 0 && STRICT[a.verdict] > STRICT[b.verdict]);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
