/** A set of rules that judges parts of an action; no rule, no judgement. */
import type { Verdict } from "../schema/policy.ts";
import { classifyHost } from "./addresses.ts";
import type { HostEffect, PathEffect } from "./effects.ts";
import type { Rules } from "./levels.ts";
import type { PackageEffect } from "./packages.ts";
import type { CommandPart, Part, ProblemPart } from "./parts.ts";
import { compile, isExact, UNKNOWN } from "./pattern.ts";
import { placesOf, type Place } from "./places.ts";
import { compileSection, isNaming, isStricter, pick, possiblyStricter, type Rule, type Section } from "./rules.ts";

const EVERYTHING = compile("*");

export interface Judgement {
  readonly verdict: Verdict;
  readonly rule: string;
  readonly reason: string;
}

export class Layer {
  readonly #sections: ReadonlyMap<string, Section>;
  /** Verdicts for tools without a section, by patterns of their names. */
  readonly #tools: Section;

  constructor(rules: readonly { readonly rules: Rules; readonly origin: string }[]) {
    const merged = new Map<string, Map<string, Rule>>();
    for (const { rules: given, origin } of rules) {
      for (const [tool, rule] of Object.entries(given)) {
        const section = merged.get(tool) ?? new Map<string, Rule>();
        // One verdict for a tool is meant for everything: it replaces what is below.
        if (typeof rule === "string") section.clear();
        for (const each of compileSection(tool, rule, origin)) section.set(each.pattern.source, each);
        merged.set(tool, section);
      }
    }
    this.#sections = new Map([...merged].map(([tool, section]) => [tool, hostClasses(tool, [...section.values()])]));
    this.#tools = [...this.#sections].flatMap(([tool, section]) =>
      tool.includes("*") ? section.filter(({ whole }) => whole).map((rule) => ({ ...rule, pattern: compile(tool) })) : [],
    );
  }

  section(tool: string): Section {
    const own = this.#sections.get(tool);
    if (own !== undefined && !tool.includes("*")) return own;
    const other = pick(this.#tools, [tool]);
    // Its pattern was for the tool's name; it holds for whatever the tool works on.
    return other === undefined ? [] : [{ ...other, pattern: EVERYTHING }];
  }

  has(tool: string): boolean {
    return this.#sections.has(tool);
  }

  judge(part: Part, project: string | undefined): Judgement | undefined {
    switch (part.kind) {
      case "command":
        return this.#command(part);
      case "problem":
        return this.#problem(part);
      case "path":
        return this.path(part, project);
      case "host":
        return this.host(part);
      case "package":
        return this.#package(part);
    }
  }

  #problem({ why, unreadable }: ProblemPart): Judgement | undefined {
    const section = this.section("bash");
    if (!unreadable && section.length > 0 && section.every(({ whole, verdict }) => whole && verdict === "allow")) return undefined;
    return section.length === 0 ? undefined : { verdict: "ask", rule: "not understood", reason: `A person is asked, since ${why}.` };
  }

  #command(part: CommandPart): Judgement | undefined {
    const section = this.section("bash");
    const own = pick(section, [part.text]);
    let rule = part.weak && own !== undefined && !isNaming(own) && !own.whole ? undefined : own;
    for (const text of part.otherTexts) {
      const other = pick(section, [text]);
      if (other !== undefined && isNaming(other) && isStricter(other.verdict, rule?.verdict ?? "allow")) rule = other;
    }
    if (rule === undefined) return undefined;
    if (rule.verdict !== "allow") return judgement(rule);
    const possible = [part.text, ...part.otherTexts]
      .map((text) => possiblyStricter(section, text, rule))
      .find((each) => each !== undefined);
    if (possible !== undefined && isNaming(possible)) return maybe(possible);
    return opaque(part, rule) ?? judgement(rule);
  }

  path(part: PathEffect, project: string | undefined): Judgement | undefined {
    const found = placesOf(part.path, part.from, project).map((place) => this.#place(place, part.access));
    return worst(found);
  }

  #place(place: Place, access: PathEffect["access"]): Judgement | undefined {
    if (place.kind === "nothing") return undefined;
    const names = { read: ["read", "path"], write: ["write", "edit", "path"], delete: ["delete", "edit", "path"], enter: ["path"] }[access];
    const texts = place.kind === "unknown" ? [UNKNOWN] : place.texts;
    const judged = names.map((name) => this.#texts(this.#own(name), texts, place.loose));
    if (access !== "read" && place.kind !== "inside") judged.push(this.#outside(place, texts));
    return worst(judged);
  }

  #own(name: string): Section {
    return this.#sections.get(name) ?? [];
  }

  #outside(place: Place, texts: readonly string[]): Judgement | undefined {
    const found = this.#texts(this.#own("external_directory"), texts);
    if (found === undefined || found.verdict === "allow" || place.kind !== "unknown") return found;
    return { verdict: "ask", rule: found.rule, reason: "A person is asked, since the path is known only when it runs." };
  }

  #texts(section: Section, texts: readonly string[], loose: readonly string[] = []): Judgement | undefined {
    const rule = pick(section, texts);
    if (rule === undefined) return undefined;
    const possible = [texts[0] ?? "", ...loose].map((text) => possiblyStricter(alike(section, text), text, rule)).find(Boolean);
    return possible === undefined ? judgement(rule) : maybe(possible);
  }

  host({ host: given }: Pick<HostEffect, "host">): Judgement | undefined {
    const section = this.#own("host");
    const host = given.toLowerCase().replace(/\.$/, "");
    if (host.includes(UNKNOWN)) {
      const rule = pick(section, [host]);
      return rule === undefined ? undefined : judgement(rule);
    }
    const kind = classifyHost(host);
    const rule = pick(section, kind === "public" ? [host] : [host, `@${kind}`]);
    return rule === undefined ? undefined : judgement(rule);
  }

  #package({ name }: PackageEffect): Judgement | undefined {
    return this.#texts(this.#own("package"), [name]);
  }

  /** A tool with what it works on. */
  tool(tool: string, argument: string): Judgement | undefined {
    const rule = pick(this.section(tool), [argument]);
    return rule === undefined ? undefined : judgement(rule);
  }
}

