/** What of a project's rules a person has to trust first. */
import type { PolicyConfig, PolicyRule } from "../schema/policy.ts";
import { LIMITS } from "../schema/limits.ts";
import { LEVELS } from "./levels.ts";
import { compile, compareSpecificity, mayMatch, specificityOf, UNKNOWN, type Specificity } from "./pattern.ts";
import { rulesOf } from "./policy.ts";
import { compileSection, pick, type Section } from "./rules.ts";

/** The keys and rules that allow more than level 1 does: each is shown to the person who is asked for trust. */
export function widenedBy(policy: PolicyConfig): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  if (policy.level !== undefined && policy.level > 1) found["level"] = policy.level;
  if (policy.yolo !== undefined) found["yolo"] = policy.yolo;
  if ((policy.ceiling?.cpus ?? 0) > LIMITS.grantedCpus || (policy.ceiling?.memory ?? 0) > LIMITS.grantedMemoryBytes)
    found["ceiling"] = policy.ceiling;
  if (Object.values(policy.roles ?? {}).some((role) => Object.values(role?.tools ?? {}).includes(true))) found["roles"] = policy.roles;
  if (policy.tightenOnly === true) return {};
  for (const [tool, rule] of Object.entries(rulesOf(policy))) {
    const wide = wideRules(tool, rule);
    if (wide !== undefined) found[tool] = wide;
  }
  return found;
}

/** The same rules, without anything that could allow more. */
export function untrustedPolicy(policy: PolicyConfig): PolicyConfig {
  const kept = Object.entries(policy).filter(([key, value]) => key !== "yolo" && (key !== "level" || value === 1));
  return { ...(Object.fromEntries(kept) as PolicyConfig), tightenOnly: true } as PolicyConfig;
}

function wideRules(tool: string, rule: PolicyRule): PolicyRule | undefined {
  const base = baseSection(tool);
  if (typeof rule === "string") return rule === "allow" && !base.every(({ verdict }) => verdict === "allow") ? rule : undefined;
  const wide = Object.entries(rule).filter(([source, verdict]) => verdict === "allow" && widens(base, source));
  return wide.length === 0 ? undefined : Object.fromEntries(wide);
}

function baseSection(tool: string): Section {
  const { rules, title } = LEVELS[1];
  return compileSection(tool, rules[tool] ?? rules["*"] ?? "ask", title);
}

/** Would the level ask or deny something that the pattern allows? */
function widens(base: Section, source: string): boolean {
  const text = source.replaceAll("*", UNKNOWN);
  const decided = pick(base, [text]);
  if (decided === undefined || decided.verdict !== "allow") return true;
  const own = specificityOf(compile(source), source) ?? NOTHING;
  const allowed = specificityOf(decided.pattern, text) ?? NOTHING;
  // A rule between the two would decide without this one.
  return base.some(({ pattern, verdict }) => {
    const at: Specificity = [pattern.before, pattern.literal, 1];
    return verdict !== "allow" && compareSpecificity(at, allowed) >= 0 && compareSpecificity(at, own) <= 0 && mayMatch(pattern, text);
  });
}

const NOTHING: Specificity = [0, 0, 0];
