/**
 * A question on a screen of its own. Programs inside write to the same terminal, so everything they may have left there is undone first,
 * and every cell is written: what a person sees is what was drawn here.
 */
import { UNREAD_MS } from "./answering.ts";
import { OWN_PROCESS, type Caller } from "./caller.ts";
import type { Stage } from "./held-output.ts";
import type { Screen } from "./screen.ts";
import { cut, width } from "./text.ts";

interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** Ends a sequence that was begun and not ended, and a hold on what is drawn. */
const BREAK_OFF = "\x18\x1b\\\x1b[?2026l";
const ALTERNATE_ON = "\x1b[?1049h";
const ALTERNATE_OFF = "\x1b[?1049l";
const PLAIN = [
  // Main display instead of a status line; no margins, no origin in them; wrapping, overwriting, nothing reversed, a cursor.
  "\x1b[0$}\x1b[?69l\x1b[?6l\x1b[r\x1b[?7h\x1b[4l\x1b[?5l\x1b[?25h",
  // Letters are letters, and nothing is protected from being written over.
  '\x1b%G\x1b(B\x1b)B\x0f\x1bW\x1b[0"q',
  // Colours as the user has set them: text in the colour of its ground would not be seen.
  "\x1b[0m\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\",
  // Pictures that lie over text.
  "\x1b_Ga=d\x1b\\",
].join("");
/** Lines of a page that are not the question's. */
const FRAME_ROWS = 3;
const INDENT = "    ";

export class QuestionPage {
  readonly #screen: Screen;
  readonly #stage: Stage;
  readonly #caller: Caller;
  #lines: readonly string[] = [];
  #pages: readonly (readonly string[])[] = [];
  #at = 0;
  #shownAt = 0;
  #open = false;

  constructor(screen: Screen, stage: Stage, caller: Caller = OWN_PROCESS) {
    this.#caller = caller;
    this.#screen = screen;
    this.#stage = stage;
  }

  /** Whether the page has been there for as long as it takes to see it: a key that was meant for something else answers nothing. */
  get isSeen(): boolean {
    return this.#open && performance.now() - this.#shownAt >= UNREAD_MS;
  }

  /** Whether all of it has been shown. */
  get isRead(): boolean {
    return this.isSeen && this.#at === this.#pages.length - 1;
  }

  show(lines: readonly string[]): void {
    if (!this.#open) this.#begin();
    this.#lines = lines;
    this.#layOut();
  }

  next(): void {
    if (!this.isSeen || this.#at >= this.#pages.length - 1) return;
    this.#at += 1;
    this.#draw();
  }

  close(): void {
    if (!this.#open) return;
    this.#end();
    this.#stage.release();
  }

  #begin(): void {
    this.#open = true;
    this.#stage.hold();
    this.#caller.on("exit", this.#end);
    this.#caller.stdout.on("resize", this.#layOut);
    if (this.#screen.size === undefined) return;
    this.#screen.overlay(`${BREAK_OFF}${this.#stage.modes?.alternate === true ? "" : ALTERNATE_ON}${PLAIN}`);
  }

  readonly #end = (): void => {
    if (!this.#open) return;
    this.#open = false;
    this.#caller.off("exit", this.#end);
    this.#caller.stdout.off("resize", this.#layOut);
    const { size } = this.#screen;
    if (size === undefined) return;
    const { alternate = false, restored = "", pending = Buffer.alloc(0) } = this.#stage.modes ?? {};
    this.#screen.overlay(`\x1b[2J${restored}\x1b[${size.rows};1H${alternate ? "" : ALTERNATE_OFF}`);
    this.#screen.overlay(pending);
  };

  readonly #layOut = (): void => {
    this.#pages = paginate(this.#lines, this.#screen.size);
    this.#at = 0;
    this.#draw();
  };

  #draw(): void {
    const { size } = this.#screen;
    const page = this.#pages[this.#at] ?? [];
    const isLast = this.#at === this.#pages.length - 1;
    const footer = isLast
      ? "Keys go to this question alone, and the program's output waits for it."
      : `Page ${this.#at + 1} of ${this.#pages.length}: [space] goes on, and then it can be answered.   [d]eny   [s]kip`;
    if (size === undefined) for (const line of [...page, footer]) this.#screen.print(line);
    else this.#screen.overlay(drawScreen([...page], footer, size));
    this.#shownAt = performance.now();
  }
}

/** As many lines as fit at a time, none of them cut. */
export function paginate(lines: readonly string[], size: Size | undefined): string[][] {
  if (size === undefined) return [[...lines]];
  const all = lines.flatMap((line) => wrapped(line, Math.max(20, size.columns - 1)));
  const room = Math.max(1, size.rows - FRAME_ROWS);
  return Array.from({ length: Math.max(1, Math.ceil(all.length / room)) }, (_, index) => all.slice(index * room, (index + 1) * room));
}

function wrapped(line: string, columns: number): string[] {
  const result: string[] = [];
  let rest = line;
  while (width(rest) > columns) {
    let end = 0;
    let used = 0;
    for (const character of rest) {
      used += width(character);
      if (used > columns) break;
      end += character.length;
    }
    // Between words, unless a word is long.
    const space = rest.lastIndexOf(" ", end) + 1;
    const at = space > end / 2 ? space : end;
    result.push(rest.slice(0, at));
    rest = `${INDENT}${rest.slice(at)}`;
  }
  return [...result, rest];
}

/** Every cell of the screen, row by row: clearing it would leave what a program has protected. */
export function drawScreen(lines: readonly string[], footer: string, { rows, columns }: Size): string {
  const content = [
    ...lines,
    ...Array.from({ length: Math.max(0, rows - FRAME_ROWS - lines.length) }, () => ""),
    "",
    "-".repeat(columns),
    footer,
  ];
  const cells = content.slice(-rows).map((line, index) => {
    const text = cut(line, columns);
    return `\x1b[${index + 1};1H\x1b#5${text}${" ".repeat(Math.max(0, columns - width(text)))}`;
  });
  return `\x1b[?7l${cells.join("")}\x1b[?7h\x1b[${rows};1H`;
}