/** A relative path is not spelled as an absolute one, whatever is unknown in it; what may be around any name says nothing about it. */
function alike(section: Section, text: string): Section {
  if (!text.includes(UNKNOWN) || text === UNKNOWN) return section;
  const isAbsolute = /^[/~]/.test(text);
  return section.filter(({ pattern: { source } }) => (isAbsolute || !/^[/~]/.test(source)) && !/^\*.*\*$/.test(source));
}

/** `@private` and its like stand for many hosts: any rule that names a host is more specific. */
function hostClasses(tool: string, section: Section): Section {
  if (tool !== "host") return section;
  return section.map((rule) =>
    rule.pattern.source.startsWith("@") ? { ...rule, pattern: { ...rule.pattern, before: 0, literal: 1 } } : rule,
  );
}

const VERBS: Readonly<Record<Verdict, string>> = { allow: "allows", ask: "asks a person about", deny: "denies" };

function judgement({ verdict, name, origin, whole, pattern }: Rule): Judgement {
  const what = whole ? `everything of ${name === "*" ? "a tool without rules" : name}` : `\`${pattern.source}\``;
  return { verdict, rule: name, reason: `${origin} ${VERBS[verdict]} ${what}.` };
}

function maybe({ name, pattern, verdict }: Rule): Judgement {
  const what = verdict === "deny" ? "denied" : "asked about";
  return { verdict: "ask", rule: name, reason: `A person is asked, since it may turn out to be \`${pattern.source}\`, which is ${what}.` };
}

/** Code needs a rule that names the program, what hides in an option one that names the very command. */
function opaque({ opaque: found }: CommandPart, rule: Rule): Judgement | undefined {
  if (found === undefined || rule.whole || isExact(rule.pattern) || (found.kind === "code" && isNaming(rule))) return undefined;
  return { verdict: "ask", rule: rule.name, reason: `A person is asked, since ${found.why}.` };
}

export function worst(judgements: readonly (Judgement | undefined)[]): Judgement | undefined {
  return judgements.reduce((found, each) => {
    if (each === undefined || found === undefined) return found ?? each;
    return isStricter(each.verdict, found.verdict) ? each : found;
  }, undefined);
}
