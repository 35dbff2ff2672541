/** From words to an invocation. A thin layer over node:util's parseArgs that knows the declarations. */
import { parseArgs, type ParseArgsConfig } from "node:util";
import {
  COMMON_OPTIONS,
  usageOf,
  type CommandDeclaration,
  type OptionDeclaration,
  type OptionDeclarations,
  type PositionalDeclaration,
} from "./command.ts";
import { optionHabit } from "./foreign-commands.ts";
import { nearest } from "./nearest.ts";
import { parseValue, usageError } from "./values.ts";

export interface Parsed {
  readonly options: Readonly<Record<string, unknown>>;
  readonly positionals: readonly string[];
  readonly rest: readonly string[];
  readonly json: boolean;
  readonly help: boolean;
}

export function parse(declaration: CommandDeclaration, words: readonly string[]): Parsed {
  const options: OptionDeclarations = { ...declaration.options, ...COMMON_OPTIONS };
  const { front: asTyped, line } = splitCommandLine(declaration, options, words);
  const front = withOptionalValues(options, asTyped);
  checkOptions(declaration, options, front);
  const parsed = parseArgs({ args: [...front], options: toConfig(options), allowPositionals: true, strict: true });
  const values: Readonly<Record<string, unknown>> = parsed.values;
  const help = values["help"] === true;
  const { positionals, rest } = help ? { positionals: [], rest: [] } : assign(declaration, parsed.positionals, line);
  return {
    options: convert(declaration.options, values),
    positionals,
    rest,
    json: values["json"] === true,
    help,
  };
}

function toConfig(options: OptionDeclarations): NonNullable<ParseArgsConfig["options"]> {
  return Object.fromEntries(
    Object.entries(options).map(([name, option]) => [
      name,
      {
        type: option.type === "flag" ? ("boolean" as const) : ("string" as const),
        multiple: option.type === "list",
        ...(option.short === undefined ? {} : { short: option.short }),
      },
    ]),
  );
}

function convert(options: OptionDeclarations, values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(options)) {
    const value = values[name];
    if (option.type === "flag") result[name] = value === true;
    else if (option.type === "list") result[name] = value ?? [];
    else result[name] = typeof value === "string" ? parseValue(`--${name}`, option, value) : undefined;
  }
  return result;
}

/**
 * A command line to run inside starts after `--`, or at the word after the other positionals, so that its own options
 * stay its own: `viv exec box ls -l`.
 */
function splitCommandLine(
  declaration: CommandDeclaration,
  options: OptionDeclarations,
  words: readonly string[],
): { front: readonly string[]; line: readonly string[] } {
  if (declaration.positionals.at(-1)?.rest !== "command-line") return { front: words, line: [] };
  const before = declaration.positionals.length - 1;
  let seen = 0;
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? "";
    if (word === "--") return { front: words.slice(0, index), line: words.slice(index + 1) };
    if (word.startsWith("-") && word !== "-") {
      if (takesNextWord(options, word)) index += 1;
      continue;
    }
    if (seen === before) return { front: words.slice(0, index), line: words.slice(index) };
    seen += 1;
  }
  return { front: words, line: [] };
}

/** `--browser ADDRESS` and a bare `--browser` as `--browser=ADDRESS` and `--browser=`. */
function withOptionalValues(options: OptionDeclarations, words: readonly string[]): string[] {
  const result: string[] = [];
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? "";
    if (word === "--") return [...result, ...words.slice(index)];
    const option = word.startsWith("--") && Object.hasOwn(options, word.slice(2)) ? options[word.slice(2)] : undefined;
    if (option === undefined || !("optional" in option)) {
      result.push(word);
      continue;
    }
    const next = words[index + 1] ?? "";
    const isValue = option.optional.test(next);
    result.push(`${word}=${isValue ? next : ""}`);
    if (isValue) index += 1;
  }
  return result;
}

function takesNextWord(options: OptionDeclarations, word: string): boolean {
  return optionWithValue(options, word) !== undefined;
}

