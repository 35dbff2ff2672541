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

/** Rules whose pattern starts with a whole word, by that word; most differ in it already. */
interface Index {
  readonly byWord: ReadonlyMap<string, Section>;
  readonly others: Section;
}
const INDICES = new WeakMap<Section, Index>();
const NONE: Section = [];

function indexOf(section: Section): Index {
  const known = INDICES.get(section);
  if (known !== undefined) return known;
  const byWord = new Map<string, Rule[]>();
  const others: Rule[] = [];
  for (const rule of section) {
    const prefix = rule.pattern.pieces[0] ?? "";
    const end = prefix.indexOf(" ");
    if (end <= 0) others.push(rule);
    else byWord.set(prefix.slice(0, end), [...(byWord.get(prefix.slice(0, end)) ?? []), rule]);
  }
  const made = { byWord, others };
  INDICES.set(section, made);
  return made;
}

function firstWord(text: string): string {
  const end = text.indexOf(" ");
  return end < 0 ? text : text.slice(0, end);
}

/** The most specific rule that matches one of the texts; the strictest among equals. */
export function pick(section: Section, texts: readonly string[]): Rule | undefined {
  const { byWord, others } = indexOf(section);
  let best: Rule | undefined;
  let bestAt: Specificity = [-1, -1, -1];
  const consider = (rules: Section, text: string): void => {
    for (const rule of rules) {
      const at = specificityOf(rule.pattern, text);
      if (at === undefined) continue;
      const order = compareSpecificity(at, bestAt);
      if (best !== undefined && (order < 0 || (order === 0 && !isStricter(rule.verdict, best.verdict)))) continue;
      best = rule;
      bestAt = at;
    }
  };
  for (const text of texts) {
    consider(byWord.get(firstWord(text)) ?? NONE, text);
    consider(others, text);
  }
  return best;
}

/** A stricter rule, no less specific than the one that decided, that may match once unknown parts are known. */
export function possiblyStricter(section: Section, text: string, decided: Rule): Rule | undefined {
  if (!text.includes(UNKNOWN)) return undefined;
  const { byWord, others } = indexOf(section);
  const word = firstWord(text);
  const { before, literal } = decided.pattern;
  const applies = ({ verdict, pattern }: Rule): boolean =>
    isStricter(verdict, decided.verdict) &&
    (pattern.before > before || (pattern.before === before && pattern.literal >= literal)) &&
    mayMatch(pattern, text);
  return word.includes(UNKNOWN) ? section.find(applies) : ((byWord.get(word) ?? NONE).find(applies) ?? others.find(applies));
}
