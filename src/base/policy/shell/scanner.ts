/** Words of a shell script, with quotes and expansions. The class that extends this one parses what an expansion runs. */
import { UNSEEN } from "../../schema/unseen.ts";
import { UNKNOWN } from "../pattern.ts";
import { decodeAnsi } from "./ansi.ts";
import { SHELL_LIMITS, type Script, type Word } from "./script.ts";

const ENDS_WORD = new Set([" ", "\t", "\n", "\r", ";", "&", "|", "<", ">", "(", ")"]);
const NAME = /[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]/y;
const REDIRECT = /(?:\d+|\{([A-Za-z_][A-Za-z0-9_]*)\})?(<<<|<<-|<<|<>|<&|>>|>\||>&|<|>)/y;
const REDIRECT_ALL = /&>>?/y;
const DEFAULTED = /!?([A-Za-z_]\w*):?=/y;
const CALCULATED = /(?<!\w)([A-Za-z_]\w*)\s*(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)|(?:\+\+|--)\s*([A-Za-z_]\w*)/g;
/** Blanks that no shell takes for blanks, and characters that a person does not see. */
const DISGUISE = new RegExp(String.raw`^[[${UNSEEN}\p{Zs}]--[\t\n\r]]`, "v");

/** What holds no single quote, backtick, comment or end of a line, but for those behind a backslash. */
const PASSAGE = /(?:[^'`#\n\\]|\\[^]|\\$)*/y;

/** A backslash at the end of a line joins the next one to it; an escaped backslash does not. */
export function withoutJoins(text: string): string {
  return text.includes("\\\n") ? text.replaceAll(/\\([^])/g, (pair, next) => (next === "\n" ? "" : pair)) : text;
}

/** A word under construction. */
class WordBuilder {
  text = "";
  match = "";
  quoted = false;
  glob = false;
  tilde = false;
  #brace = 0;

  literal(text: string): void {
    this.text += text;
    this.match += text;
  }

  unknown(raw: string): void {
    this.text += raw;
    if (!this.match.endsWith(UNKNOWN)) this.match += UNKNOWN;
  }

  /** An unquoted character, which may be one that the shell expands. */
  plain(character: string, next: string | undefined): void {
    if (character === "*" || character === "?" || character === "[") this.glob = true;
    if (character === "~" && this.text === "" && !this.quoted) this.tilde = true;
    if (character === "{" && this.#brace === 0) this.#brace = 1;
    if (this.#brace === 1 && (character === "," || (character === "." && next === "."))) this.#brace = 2;
    this.literal(character);
    // {a,b} and {1..9} become several words.
    if (character === "}" && this.#brace === 2) this.match = UNKNOWN;
  }

  done(): Word {
    const { text, match, quoted, glob, tilde } = this;
    return { text, match, quoted, glob, tilde };
  }
}

export abstract class Scanner {
  /** From here on, up to where it was last looked at, without its joined lines. */
  protected text: string;
  protected at = 0;
  #joinedTo = 0;
  #joins = 0;
  protected readonly depth: number;
  protected readonly script: Script;
  /** Read as shells do that know neither quotes in subscripts nor letters after a list of values. */
  protected readonly asWords: boolean;
  /** Nothing is read on after what could not be understood. */
  protected halted = false;

  constructor(text: string, depth: number, script: Script, asWords: boolean) {
    this.text = text;
    this.depth = depth;
    this.script = script;
    this.asWords = asWords;
  }

  /** Parses commands from here to the closing bracket. */
  protected abstract substitution(): void;
  /** A variable changes without an assignment of its own. */
  protected abstract assigned(name: string): void;
  /** Parses a text of its own. */
  protected abstract nested(text: string, kind: "commands" | "expansions", asWords?: boolean): void;

  protected fail(problem: string): void {
    this.note(problem);
    this.halted = true;
    this.at = this.text.length;
  }

  protected note(problem: string): void {
    if (!this.script.problems.includes(problem)) this.script.problems.push(problem);
  }

  protected isTooDeep(): boolean {
    if (this.depth < SHELL_LIMITS.depth) return false;
    this.fail("it is nested too deeply");
    return true;
  }

  /**
   * Takes joined lines out of what follows, up to where single quotes, backticks, a comment or another line may start: lines are not
   * joined in all of these. So all that is compared with the text from here can be compared as if it stood in one line.
   */
  protected join(): void {
    if (this.at < this.#joinedTo) return;
    PASSAGE.lastIndex = this.at;
    const passage = PASSAGE.exec(this.text)?.[0] ?? "";
    const joined = withoutJoins(passage);
    this.#joinedTo = this.at + joined.length;
    if (joined.length === passage.length) return;
    this.#joins += 1;
    if (this.#joins > SHELL_LIMITS.joins) return this.fail("it joins too many lines");
    this.text = this.text.slice(0, this.at) + joined + this.text.slice(this.at + passage.length);
  }

  /** The word from here; empty text and unquoted if none starts here. */
  protected word(): Word {
    const word = new WordBuilder();
    for (;;) {
      this.join();
      if (this.halted || this.at >= this.text.length) break;
      const character = this.text[this.at] ?? "";
      if (ENDS_WORD.has(character)) {
        if (word.text === "" && this.isProcessSubstitution()) {
          this.at += 2;
          this.substitution();
          word.unknown("<(...)");
          continue;
        }
        break;
      }
      this.#piece(word, character);
    }
    return word.done();
  }

  protected isProcessSubstitution(): boolean {
    const character = this.text[this.at];
    return (character === "<" || character === ">") && this.text[this.at + 1] === "(";
  }

  #piece(word: WordBuilder, character: string): void {
    switch (character) {
      case "\\":
        return this.#escape(word);
      case "'":
        word.quoted = true;
        return word.literal(this.#until("'", this.at + 1));
      case '"':
        word.quoted = true;
        return this.#doubleQuoted(word);
      case "`":
        return this.#backticks(word, false);
      case "$":
        return this.#dollar(word, false);
      default:
        if (character > "~" || character < " ") this.#noteDisguise();
        this.at += 1;
        return word.plain(character, this.text[this.at]);
    }
  }

  #noteDisguise(): void {
    const whole = String.fromCodePoint(this.text.codePointAt(this.at) ?? 0);
    if (DISGUISE.test(whole)) this.note("it has characters that look like others or like none");
  }

  #escape(word: WordBuilder): void {
    const next = this.text[this.at + 1];
    this.at += 2;
    if (next === "\n") return;
    word.quoted = true;
    // With nothing behind it, it stands for itself.
    word.literal(next ?? "\\");
  }

  /** Text up to a quote, which is passed. */
  #until(quote: string, from: number): string {
    const end = this.text.indexOf(quote, from);
    if (end < 0) {
      this.fail("a quote is not closed");
      return "";
    }
    this.at = end + 1;
    return this.text.slice(from, end);
  }

  #doubleQuoted(word: WordBuilder): void {
    this.at += 1;
    while (!this.halted) {
      this.join();
      const character = this.text[this.at];
      if (character === undefined) return this.fail("a quote is not closed");
      if (character === '"') {
        this.at += 1;
        return;
      }
      this.#quotedPiece(word, character);
    }
  }

  /** A character where only `$`, backticks and backslashes mean something. */
  #quotedPiece(word: WordBuilder, character: string): void {
    if (character === "$") return this.#dollar(word, true);
    if (character === "`") return this.#backticks(word, true);
    const next = this.text[this.at + 1];
    if (character === "\\" && next !== undefined && '$`"\\\n'.includes(next)) {
      if (next !== "\n") word.literal(next);
      this.at += 2;
      return;
    }
    word.literal(character);
    this.at += 1;
  }

  /** A whole text in which expansions work and quotes don't, such as a heredoc. */
  protected expansions(): Word {
    const word = new WordBuilder();
    for (;;) {
      this.join();
      if (this.halted || this.at >= this.text.length) return word.done();
      this.#quotedPiece(word, this.text[this.at] ?? "");
    }
  }

  #backticks(word: WordBuilder, inQuotes: boolean): void {
    const start = this.at + 1;
    let inner = "";
    let index = start;
    for (; ; index += 1) {
      const character = this.text[index];
      if (character === undefined) return this.fail("a backtick is not closed");
      if (character === "`") break;
      const next = this.text[index + 1];
      if (character === "\\" && next !== undefined && (inQuotes ? '`$\\"' : "`$\\").includes(next)) {
        inner += next;
        index += 1;
      } else inner += character;
    }
    this.at = index + 1;
    if (inner.includes("\\\n") && /['#]|<</.test(inner)) this.note("joined lines in backticks mean different things to different shells");
    word.unknown(`\`${inner}\``);
    this.nested(inner, "commands");
  }

  #dollar(word: WordBuilder, inQuotes: boolean): void {
    const start = this.at;
    const next = this.text[start + 1];
    if (!inQuotes && next === "'") return this.#ansiQuoted(word);
    if (!inQuotes && next === '"') {
      this.at += 1;
      word.quoted = true;
      return this.#doubleQuoted(word);
    }
    if (next === "(") this.#bracketed();
    else if (next === "{") this.#deeper(() => this.#parameter(inQuotes));
    else if (next === "[") this.#oldArithmetic();
    else {
      NAME.lastIndex = start + 1;
      const name = NAME.exec(this.text)?.[0];
      this.at = start + 1 + (name?.length ?? 0);
      if (name === undefined) return word.literal("$");
    }
    word.unknown(this.text.slice(start, this.at));
  }

  #ansiQuoted(word: WordBuilder): void {
    const decoded = decodeAnsi(this.text, this.at + 2);
    if (decoded === undefined) return this.fail("a quote is not closed");
    // Not every shell knows these quotes: another one would end them here.
    if (this.text.slice(this.at, decoded.end).includes("\\'")) this.note("it has escaped quotes that not every shell knows");
    this.at = decoded.end;
    word.quoted = true;
    word.literal(decoded.text);
  }

  /** `$(...)` or `$((...))`. */
  #bracketed(): void {
    const end = this.text[this.at + 2] === "(" ? this.arithmeticEnd(this.at + 2) : -1;
    if (end < 0) {
      this.at += 2;
      return this.substitution();
    }
    const inner = this.text.slice(this.at + 3, end);
    this.at = end + 2;
    this.arithmetic(inner);
  }

  /** With what a calculation changes: `NAME=1`, `NAME+=1`, `NAME++`. */
  protected arithmetic(text: string): void {
    for (const found of withoutJoins(text).matchAll(CALCULATED)) this.assigned(found[1] ?? found[2] ?? "");
    // With its joined lines: commands in it may have comments.
    this.nested(text, "expansions");
  }

  /** Of `((`, whose second bracket is at `from`: where its own closing bracket is, if another follows at once. */
  protected arithmeticEnd(from: number): number {
    let open = 0;
    for (let index = from; index < this.text.length; index += 1) {
      const character = this.text[index];
      if (character === "\\") index += 1;
      else if (character === "(") open += 1;
      else if (character === ")") {
        open -= 1;
        if (open === 0) return this.#joinedBracket(index + 1) ? index : -1;
      } else if (character === "'" || character === '"') this.note("it calculates with quoted text");
    }
    return -1;
  }

  /** Whether a closing bracket is there. Lines that are joined before it are taken out. */
  #joinedBracket(at: number): boolean {
    const [joins = ""] = /^(?:\\\n)*(?=\))/.exec(this.text.slice(at)) ?? [];
    if (joins !== "") this.text = this.text.slice(0, at) + this.text.slice(at + joins.length);
    return this.text[at] === ")";
  }

  #oldArithmetic(): void {
    this.note("`$[` means different things to different shells");
    const end = this.subscriptEnd(this.at + 1, this.text.length);
    if (end < 0) return this.fail("a bracket is not closed");
    const inner = this.text.slice(this.at + 2, end);
    this.at = end + 1;
    this.nested(inner, "expansions");
  }

  /** Of the `[` at `from`: where its closing bracket is, before `before` and outside of quotes; -1 if there is none. */
  protected subscriptEnd(from: number, before: number): number {
    let open = 0;
    let quote = "";
    for (let index = from; index < Math.min(before, this.text.length); index += 1) {
      const character = this.text[index] ?? "";
      if (character === "\\" && quote !== "'") index += 1;
      else if (quote !== "") quote = character === quote ? "" : quote;
      else if (character === "'" || character === '"') quote = character;
      else if (character === "[") open += 1;
      else if (character === "]") open -= 1;
      if (open === 0) return index;
    }
    return -1;
  }

  /** `${name...}`, whose default may run something; the value is never known. */
  #parameter(inQuotes: boolean): void {
    if (this.isTooDeep()) return;
    const inner = new WordBuilder();
    let open = 1;
    this.at += 2;
    if (/[\s|]/.test(this.text[this.at] ?? "")) this.note("`${ ` runs commands in some shells");
    DEFAULTED.lastIndex = this.at;
    const defaulted = DEFAULTED.exec(this.text)?.[1];
    if (defaulted !== undefined) this.assigned(defaulted);
    while (!this.halted) {
      this.join();
      const character = this.text[this.at];
      if (character === undefined) return this.fail("a brace is not closed");
      if (character === "}") {
        this.at += 1;
        return;
      }
      if (character === "$" && this.text[this.at + 1] === "{") {
        open += 1;
        if (open > SHELL_LIMITS.depth) return this.fail("it is nested too deeply");
        this.#deeper(() => this.#parameter(inQuotes));
        open -= 1;
      } else if (character === "\\") this.#escape(inner);
      else if (character === '"') this.#doubleQuoted(inner);
      else if (character === "'" && !inQuotes) this.#until("'", this.at + 1);
      else if (character === "$") this.#dollar(inner, inQuotes);
      else if (character === "`") this.#backticks(inner, inQuotes);
      else this.at += 1;
    }
  }

  protected redirectOperator(): string | undefined {
    for (const pattern of [REDIRECT, REDIRECT_ALL]) {
      pattern.lastIndex = this.at;
      const found = pattern.exec(this.text);
      if (found === null) continue;
      this.at += found[0].length;
      if (pattern === REDIRECT && found[1] !== undefined) this.assigned(found[1]);
      return found[2] ?? "&>";
    }
    return undefined;
  }

  #levels = 0;
  /** Counts what nests inside this text without a parser of its own. */
  #deeper(work: () => void): void {
    this.#levels += 1;
    if (this.#levels + this.depth > SHELL_LIMITS.depth) this.fail("it is nested too deeply");
    else work();
    this.#levels -= 1;
  }
}