/** The option that takes the word after this one as its value. */
export function optionWithValue(options: OptionDeclarations, word: string): [string, OptionDeclaration] | undefined {
  if (word.startsWith("--")) {
    const name = word.slice(2);
    const option = Object.hasOwn(options, name) ? options[name] : undefined;
    return option === undefined || !isValued(option) ? undefined : [name, option];
  }
  // In a bundle such as -te, the first letter with a value takes what is left of the word, or the next word.
  for (let index = 1; index < word.length; index += 1) {
    const found = byLetter(options, word[index] ?? "");
    if (isValued(found?.[1])) return index === word.length - 1 ? found : undefined;
  }
  return undefined;
}

function isValued(option: OptionDeclaration | undefined): boolean {
  return option !== undefined && option.type !== "flag" && !("optional" in option);
}

function byLetter(options: OptionDeclarations, letter: string): [string, OptionDeclaration] | undefined {
  return Object.entries(options).find(([, option]) => option.short === letter);
}

/** Says what is wrong with an option in our words; parseArgs then only sees what it accepts. */
function checkOptions(declaration: CommandDeclaration, options: OptionDeclarations, words: readonly string[]): void {
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? "";
    if (word === "--") return;
    if (!word.startsWith("-") || word === "-") continue;
    checkWord(declaration, options, word);
    if (!takesNextWord(options, word)) continue;
    const value = words[index + 1];
    if (value === undefined || (value.startsWith("-") && value !== "-")) {
      throw usageError(
        `${word} needs a value.`,
        `Write ${word.startsWith("--") ? `${word}=VALUE` : `${word} VALUE`}; see \`viv ${declaration.name} --help\`.`,
      );
    }
    index += 1;
  }
}

function checkWord(declaration: CommandDeclaration, options: OptionDeclarations, word: string): void {
  if (!word.startsWith("--")) {
    for (const letter of word.slice(1)) {
      const found = byLetter(options, letter);
      if (!found) throw unknownOption(declaration, options, `-${letter}`);
      if (isValued(found[1])) return;
    }
    return;
  }
  const [name = "", value] = word.slice(2).split("=", 2);
  const option = Object.hasOwn(options, name) ? options[name] : undefined;
  if (!option) throw unknownOption(declaration, options, `--${name}`);
  if (option.type === "flag" && value !== undefined) throw usageError(`--${name} takes no value.`);
}

function unknownOption(declaration: CommandDeclaration, options: OptionDeclarations, word: string): Error {
  const advice = optionHabit(declaration.name, word);
  if (advice !== undefined) return usageError(`viv ${declaration.name} has no option ${JSON.stringify(word)}.`, advice);
  const near = nearest(word.replace(/^-+/, ""), Object.keys(options));
  const hint = near === undefined ? "" : ` Did you mean --${near}?`;
  return usageError(`viv ${declaration.name} has no option ${JSON.stringify(word)}.${hint}`, `See \`viv ${declaration.name} --help\`.`);
}

function assign(
  declaration: CommandDeclaration,
  found: readonly string[],
  line: readonly string[],
): { positionals: readonly string[]; rest: readonly string[] } {
  const single = declaration.positionals.filter((positional) => positional.rest === undefined);
  const last = declaration.positionals.at(-1);
  const positionals = found.slice(0, single.length);
  const rest = last?.rest === "values" ? [...found.slice(single.length), ...line] : line;
  const missing = single.find((positional, index) => !positional.optional && positionals[index] === undefined);
  const usage = `Usage: ${usageOf(declaration)}`;
  const needs = ({ name, without }: PositionalDeclaration): Error =>
    usageError(`viv ${declaration.name} needs ${name}.`, without === undefined ? usage : `${usage}. ${without}`);
  if (missing) throw needs(missing);
  if (last?.rest !== undefined && !last.optional && rest.length === 0) throw needs(last);
  const extra = last?.rest === "values" ? undefined : found[single.length];
  if (extra !== undefined) throw usageError(`viv ${declaration.name} does not know what to do with ${JSON.stringify(extra)}.`, usage);
  return { positionals, rest };
}
