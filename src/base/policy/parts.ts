/** Takes a command apart into everything that is judged: commands, paths, deletions, hosts, packages. */
import { type Effect, effectsOf } from "./effects.ts";
import { UNKNOWN } from "./pattern.ts";
import { CODES, npmOptions } from "./programs/code.ts";
import type { Finding, Inspect, Opaque } from "./programs/finding.ts";
import { SHELLS } from "./programs/shells.ts";
import { isRiskyVariable, namedVariables } from "./programs/variables.ts";
import { WRAPPING } from "./programs/wrappers.ts";
import { parseInto } from "./shell/shell.ts";
import { isUnknown, plainWord, type Assignment, type Redirect, type Script, type SimpleCommand, type Word } from "./shell/script.ts";

export interface CommandPart {
  readonly kind: "command";
  readonly shown: string;
  /** The command as rules see it: words with one blank between, quoted where they hold blanks. */
  readonly text: string;
  /** Other ways to see it, by which a rule may forbid but not allow. */
  readonly otherTexts: readonly string[];
  /** Counts only if a rule names it. */
  readonly weak: boolean;
  readonly opaque: Opaque | undefined;
  /** What it does to files, hosts and packages. */
  readonly effects: readonly Effect[];
}
/** A part of the text that the parser does not understand. */
export interface ProblemPart {
  readonly kind: "problem";
  readonly shown: string;
  readonly why: string;
  /** It could not be read, so not even a rule that allows everything allows it. */
  readonly unreadable: boolean;
}
export type Part = CommandPart | ProblemPart | Effect;

const MAX_DEPTH = 16;
const MAX_PARTS = 4_000;
const MAX_WORDS = 40_000;
const SYSTEM_PROGRAM = /^\/(usr\/(local\/)?)?s?bin\/(?=[^/]+$)/;
/** Builtins that do nothing outside of the shell; assignments among their words are looked at. */
const DECLARING = new Set(["export", "declare", "typeset", "local", "readonly"]);
const HARMLESS = new Set([
  ":",
  "cd",
  "pushd",
  "popd",
  "exit",
  "return",
  "break",
  "continue",
  "shift",
  "unset",
  "wait",
  "set",
  ...DECLARING,
]);

const INSPECTORS: Readonly<Record<string, Inspect>> = { ...WRAPPING, ...SHELLS, ...CODES };

function inspect(name: string, words: readonly Word[]): Finding {
  const found = (Object.hasOwn(INSPECTORS, name) ? INSPECTORS[name]?.(words) : undefined) ?? {};
  return /^p?npm$/.test(name) && found.opaque === undefined ? { ...found, ...npmOptions(words) } : found;
}

/** Everything a shell line does. */
export function partsOf(line: string): Part[] {
  const collector = new Collector();
  collector.script(line, 0, false);
  return collector.parts;
}

/** Everything a program with these words does, without a shell. */
export function partsOfWords(words: readonly string[]): Part[] {
  const collector = new Collector();
  collector.run(words.map(literalWord), 0, false);
  return collector.parts;
}

function literalWord(text: string): Word {
  return { ...plainWord(text), quoted: true };
}

class Collector {
  readonly parts: Part[] = [];
  /** Simple commands of all texts together count against one limit. */
  readonly #script: Script = { commands: [], problems: [] };
  /** Words of all commands, also those inside others. */
  #words = 0;
  /** Folders that a relative path may be meant from. */
  readonly #folders: Word[] = [];

  script(text: string, depth: number, weak: boolean): void {
    if (depth > MAX_DEPTH) return this.#problem(text, "it is nested too deeply");
    const { commands, problems } = this.#script;
    const from = commands.length;
    problems.length = 0;
    parseInto(text, this.#script, 0);
    for (const problem of problems.splice(0)) this.#problem(text, problem);
    const end = commands.length;
    for (let index = from; index < end; index += 1) {
      const command = commands[index];
      if (command !== undefined) this.#simple(command, depth, weak);
    }
  }

  #problem(text: string, why: string, unreadable = true): void {
    this.parts.push({ kind: "problem", shown: shorten(text), why, unreadable });
  }

