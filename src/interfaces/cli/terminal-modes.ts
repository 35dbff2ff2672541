/**
 * What a program has set on the terminal, read from its output, so that it can be set again after something else was shown there. Nothing
 * that must be safe goes by it: a program that deceives it spoils its own screen.
 */
const ESC = 0x1b;
const BEL = 0x07;
const BACKSLASH = 0x5c;
const CANCELS: ReadonlySet<number> = new Set([0x18, 0x1a]);
/** After ESC: OSC, DCS, SOS, PM and APC go on until a terminator. */
const STRINGS: ReadonlySet<number> = new Set([0x5d, 0x50, 0x58, 0x5e, 0x5f]);
const CSI = 0x5b;
const OSC = 0x5d;
const RESET = 0x63;
/** A longer sequence is not written again: its rest would show as text. */
const MOST_PENDING = 4096;

/** Modes that a page changes, and to what. */
const PAGE_MODES: Readonly<Record<string, boolean>> = { "4": false, "?5": false, "?6": false, "?7": true, "?25": true, "?69": false };
const ALTERNATE: ReadonlySet<string> = new Set(["?47", "?1047", "?1049"]);

export class TerminalModes {
  #sequence: number[] = [];
  #modes = new Map<string, boolean>();
  #margins = "";
  #alternate = false;

  /** Whether the program draws on the screen that is put back when it ends. */
  get alternate(): boolean {
    return this.#alternate;
  }

  /** What has begun and not ended yet: the terminal forgets it when something else is shown. */
  get pending(): Buffer {
    return this.#sequence.length > MOST_PENDING ? Buffer.alloc(0) : Buffer.from(this.#sequence);
  }

  /** Sets the modes that a page has changed as the program had set them. */
  get restored(): string {
    const modes = [...this.#modes].filter(([mode, on]) => PAGE_MODES[mode] !== on).map(([mode, on]) => `\x1b[${mode}${on ? "h" : "l"}`);
    return `${this.#margins}${modes.join("")}`;
  }

  note(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; at += 1) {
      if (this.#sequence.length === 0) at = chunk.indexOf(ESC, at);
      if (at < 0) return;
      this.#next(chunk[at] ?? 0);
    }
  }

  #next(byte: number): void {
    const sequence = this.#sequence;
    const [, kind] = sequence;
    if (CANCELS.has(byte)) this.#sequence = [];
    // An escape in the middle begins anew; in a string it may be the first half of its end.
    else if (byte === ESC && !STRINGS.has(kind ?? 0)) this.#sequence = [ESC];
    else if (kind !== undefined && STRINGS.has(kind)) this.#inString(byte, kind);
    else {
      if (sequence.length <= MOST_PENDING) sequence.push(byte);
      if (sequence.length > 1 && isEnd(byte, kind)) this.#end(kind ?? byte);
    }
  }

  #inString(byte: number, kind: number): void {
    const isClosing = this.#sequence.at(-1) === ESC;
    if ((isClosing && byte === BACKSLASH) || (kind === OSC && byte === BEL)) this.#sequence = [];
    else if (isClosing && byte !== ESC) this.#sequence = [ESC, byte];
    else if (this.#sequence.length <= MOST_PENDING || byte === ESC) this.#sequence.push(byte);
  }

  #end(kind: number): void {
    const text = String.fromCharCode(...this.#sequence.slice(2));
    this.#sequence = [];
    if (kind === RESET) {
      this.#modes.clear();
      this.#margins = "";
      this.#alternate = false;
    }
    if (kind !== CSI) return;
    const [, set, numbers = "", final] = /^(\??)([\d;]*)([hlr])$/.exec(text) ?? [];
    if (final === "r" && set === "") this.#margins = numbers === "" ? "" : `\x1b[${numbers}r`;
    else if (final === "h" || final === "l") for (const number of numbers.split(";")) this.#mode(`${set}${number}`, final === "h");
  }

  #mode(mode: string, on: boolean): void {
    if (ALTERNATE.has(mode)) this.#alternate = on;
    if (Object.hasOwn(PAGE_MODES, mode)) this.#modes.set(mode, on);
  }
}

/** Whether a byte ends what began so. CSI has its own letter before it is over; others have bytes between only. */
function isEnd(byte: number, kind: number | undefined): boolean {
  if (kind === undefined) return byte !== CSI && !STRINGS.has(byte) && byte >= 0x30;
  return kind === CSI ? byte >= 0x40 && byte <= 0x7e : byte >= 0x30;
}
