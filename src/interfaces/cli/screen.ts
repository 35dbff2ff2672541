/** The only place that writes to the terminal. stdout holds results, stderr what is said about them. */
import type { CallerOutput } from "./caller.ts";
import { fields, table, type Column } from "./table.ts";
import { clean, cleanJson } from "./text.ts";

export type Colour = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";
const CODES: Readonly<Record<Colour, readonly [number, number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
};
export const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const SAY_AFTER_MS = 1000;
const FRAME_MS = 100;

export interface ScreenSettings {
  readonly stdout: CallerOutput;
  readonly stderr: CallerOutput;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly json: boolean;
}

export class Screen {
  readonly #stdout: CallerOutput;
  readonly #stderr: CallerOutput;
  readonly #json: boolean;
  readonly #colours: boolean;
  readonly #errorColours: boolean;
  readonly #steady: boolean;
  /** Whether the line that the cursor is on shows a wait. */
  #waits = false;

  constructor(settings: ScreenSettings) {
    this.#stdout = settings.stdout;
    this.#stderr = settings.stderr;
    this.#json = settings.json;
    const wanted = !settings.env["NO_COLOR"] && settings.env["TERM"] !== "dumb";
    this.#colours = wanted && settings.stdout.isTTY === true;
    this.#errorColours = wanted && settings.stderr.isTTY === true;
    this.#steady = settings.env["TERM"] === "dumb";
  }

  get terminal(): boolean {
    return this.#stdout.isTTY === true;
  }

  /** Whether results are shown in colours. */
  get colours(): boolean {
    return this.#colours;
  }

  /** Width of the terminal that results go to; undefined elsewhere, and where it does not know. */
  get columns(): number | undefined {
    return (this.terminal && this.#stdout.columns) || undefined;
  }

  /** Size of a terminal on which remarks can be drawn over; undefined where they stay as they are. */
  get canvas(): { readonly columns: number; readonly rows: number } | undefined {
    if (this.#json || this.#stderr.isTTY !== true || this.#steady) return undefined;
    return { columns: this.#stderr.columns || 80, rows: this.#stderr.rows || 24 };
  }

  /** Size of the terminal that results go to, where text can be put anywhere; undefined elsewhere. */
  get size(): { readonly columns: number; readonly rows: number } | undefined {
    if (!this.terminal || this.#steady) return undefined;
    return { columns: this.#stdout.columns || 80, rows: this.#stdout.rows || 24 };
  }

  /** Writes to the terminal that results go to, with sequences that place it. */
  overlay(text: string | Uint8Array): void {
    this.#stdout.write(text);
  }

  /** Draws remarks over the last `over` lines. Lines too long are cut by the terminal instead of wrapped. */
  draw(lines: readonly string[], over: number): void {
    this.#clearWait();
    const up = over === 0 ? "" : `\x1b[${over}A`;
    this.#stderr.write(`\x1b[?7l\r${up}${lines.map((line) => `${line}\x1b[K\n`).join("")}\x1b[J\x1b[?7h`);
  }

  /** A line of the result. The caller cleans what came from a sandbox. */
  print(line = ""): void {
    this.#clearWait();
    this.#stdout.write(`${line}\n`);
  }

  /** A remark beside the result; with --json remarks are left out. */
  say(line: string): void {
    if (this.#json) return;
    this.#clearWait();
    this.#stderr.write(`${line}\n`);
  }

  /** A remark that matters even with --json. */
  warn(line: string): void {
    this.#clearWait();
    this.#stderr.write(`${this.#paint(this.#errorColours, "yellow", line)}\n`);
  }

  json(value: unknown): void {
    this.#stdout.write(`${cleanJson(value, this.terminal ? 2 : undefined)}\n`);
  }

  /** One value of a stream of them. */
  jsonLine(value: unknown): void {
    this.#stdout.write(`${cleanJson(value)}\n`);
  }

  table<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): void {
    const [title = "", ...lines] = table(rows, columns, { columns: this.columns });
    this.print(this.paint("dim", title));
    for (const line of lines) this.print(line);
  }

  fields(pairs: readonly (readonly [name: string, value: string])[]): void {
    for (const line of fields(pairs)) this.print(line);
  }

  paint(colour: Colour, text: string): string {
    return this.#paint(this.#colours, colour, text);
  }

  /** The same for remarks. */
  paintRemark(colour: Colour, text: string): string {
    return this.#paint(this.#errorColours, colour, text);
  }

  error(error: { readonly code: string; readonly message: string; readonly remedy: string }): void {
    if (this.#json) {
      this.json({ error: { code: error.code, message: error.message, remedy: error.remedy } });
      return;
    }
    const message = error.message.startsWith("viv ") ? error.message.slice(4) : error.message;
    this.#stderr.write(`${this.#paint(this.#errorColours, "red", "viv:")} ${clean(message)}\n`);
    if (error.remedy) this.#stderr.write(`     ${this.#paint(this.#errorColours, "dim", `${clean(error.remedy)} [${error.code}]`)}\n`);
  }

  /** Says what goes on while something takes longer than a second: a spinner on a terminal, one line elsewhere. */
  async during<Result>(what: string, work: Promise<Result>): Promise<Result> {
    if (this.#json) return work;
    const spinning = this.#stderr.isTTY === true && !this.#steady;
    const started = performance.now();
    let frame = 0;
    const tick = (): void => {
      const seconds = Math.floor((performance.now() - started) / 1000);
      this.#waits = spinning;
      if (spinning) this.#stderr.write(`\r${FRAMES[frame++ % FRAMES.length] ?? ""} ${what} (${seconds} s)\x1b[K`);
      else if (frame++ === 0) this.#stderr.write(`${what} ...\n`);
    };
    let repeat: NodeJS.Timeout | undefined;
    const first = setTimeout(() => {
      tick();
      if (spinning) repeat = setInterval(tick, FRAME_MS);
    }, SAY_AFTER_MS);
    try {
      return await work;
    } finally {
      clearTimeout(first);
      clearInterval(repeat);
      this.#clearWait();
    }
  }

  /** What is written next gets a line of its own. */
  #clearWait(): void {
    if (this.#waits) this.#stderr.write("\r\x1b[K");
    this.#waits = false;
  }

  #paint(on: boolean, colour: Colour, text: string): string {
    if (!on || text === "") return text;
    const [start, end] = CODES[colour];
    return `\x1b[${start}m${text}\x1b[${end}m`;
  }
}
