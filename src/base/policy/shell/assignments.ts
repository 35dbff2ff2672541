/** Assignments of a shell script: plain ones, with a subscript, and of lists. */
import { Scanner } from "./scanner.ts";
import { plainWord, type SimpleCommand } from "./script.ts";

/** With a plain subscript, or none. */
const ASSIGNMENT = /([A-Za-z_][A-Za-z0-9_]*)(?:\[[\w@.+-]*\])?\+?=/y;
const SUBSCRIPTED = /([A-Za-z_][A-Za-z0-9_]*)\[/y;
const EQUALS = /^(?:\\\n)*(?:\+(?:\\\n)*)?=/;
/** Longer ones are read as words. */
const SUBSCRIPT_CHARACTERS = 256;

export abstract class AssignmentScanner extends Scanner {
  /** Passes blanks, joined lines and comments, and with `lines` the ends of lines too. */
  protected abstract blanks(lines: boolean): void;

  /** Reads the assignment from here into a command; false if none starts here. */
  protected assignment(command: SimpleCommand): boolean {
    ASSIGNMENT.lastIndex = this.at;
    const found = ASSIGNMENT.exec(this.text);
    if (found === null) return this.#subscripted(command);
    this.at += found[0].length;
    if (this.text[this.at] === "(") return this.#array(command, found[1] ?? "");
    command.assignments.push({ name: found[1] ?? "", value: this.word() });
    return true;
  }

  #isReadAsWords = false;

  /** Reads the rest from here again, once, as shells do to which this is no assignment. */
  #readAsWords(): void {
    if (this.#isReadAsWords) return;
    this.#isReadAsWords = true;
    this.nested(this.text.slice(this.at), "commands", true);
  }

  /** `NAME[...]=` where the subscript is not plain: some shells assign, others run what is inside. So both are judged. */
  #subscripted(command: SimpleCommand): boolean {
    SUBSCRIPTED.lastIndex = this.at;
    const found = SUBSCRIPTED.exec(this.text);
    if (found === null) return false;
    const start = this.at + found[0].length;
    const end = this.subscriptEnd(start - 1, start + SUBSCRIPT_CHARACTERS);
    if (end < 0 && this.text.length > start + SUBSCRIPT_CHARACTERS) this.note("a subscript is too long");
    const [equals] = end < 0 ? [] : (EQUALS.exec(this.text.slice(end + 1)) ?? []);
    if (equals === undefined) return false;
    this.note("a subscript means different things to different shells");
    const inner = this.text.slice(start, end);
    if (/['"\\]/.test(inner)) {
      if (this.asWords) return false;
      this.#readAsWords();
    }
    this.nested(inner, "commands");
    this.at = end + 1 + equals.length;
    command.assignments.push({ name: found[1] ?? "", value: this.word() });
    return true;
  }

  #array(command: SimpleCommand, name: string): boolean {
    this.at += 1;
    const values: string[] = [];
    while (!this.halted) {
      this.blanks(true);
      const start = this.at;
      values.push(this.word().match);
      if (this.at !== start) continue;
      if (this.text[this.at] !== ")") this.fail("a list of values is not closed");
      this.at += 1;
      break;
    }
    this.#afterArray();
    const text = values.join(" ");
    command.assignments.push({ name, value: { ...plainWord(text), quoted: true } });
    return true;
  }

  /** Some shells take letters that follow a list at once for a part of the value, others for the next word. So both are judged. */
  #afterArray(): void {
    const after = this.at;
    if (this.asWords) return;
    this.word();
    if (this.at === after) return;
    this.note("what follows a list of values means different things to different shells");
    const end = this.at;
    this.at = after;
    this.#readAsWords();
    this.at = end;
  }
}