  #add(part: Part): void {
    if (this.parts.length < MAX_PARTS) this.parts.push(part);
    else if (this.parts.length === MAX_PARTS) this.#problem("", "it has too many parts");
  }

  #simple(command: SimpleCommand, depth: number, weak: boolean): void {
    for (const assignment of command.assignments) this.#assignment(assignment);
    if (command.words.length > 0) this.run(command.words, depth, weak, command);
    for (const redirect of command.redirects) this.#redirect(redirect);
  }

  #assignment({ name, value }: Assignment): void {
    if (!isRiskyVariable(name, value)) return;
    const shown = shorten(`${name}=${value.text}`);
    const opaque: Opaque = { why: `${name} changes what programs run`, kind: "hidden" };
    this.#add({ kind: "command", shown, text: `${name}=${value.match}`, otherTexts: [], weak: false, opaque, effects: [] });
  }

  #redirect({ operator, target }: Redirect): void {
    if (operator.startsWith("<<") || ((operator === ">&" || operator === "<&") && /^(\d+-?|-)$/.test(target.text))) return;
    const socket = /^\/dev\/(?:tcp|udp)\/([^/]+)\//.exec(target.text);
    if (socket !== null) return this.#add({ kind: "host", shown: target.text, host: isUnknown(target) ? UNKNOWN : (socket[1] ?? "") });
    const access = operator === "<" || operator === "<&" ? "read" : "write";
    this.#add({ kind: "path", shown: `${operator} ${target.text}`, path: target, access, from: [...this.#folders] });
  }

  /** A program with its words, and what it runs in turn. */
  run(given: readonly Word[], depth: number, weak: boolean, command?: SimpleCommand): void {
    if (this.parts.length > MAX_PARTS) return;
    this.#words += given.length;
    if (this.#words > MAX_WORDS) return this.#add({ kind: "problem", shown: "", why: "it has too many words", unreadable: true });
    if (depth > MAX_DEPTH) return this.#problem(given[0]?.text ?? "", "it is nested too deeply");
    const words = command === undefined ? this.#passedOn(given) : given;
    const program = words[0];
    if (program === undefined) return;
    const name = program.text.slice(program.text.lastIndexOf("/") + 1);
    if (this.#builtin(name, program, words)) return;
    for (const variable of namedVariables(name, words)) this.#assignment(variable);
    const finding = isFixed(program) ? inspect(name, words) : UNKNOWN_PROGRAM;
    const effects = effectsOf(name, words, this.#folders);
    const opaque = this.#withInput(finding, command);
    const isWeak = weak || (finding.transparent === true && opaque === undefined);
    this.#add({ ...commandPart(words, isWeak, opaque), effects });
    this.#inner(finding, depth, weak || finding.lenient === true);
  }

  /** Takes off the assignments that `env` and `sudo` pass on. */
  #passedOn(words: readonly Word[]): readonly Word[] {
    const start = words.findIndex(({ text }) => !/^[A-Za-z_]\w*=/.test(text));
    for (const word of words.slice(0, start < 0 ? undefined : start)) {
      const at = word.text.indexOf("=");
      this.#assignment({
        name: word.text.slice(0, at),
        value: { ...word, text: word.text.slice(at + 1), match: word.match.slice(at + 1) },
      });
    }
    return start < 0 ? [] : words.slice(start);
  }

  /** A shell that reads its commands from a heredoc or a here-string: these are judged. */
  #withInput(finding: Finding, command: SimpleCommand | undefined): Opaque | undefined {
    if (finding.readsInput !== true) return finding.opaque;
    const inputs = command?.redirects.filter(({ operator }) => operator.startsWith("<")) ?? [];
    const texts = inputs.map(({ operator, target, body }) => body ?? (operator === "<<<" ? target : undefined));
    for (const text of texts) if (text !== undefined) this.script(text.text, MAX_DEPTH - 1, false);
    // Of several inputs the last one counts. The content of a file is not known.
    const [only] = texts;
    return texts.length === 1 && only !== undefined && !isUnknown(only) ? undefined : finding.opaque;
  }

  #inner({ scripts = [], runs = [] }: Finding, depth: number, weak: boolean): void {
    for (const text of scripts) {
      if (isUnknown(text)) this.#problem(text.text, "the text it runs is known only then", false);
      this.script(text.text, depth + 1, weak);
    }
    for (const words of runs) this.run(words, depth + 1, weak);
  }

  #builtin(name: string, program: Word, words: readonly Word[]): boolean {
    if (!isFixed(program) || name !== program.text || !HARMLESS.has(name)) return false;
    const given = words.slice(1);
    // Another name for a variable, or assignments anywhere in a command: which one changes is not seen then.
    const hides = name === "set" ? /^[-+][a-zA-Z]*k|^keyword$/ : /^-[a-zA-Z]*n/;
    const blind = name !== "export" && given.some(({ text }) => hides.test(text)) && (name === "set" || DECLARING.has(name));
    if (blind) this.#assignment({ name: "PATH", value: plainWord("...") });
    for (const word of DECLARING.has(name) ? given : []) {
      const at = word.text.indexOf("=");
      const variable = word.text.slice(0, Math.max(0, at)).replace(/\[.*|\+$/, "");
      if (at > 0)
        this.#assignment({
          name: variable,
          value: { ...word, text: word.text.slice(at + 1), match: word.match.slice(word.match.indexOf("=") + 1) },
        });
      else if (isUnknown(word)) this.#assignment({ name: "PATH", value: word });
    }
    if (name === "cd" || name === "pushd") this.#enter(words);
    return true;
  }

  #enter(words: readonly Word[]): void {
    const target = words.slice(1).find(({ text }) => !/^-[LPe@]*$/.test(text) || text === "-") ?? plainWord("~");
    const home = target.text === "~" && words.length === 1 ? { ...target, tilde: true } : target;
    this.#add({ kind: "path", shown: `cd ${home.text}`, path: home, access: "enter", from: [...this.#folders] });
    if (this.#folders.length < 8) this.#folders.push(home);
    else this.#problem(home.text, "it changes the folder too often");
  }
}

