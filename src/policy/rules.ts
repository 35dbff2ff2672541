/** Rules ready to be matched, and the choice of the one that decides. */
import type { PolicyRule, Verdict } from "../schema/policy.ts";
import { compareSpecificity, compile, mayMatch, type Pattern, type Specificity, specificityOf, UNKNOWN } from "./pattern.ts";

export interface Rule {
  readonly pattern: Pattern;
  readonly verdict: Verdict;
  /** "bash: npm *", or "edit" for a tool's one verdict. */
  readonly name: string;
  /** Whose rule it is, at the start of a sentence. */
  readonly origin: string;
  /** A tool's one verdict, which is meant for everything. */
  readonly whole: boolean;
}

/** Rules of one tool, or of hosts, paths and the like. */
export type Section = readonly Rule[];

const STRICTNESS: Readonly<Record<Verdict, number>> = { allow: 0, ask: 1, deny: 2 };

export function isStricter(a: Verdict, b: Verdict): boolean {
  return STRICTNESS[a] > STRICTNESS[b];
}

export function strictest(verdicts: readonly Verdict[]): Verdict {
  return verdicts.reduce<Verdict>((worst, each) => (isStricter(each, worst) ? each : worst), "allow");
}

export function compileSection(tool: string, rule: PolicyRule, origin: string): Section {
  if (typeof rule === "string") return [{ pattern: compile("*"), verdict: rule, name: tool, origin, whole: true }];
  return Object.entries(rule).map(([source, verdict]) => ({
    pattern: compile(source),
    verdict,
    name: `${tool}: ${source}`,
    origin,
    whole: false,
  }));
}

/** Says something about what it matches, as `*` alone does not. */
export function isNaming({ pattern }: Rule): boolean {
  return pattern.before > 0;
}

/** The most specific rule that matches one of the texts; the strictest among equals. */
export function pick(section: Section, texts: readonly string[]): Rule | undefined {
  let best: Rule | undefined;
  let bestAt: Specificity = [-1, -1, -1];
  for (const rule of section) {
    for (const text of texts) {
      const at = specificityOf(rule.pattern, text);
      if (at === undefined) continue;
      const order = compareSpecificity(at, bestAt);
      if (best === undefined || order > 0 || (order === 0 && isStricter(rule.verdict, best.verdict))) {
        best = rule;
        bestAt = at;
      }
    }
  }
  return best;
}

/** A stricter rule, no less specific than the one that decided, that may match once unknown parts are known. */
export function possiblyStricter(section: Section, text: string, decided: Rule): Rule | undefined {
  if (!text.includes(UNKNOWN)) return undefined;
  return section.find(
    (rule) =>
      isStricter(rule.verdict, decided.verdict) &&
      (rule.pattern.before > decided.pattern.before ||
        (rule.pattern.before === decided.pattern.before && rule.pattern.literal >= decided.pattern.literal)) &&
      mayMatch(rule.pattern, text),
  );
}
