/** What a program of a command line runs on its own account. */
import type { Word } from "../shell/script.ts";

export interface Opaque {
  /** Why, as part of a sentence. */
  readonly why: string;
  /** Code of an interpreter: a rule that names the program may allow it. What hides in an option needs an exact one. */
  readonly kind: "code" | "hidden";
  /** What it runs comes from its input, and is known only then. */
  readonly later?: true;
}

export interface Finding {
  readonly opaque?: Opaque | undefined;
  /** It is opaque since it runs what its input says. */
  readonly readsInput?: boolean;
  /** Texts that a shell runs. */
  readonly scripts?: readonly Word[];
  /** Commands that it runs. */
  readonly runs?: readonly (readonly Word[])[];
  /** The program itself counts only if a rule names it: what it runs is judged instead. */
  readonly transparent?: boolean;
  /** What it runs counts only if a rule names that: the program itself is judged. */
  readonly lenient?: boolean;
}

export type Inspect = (words: readonly Word[]) => Finding;

export function hiddenCommand(why: string): Finding {
  return { opaque: { why, kind: "hidden" } };
}

export interface OptionShape {
  /** Letters whose value is the rest of the word or the next word. */
  readonly letters?: string;
  /** Long names, without dashes, whose value may be the next word. */
  readonly names?: readonly string[];
}

/** Index of the first word that is no option; words[0] is the program. */
export function firstOperand(words: readonly Word[], { letters = "", names = [] }: OptionShape, from = 1): number {
  let index = from;
  for (; index < words.length; index += 1) {
    const { text } = words[index] ?? { text: "" };
    if (text === "--") return index + 1;
    if (!text.startsWith("-") || text === "-") return index;
    if (text.startsWith("--")) {
      // Long names may be shortened.
      if (names.some((name) => text.length > 3 && name.startsWith(text.slice(2)))) index += 1;
      continue;
    }
    const letter = text
      .slice(1)
      .split("")
      .findIndex((each) => letters.includes(each));
    if (letter >= 0 && letter === text.length - 2) index += 1;
  }
  return index;
}

/** All words that are no options. */
export function operands(words: readonly Word[], letters = ""): Word[] {
  const result: Word[] = [];
  for (let index = 1; index < words.length;) {
    const at = firstOperand(words, { letters }, index);
    const word = words[at];
    if (word === undefined) break;
    if (words[at - 1]?.text === "--") return [...result, ...words.slice(at)];
    result.push(word);
    index = at + 1;
  }
  return result;
}

/** Values of an option in all its spellings: -c V, -cV, --name V, --name=V, and shortened long names from `least` letters on. */
export function optionValues(words: readonly Word[], { letter, name }: { letter?: string; name?: string }): Word[] {
  const values: Word[] = [];
  for (let index = 1; index < words.length; index += 1) {
    const word = words[index];
    if (word === undefined) break;
    const next = words[index + 1];
    const { text } = word;
    if (letter !== undefined && /^-[^-]/.test(text)) {
      const at = text.indexOf(letter, 1);
      if (at > 0) {
        if (at < text.length - 1) values.push(restOfWord(word, at + 1));
        else if (next !== undefined) values.push(next);
      }
    }
    if (name !== undefined && text.startsWith("--")) {
      const [given, value] = split(text.slice(2));
      if (given.length < 2 || !name.startsWith(given)) continue;
      if (value !== undefined) values.push(restOfWord(word, text.indexOf("=") + 1));
      else if (next !== undefined) values.push(next);
    }
  }
  return values;
}

function split(text: string): [string, string | undefined] {
  const at = text.indexOf("=");
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

/** The word from a character on; unknown parts stay where they are as long as nothing unknown was before. */
export function restOfWord(word: Word, from: number): Word {
  return { ...word, text: word.text.slice(from), match: word.match.slice(from), tilde: false };
}

/** Words as the text that a shell would get. */
export function joinWords(words: readonly Word[]): Word {
  return {
    text: words.map(({ text }) => text).join(" "),
    match: words.map(({ match }) => match).join(" "),
    quoted: true,
    glob: false,
    tilde: false,
  };
}