const UNKNOWN_PROGRAM: Finding = { opaque: { why: "which program it is, is known only when it runs", kind: "hidden" } };

function isFixed(word: Word): boolean {
  return !isUnknown(word) && (!word.glob || word.text === "[") && !word.tilde;
}

function commandPart(words: readonly Word[], weak: boolean, opaque: Opaque | undefined): Omit<CommandPart, "effects"> {
  const [program = plainWord(""), ...rest] = words;
  const known = SYSTEM_PROGRAM.test(program.match) ? program.match.replace(SYSTEM_PROGRAM, "") : program.match;
  const tail = rest.map(({ match }) => quoted(match));
  const text = [quoted(known), ...tail].join(" ");
  return {
    kind: "command",
    shown: shorten(words.map(({ text: word }) => quoted(word)).join(" ")),
    text,
    otherTexts: otherTexts(text, program, rest),
    weak,
    opaque,
  };
}

const MANY_BLANKS = /[\s\u00a0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff]+/g;

function otherTexts(text: string, program: Word, rest: readonly Word[]): string[] {
  const base = program.match.slice(program.match.lastIndexOf("/") + 1);
  const words = rest.map(({ match }) => match);
  const flat = [base, ...words].join(" ").replace(MANY_BLANKS, " ").trim();
  const others = new Set([flat, flat.toLowerCase(), [base.toLowerCase(), ...words].join(" ")]);
  for (const each of sameMeaning(base.toLowerCase(), rest)) others.add(each);
  others.delete(text);
  return [...others];
}

/** Other spellings of the same command that rules are usually written for. */
function* sameMeaning(name: string, rest: readonly Word[]): Generator<string> {
  if (name === "rm") yield* removal(rest);
  if (MANAGERS.has(name)) yield* withoutOptions(name, rest);
  if (name !== "git") return;
  let index = 0;
  while (rest[index]?.text.startsWith("-") === true)
    index += /^(-C|-c|--git-dir|--work-tree|--namespace)$/.test(rest[index]?.text ?? "") ? 2 : 1;
  if (index > 0) yield ["git", ...rest.slice(index).map(({ match }) => quoted(match))].join(" ");
}

const MANAGERS = new Set(["npm", "pnpm", "yarn", "bun", "cargo", "uv", "poetry", "gem", "mvn", "dotnet"]);

/** `npm --registry x publish` is `npm publish`, so rules need not know which options have a value. */
function* withoutOptions(name: string, rest: readonly Word[]): Generator<string> {
  for (let index = 0; index < Math.min(rest.length, 16); index += 1) {
    const before = rest[index - 1]?.text ?? "";
    const isOption = /^[-+]/.test(rest[index]?.text ?? "");
    if (!isOption && index > 0) yield [name, ...rest.slice(index).map(({ match }) => quoted(match))].join(" ");
    if (!isOption && (index === 0 || !/^-[^=]*$/.test(before))) return;
  }
}

/** `rm -r -f x`, `rm x -fr` and `rm --recursive --force x` are all `rm -rf x`. */
function* removal(rest: readonly Word[]): Generator<string> {
  let recursive = false;
  let force = false;
  const operands: string[] = [];
  let optionsOver = false;
  for (const { text, match } of rest) {
    if (optionsOver || !text.startsWith("-") || text === "-") operands.push(quoted(match));
    else if (text === "--") optionsOver = true;
    else if (text.startsWith("--")) {
      recursive ||= text.length > 3 && "--recursive".startsWith(text);
      force ||= text.length > 2 && "--force".startsWith(text);
    } else {
      recursive ||= /r/i.test(text);
      force ||= text.includes("f");
    }
  }
  if (recursive && force) yield ["rm -rf", ...operands].join(" ");
  else if (recursive) yield ["rm -r", ...operands].join(" ");
}

function quoted(text: string): string {
  return text === "" || /[\s'"\u00a0\u2000-\u200b\u3000]/.test(text) ? `'${text}'` : text;
}

const SHOWN_CHARACTERS = 2_000;
function shorten(text: string): string {
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}
