/**
 * A shell parser for judging, not for running: it finds every simple command in lists, pipes, groups, substitutions,
 * functions and heredocs. It takes more than a shell would, since a script that no shell runs does no harm, and it
 * never throws: what it can't read is a problem, and it stops there.
 */
import { AssignmentScanner } from "./assignments.ts";
import { withoutJoins } from "./scanner.ts";
import { isUnknown, plainWord, SHELL_LIMITS, type Redirect, type Script, type SimpleCommand, unknownWord, type Word } from "./script.ts";

export function parseShell(text: string): Script {
  const script: Script = { commands: [], problems: [] };
  parseInto(text, script, 0);
  return script;
}

/** Parses a text that another one runs, with the same limits over both. */
export function parseInto(text: string, script: Script, depth: number): void {
  if (text.length > SHELL_LIMITS.characters) {
    script.problems.push(`it is longer than ${SHELL_LIMITS.characters} characters`);
    return;
  }
  new Parser(text, depth, script, false).all();
}

/** Keywords that a command may follow, or that end one; their order is the shell's business. */
const PASSED = new Set(["if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "!"]);
/** Where a list ends: at a bracket, at the `;;` of a case, or with the text. */
type End = ")" | ";;" | "text";

class Parser extends AssignmentScanner {
  #heredocs: { redirect: Redirect; dash: boolean }[] = [];
  #levels = 0;

  all(): void {
    if (this.isTooDeep()) return;
    this.#list("text");
    if (this.#heredocs.length > 0) this.#readHeredocs();
  }

  expanded(): Word {
    return this.expansions();
  }

  protected substitution(): void {
    const heredocs = this.#heredocs.length;
    this.#within(() => this.#list(")"));
    // Shells disagree on where the lines of such a heredoc are.
    if (this.#heredocs.length > heredocs) this.note("a heredoc goes on after its brackets");
  }

  protected nested(text: string, kind: "commands" | "expansions", asWords = this.asWords): void {
    const parser = new Parser(text, this.depth + 1 + this.#levels, this.script, asWords);
    if (parser.isTooDeep()) this.halted = true;
    else if (kind === "commands") parser.all();
    else parser.expanded();
  }

  #within(work: () => void): void {
    this.#levels += 1;
    if (this.depth + this.#levels > SHELL_LIMITS.depth) this.fail("it is nested too deeply");
    else work();
    this.#levels -= 1;
  }

  #list(end: End): void {
    while (!this.halted) {
      this.blanks(true);
      const character = this.text[this.at];
      if (character === undefined) {
        if (end !== "text") this.fail("a bracket or a case is not closed");
        return;
      }
      if (character === ")") {
        this.at += 1;
        if (end !== ")") this.fail("a bracket closes that none opened");
        return;
      }
      if (character === ";" && (this.text[this.at + 1] === ";" || this.text[this.at + 1] === "&")) {
        this.#endOfCase(end);
        return;
      }
      if (this.#operator(character)) continue;
      if (this.#command() === "esac") {
        if (end !== ";;") this.fail("an esac closes a case that none opened");
        this.#esac = true;
        return;
      }
    }
  }

  #esac = false;

  #endOfCase(end: End): void {
    if (end !== ";;") return this.fail("`;;` stands outside of a case");
    while (this.text[this.at] === ";" || this.text[this.at] === "&") this.at += 1;
  }

  #operator(character: string): boolean {
    if (character === "&" && this.text[this.at + 1] === ">") return false;
    if (character !== ";" && character !== "&" && character !== "|") return false;
    const isPipe = character === "|" && this.text[this.at + 1] !== "|";
    this.at += isPipe || this.text[this.at + 1] !== character ? 1 : 2;
    if (isPipe && this.text[this.at] === "&") this.at += 1;
    return true;
  }

  /** Passes blanks, joined lines and comments, and with `lines` the ends of lines too. */
  protected blanks(lines: boolean): void {
    for (;;) {
      const character = this.text[this.at];
      if (character === " " || character === "\t") this.at += 1;
      else if (character === "\\" && this.text[this.at + 1] === "\n") this.at += 2;
      else if (character === "#") {
        const end = this.text.slice(this.at).search(/[\r\n]/);
        this.at = end < 0 ? this.text.length : this.at + end;
      } else if (lines && (character === "\n" || character === "\r")) this.#line(character);
      else return this.join();
    }
  }

  #line(character: string): void {
    // A shell takes a carriage return for a letter, a terminal or a person for the end of a line.
    if (character === "\r") this.note("it has carriage returns");
    this.at += 1;
    if (character === "\n" && this.#heredocs.length > 0) this.#readHeredocs();
  }

  #readHeredocs(): void {
    for (const { redirect, dash } of this.#heredocs.splice(0)) {
      let body = "";
      while (this.at < this.text.length) {
        const end = this.text.indexOf("\n", this.at);
        const line = this.text.slice(this.at, end < 0 ? undefined : end);
        this.at = end < 0 ? this.text.length : end + 1;
        if (line.endsWith("\\") && !redirect.target.quoted) this.note("a heredoc joins lines");
        if ((dash ? line.replace(/^\t+/, "") : line) === redirect.target.text) break;
        body += `${line}\n`;
      }
      redirect.body = this.#heredocBody(redirect.target, body);
    }
  }

  #heredocBody(delimiter: Word, body: string): Word {
    if (delimiter.quoted) return { ...plainWord(body), quoted: true };
    return { ...new Parser(body, this.depth + 1 + this.#levels, this.script, this.asWords).expanded(), text: body };
  }

  #command(): "esac" | undefined {
    if (this.text[this.at] === "(") {
      this.#bracket();
      return undefined;
    }
    return this.#simple();
  }

  #bracket(): void {
    const end = this.text[this.at + 1] === "(" ? this.arithmeticEnd(this.at + 1) : -1;
    const inner = end < 0 ? "" : this.text.slice(this.at + 2, end);
    const joined = withoutJoins(inner);
    // Not every shell knows `((`: where the inside could be a command, it is read as one, too.
    if (end >= 0 && !/\w\s+-?[A-Za-z_./]/.test(joined) && /[=+<>*%-]/.test(joined)) {
      this.at = end + 2;
      return this.arithmetic(inner);
    }
    if (end >= 0) this.note("`((` means different things to different shells");
    this.at += 1;
    this.#within(() => this.#list(")"));
  }

  #simple(): "esac" | undefined {
    const command: SimpleCommand = { words: [], assignments: [], redirects: [] };
    let ended: "esac" | undefined;
    while (!this.halted) {
      this.blanks(false);
      if (this.#redirect(command)) continue;
      if (command.words.length === 0 && this.assignment(command)) continue;
      const start = this.at;
      const word = this.word();
      if (this.at === start) break;
      const isFirst = command.words.length + command.assignments.length + command.redirects.length === 0;
      const keyword = isFirst && !word.quoted ? word.text : "";
      if (keyword === "esac") {
        ended = "esac";
        break;
      }
      if (this.#keyword(keyword)) continue;
      // Some shells end a command at this `&`, and what follows is another one.
      if (command.redirects.some(({ operator }) => operator === "&>")) this.note("`&>` means different things to different shells");
      command.words.push(word);
      if (command.words.length === 1 && this.#isFunction()) command.words.pop();
    }
    this.#finish(command);
    // After a keyword or the head of a function, brackets are a command of their own.
    if (command.words.length > 0 && this.text[this.at] === "(") this.fail("a bracket opens where none can");
    return ended;
  }

  #finish(command: SimpleCommand): void {
    if (command.words.length + command.assignments.length + command.redirects.length === 0) return;
    if (this.script.commands.length >= SHELL_LIMITS.commands) return this.fail("it has too many commands");
    this.script.commands.push(command);
  }

  /** Passes a keyword and what belongs to its head. */
  #keyword(word: string): boolean {
    if (PASSED.has(word)) return true;
    if (word === "for" || word === "select") this.#forHead();
    else if (word === "case") this.#within(() => this.#case());
    else if (word === "function") this.#functionName();
    else if (word === "[[") this.#test();
    else if (word === "coproc") this.#coprocessName();
    else return word === "time" && this.#time();
    return true;
  }

  /** The keyword, which only knows -p; with other options it is the program. */
  #time(): boolean {
    const start = this.at;
    this.blanks(false);
    if (/^-p[ \t]/.test(this.text.slice(this.at, this.at + 3))) this.at += 3;
    this.blanks(false);
    if (this.text[this.at] !== "-") return true;
    this.at = start;
    return false;
  }

  /** `coproc NAME {`: a name stands only before a command in brackets or a keyword. */
  #coprocessName(): void {
    this.blanks(false);
    const found = /^[A-Za-z_]\w*(?=[ \t]+(?:\(|(?:\{|if|for|while|until|case|select|\[\[)(?![^\s;&|<>()])))/.exec(
      this.text.slice(this.at, this.at + 256),
    );
    if (found === null) return;
    this.at += found[0].length;
    this.assigned(found[0]);
  }

  /** A loop's variable and `${NAME:=value}` change variables as an assignment does. */
  protected assigned(name: string): void {
    this.#finish({ words: [], assignments: [{ name, value: unknownWord("...") }], redirects: [] });
  }

  #forHead(): void {
    this.blanks(false);
    if (this.text.startsWith("((", this.at)) {
      const end = this.arithmeticEnd(this.at + 1);
      if (end < 0) return this.fail("a bracket is not closed");
      const inner = this.text.slice(this.at + 2, end);
      this.at = end + 2;
      return this.arithmetic(inner);
    }
    const { text: name } = this.word();
    if (name === "") return this.fail("a loop has no name");
    this.assigned(name);
    this.blanks(true);
    const start = this.at;
    if (this.word().text !== "in") {
      this.at = start;
      return;
    }
    for (;;) {
      this.blanks(false);
      const before = this.at;
      this.word();
      if (this.at === before) return;
    }
  }

  #functionName(): void {
    this.blanks(false);
    this.word();
    this.#isFunction();
  }

  /** `name ()`: what follows is judged like anything else. */
  #isFunction(): boolean {
    const start = this.at;
    this.blanks(false);
    if (this.text[this.at] === "(") {
      this.at += 1;
      this.blanks(false);
      if (this.text[this.at] === ")") {
        this.at += 1;
        return true;
      }
    }
    this.at = start;
    return false;
  }

  #case(): void {
    this.blanks(true);
    this.word();
    this.blanks(true);
    if (this.word().text !== "in") return this.fail("a case has no `in`");
    this.#esac = false;
    while (!this.halted) {
      this.blanks(true);
      if (this.text[this.at] === "(") this.at += 1;
      else if (/^esac(?![^\s;&|<>()])/.test(this.text.slice(this.at, this.at + 5))) {
        this.at += 4;
        return;
      }
      if (!this.#casePattern()) return;
      this.#within(() => this.#list(";;"));
      if (this.#esac) {
        this.#esac = false;
        return;
      }
    }
  }

  #casePattern(): boolean {
    while (!this.halted) {
      this.blanks(true);
      const start = this.at;
      this.word();
      this.blanks(true);
      const character = this.text[this.at];
      this.at += 1;
      if (character === ")") return true;
      if (character !== "|" || this.at === start + 1) break;
    }
    this.fail("a case is not understood");
    return false;
  }

  /** `[[ ... ]]`. */
  #test(): void {
    while (!this.halted) {
      this.blanks(true);
      const character = this.text[this.at];
      if (character === undefined || character === ";") return this.fail("a test is not closed");
      if (this.isProcessSubstitution()) this.word();
      else if ("<>&|".includes(character)) {
        this.at += /^[&|]{2}/.test(this.text.slice(this.at, this.at + 2)) ? 2 : 1;
        // A shell that does not know `[[` would run what follows; an option is no program.
        if (!/^[ \t]*(?:! )?[ \t]*-[a-zA-Z][ \t]/.test(this.text.slice(this.at, this.at + 16)))
          this.note("`[[` means different things to different shells");
      } else if (character === "(" || character === ")") this.at += 1;
      else if (this.word().text === "]]") return;
    }
  }

  #redirect(command: SimpleCommand): boolean {
    if (this.isProcessSubstitution()) return false;
    const operator = this.redirectOperator();
    if (operator === undefined) return false;
    this.blanks(false);
    const start = this.at;
    const target = this.word();
    if (this.at === start) {
      this.fail("a redirection has no target");
      return true;
    }
    const redirect: Redirect = { operator, target };
    command.redirects.push(redirect);
    if (operator.startsWith("<<") && operator !== "<<<" && isUnknown(target)) this.note("the end of a heredoc is not plain");
    if (operator === "<<" || operator === "<<-") this.#heredocs.push({ redirect, dash: operator === "<<-" });
    return true;
  }
}
