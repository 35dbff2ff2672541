/** Lines that are drawn over in place while something goes on, where the terminal can do that. */
import { FRAMES, type Screen } from "./screen.ts";

const REDRAW_MS = 100;
/** Room left for the prompt line and what was said above. */
const SPARE_ROWS = 2;
/** The mark before lines that were still moving when the drawing ended. */
const STILL = "·";

export class LiveLines {
  readonly #screen: Screen;
  /** The lines as they are now; the frame stands before what moves. */
  readonly #render: (frame: string) => readonly string[];
  readonly #timer: NodeJS.Timeout | undefined;
  #drawn = 0;
  /** Remarks that wait while another writer has the terminal; undefined while none has. */
  #unsaid: string[] | undefined;
  /** How the drawing ends once the terminal is free again. */
  #ending: { readonly keep: boolean } | undefined;
  #frame = 0;
  #ended = false;

  constructor(screen: Screen, render: (frame: string) => readonly string[]) {
    this.#screen = screen;
    this.#render = render;
    if (screen.canvas !== undefined) this.#timer = setInterval(() => this.redraw(), REDRAW_MS);
  }

  redraw(): void {
    this.#draw(FRAMES[this.#frame++ % FRAMES.length] ?? "");
  }

  #draw(frame: string): void {
    const { canvas } = this.#screen;
    if (canvas === undefined || this.#ended || this.#unsaid !== undefined) return;
    const lines = this.#render(frame);
    const room = Math.max(1, canvas.rows - SPARE_ROWS);
    const shown = lines.length <= room ? lines : [...lines.slice(0, room - 1), `  and ${lines.length - room + 1} more`];
    this.#screen.draw(shown, this.#drawn);
    this.#drawn = shown.length;
  }

  /** A remark above the lines. */
  say(line: string): void {
    if (this.#unsaid !== undefined) return void this.#unsaid.push(line);
    if (this.#drawn > 0) this.#screen.draw([], this.#drawn);
    this.#drawn = 0;
    this.#screen.say(line);
    this.redraw();
  }

  /** Leaves the terminal to something else. */
  hold(): void {
    this.#unsaid ??= [];
  }

  release(): void {
    const unsaid = this.#unsaid ?? [];
    this.#unsaid = undefined;
    for (const line of unsaid) this.say(line);
    if (this.#ending !== undefined) this.end(this.#ending);
    else this.redraw();
  }

  /** Ends the drawing; the lines are cleared, or stay as they were last. */
  end(options: { readonly keep: boolean }): void {
    clearInterval(this.#timer);
    if (this.#unsaid !== undefined) {
      this.#ending = options;
      return;
    }
    if (options.keep) this.#draw(STILL);
    else if (this.#drawn > 0) this.#screen.draw([], this.#drawn);
    this.#drawn = 0;
    this.#ended = true;
  }
}
