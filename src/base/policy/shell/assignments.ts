/** Assignments of a shell script: plain ones, with a subscript, and of lists. */
import { Scanner } from "./scanner.ts";
import { plainWord, type SimpleCommand } from "./script.ts";

/** With a plain subscript, or none. */
const ASSIGNMENT = /([A-Za-z_][A-Za-z0-9_]*)(?:\[[\w@.+-]*\])?\+?=/y;
const SUBSCRIPTED = /([A-Za-z_][A-Za-z0-9_]*)\[/y;
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

  /** `NAME[...]=` where the subscript is not plain: some shells assign, others run what is inside. So both are judged. */
  #subscripted(command: SimpleCommand): boolean {
    SUBSCRIPTED.lastIndex = this.at;
    const found = SUBSCRIPTED.exec(this.text);
    if (found === null) return false;
    const start = this.at + found[0].length;
    const end = this.subscriptEnd(start - 1, start + SUBSCRIPT_CHARACTERS);
    const equals = end < 0 ? null : /^\+?=/.exec(this.text.slice(end + 1, end + 3));
    if (equals === null) return false;
    this.note("a subscript means different things to different shells");
    this.nested(this.text.slice(start, end), "commands");
    this.at = end + 1 + equals[0].length;
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
    // Some shells take letters that follow at once for a part of the value, others for the next word.
    const after = this.at;
    this.word();
    if (this.at !== after) this.note("what follows a list of values means different things to different shells");
    const text = values.join(" ");
    command.assignments.push({ name, value: { ...plainWord(text), quoted: true } });
    return true;
  }
}
