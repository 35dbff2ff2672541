/** Words that could come next on a command line, by the declarations. The caller adds names that a server knows. */
import {
  COMMON_OPTIONS,
  type CommandDeclaration,
  type CompletionKind,
  type OptionDeclaration,
  type OptionDeclarations,
} from "./command.ts";
import { optionWithValue } from "./parse.ts";

interface Candidate {
  readonly word: string;
  readonly summary?: string | undefined;
}

export interface Offer {
  readonly candidates: readonly Candidate[];
  /** Files of this machine fit, too. */
  readonly files?: boolean;
  /** Programs fit, too. */
  readonly programs?: boolean;
  /** Names of this kind do; `before` are the words in front of it that are no options. */
  readonly known?: { readonly what: Exclude<CompletionKind, "path" | "viv-command">; readonly before: readonly string[] };
  /** What each candidate is to be written behind. */
  readonly prefix?: string;
}

export interface Declarations {
  readonly names: readonly string[];
  readonly load: (name: string) => Promise<CommandDeclaration | undefined>;
}

const NOTHING: Offer = { candidates: [] };

/** `words` are those after `viv`, the last one as far as it is typed. */
export async function nextOffer(words: readonly string[], declarations: Declarations): Promise<Offer> {
  const { joined, isApart } = joinEquals(words);
  const offer = await offerAfter(joined, declarations);
  // Where the shell takes `--option=` for words of their own, it completes the value alone.
  return isApart ? { ...offer, prefix: "" } : offer;
}

/** bash hands `--option=value` over as three words. */
function joinEquals(words: readonly string[]): { joined: string[]; isApart: boolean } {
  const joined: string[] = [];
  let isApart = false;
  for (const word of words) {
    const last = joined.at(-1) ?? "";
    const goesOn: boolean = (word === "=" && /^--[^=]+$/.test(last)) || (isApart && last.endsWith("="));
    isApart = goesOn;
    if (goesOn) joined[joined.length - 1] = last + word;
    else joined.push(word);
  }
  return { joined, isApart };
}

async function offerAfter(words: readonly string[], declarations: Declarations): Promise<Offer> {
  const [first = "", second = ""] = words;
  if (words.length <= 1) return commandWords([], declarations);
  const double = words.length > 2 ? await declarations.load(`${first} ${second}`) : undefined;
  if (double !== undefined) return inCommand(double, words.slice(2), declarations);
  const single = await declarations.load(first);
  const below = words.length === 2 ? await commandWords([first], declarations) : NOTHING;
  if (single === undefined) return below;
  const offer = await inCommand(single, words.slice(1), declarations);
  return { ...offer, candidates: [...below.candidates, ...offer.candidates] };
}

/** First words of commands, or second ones of those that begin with the given one. */
async function commandWords(given: readonly string[], { names, load }: Declarations): Promise<Offer> {
  const start = given.map((word) => `${word} `).join("");
  const words = new Map<string, string | undefined>();
  for (const name of names.filter((each) => each.startsWith(start))) {
    const [word = "", ...rest] = name.slice(start.length).split(" ");
    if (!words.has(word)) words.set(word, rest.length > 0 ? undefined : (await load(name))?.summary);
  }
  return { candidates: [...words].map(([word, summary]) => ({ word, summary })) };
}

async function inCommand(declaration: CommandDeclaration, words: readonly string[], declarations: Declarations): Promise<Offer> {
  const options: OptionDeclarations = { ...declaration.options, ...COMMON_OPTIONS };
  const typed = readTyped(declaration, options, words.slice(0, -1));
  const current = words.at(-1) ?? "";
  if (typed.line !== undefined) return typed.line === 0 ? { candidates: [], programs: true } : { candidates: [], files: true };
  if (typed.awaits !== undefined) return valuesOf(typed.awaits, typed.positionals);
  if (!typed.onlyPositionals && current.startsWith("-")) return optionsOrValues(options, current, typed);
  const last = declaration.positionals.at(-1);
  const positional = declaration.positionals[typed.positionals.length] ?? (last?.rest === undefined ? undefined : last);
  if (positional?.rest === "command-line") return { candidates: [], programs: true };
  if (positional?.completes === "viv-command") return commandWords(typed.positionals, declarations);
  const offer = fitting(positional?.completes, typed.positionals);
  return { ...offer, candidates: offer.candidates.filter(({ word }) => !typed.positionals.includes(word)) };
}

interface TypedWords {
  readonly positionals: readonly string[];
  readonly given: ReadonlySet<string>;
  /** The option whose value comes next. */
  readonly awaits: OptionDeclaration | undefined;
  readonly onlyPositionals: boolean;
  /** How many words of the command line to run inside there are; undefined before it. */
  readonly line: number | undefined;
}

function readTyped(declaration: CommandDeclaration, options: OptionDeclarations, words: readonly string[]): TypedWords {
  const hasLine = declaration.positionals.at(-1)?.rest === "command-line";
  const beforeLine = declaration.positionals.length - 1;
  const positionals: string[] = [];
  const given = new Set<string>();
  let awaits: OptionDeclaration | undefined;
  let onlyPositionals = false;
  for (const [index, word] of words.entries()) {
    const isValue = awaits !== undefined;
    awaits = undefined;
    if (isValue) continue;
    if (word === "--" && hasLine) return { positionals, given, awaits, onlyPositionals, line: words.length - index - 1 };
    if (word === "--") onlyPositionals = true;
    else if (word.startsWith("-") && word !== "-" && !onlyPositionals) {
      awaits = optionWithValue(options, word)?.[1];
      for (const name of namesIn(options, word)) given.add(name);
    } else {
      if (hasLine && positionals.length === beforeLine) return { positionals, given, awaits, onlyPositionals, line: words.length - index };
      positionals.push(word);
    }
  }
  return { positionals, given, awaits, onlyPositionals, line: undefined };
}

function namesIn(options: OptionDeclarations, word: string): string[] {
  if (word.startsWith("--")) return [word.slice(2).split("=", 1)[0] ?? ""];
  return Object.entries(options).flatMap(([name, { short }]) => (short !== undefined && word.includes(short) ? [name] : []));
}

/** `--pi`, or `--pick=a`. What may be given once is not offered twice. */
function optionsOrValues(options: OptionDeclarations, current: string, { given, positionals }: TypedWords): Offer {
  const [, name = ""] = /^--([^=]+)=/.exec(current) ?? [];
  const option = Object.hasOwn(options, name) ? options[name] : undefined;
  if (current.includes("=")) return option === undefined ? NOTHING : { prefix: `--${name}=`, ...valuesOf(option, positionals) };
  const left = Object.entries(options).filter(([each, { type }]) => type === "list" || !given.has(each));
  return {
    candidates: left.flatMap(([each, { short, summary }]) => [
      { word: `--${each}`, summary },
      ...(short === undefined ? [] : [{ word: `-${short}`, summary }]),
    ]),
  };
}

function valuesOf(option: OptionDeclaration, positionals: readonly string[]): Offer {
  if (option.type === "flag") return NOTHING;
  return fitting(option.completes, positionals);
}

function fitting(completes: CompletionKind | readonly string[] | undefined, before: readonly string[]): Offer {
  if (completes === undefined || completes === "viv-command") return NOTHING;
  if (completes === "path") return { candidates: [], files: true };
  if (typeof completes !== "string") return { candidates: completes.map((word) => ({ word })) };
  return { candidates: [], ...(completes === "copy" ? { files: true } : {}), known: { what: completes, before } };
}
