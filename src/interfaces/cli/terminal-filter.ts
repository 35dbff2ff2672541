/**
 * Makes recorded output harmless before it reaches a terminal: colours, tabs and line ends pass; everything
 * that moves the cursor, sets titles, reads the screen or fills the clipboard is dropped.
 */
import { Transform, type Writable } from "node:stream";

const ESC = 0x1b;
/** First byte of the UTF-8 form of C1 controls, which some terminals obey as if they were escape sequences. */
const C1_LEAD = 0xc2;
type State = "text" | "c1" | "escape" | "csi" | "string" | "string-escape";

export class TerminalFilter {
  #state: State = "text";
  #sequence: number[] = [];

  pass(chunk: Uint8Array): Buffer {
    const passed: number[] = [];
    for (const byte of chunk) this.#next(byte, passed);
    return Buffer.from(passed);
  }

  #next(byte: number, passed: number[]): void {
    switch (this.#state) {
      case "text":
        if (byte === ESC) this.#state = "escape";
        else if (byte === C1_LEAD) this.#state = "c1";
        else if (byte >= 0x20 ? byte !== 0x7f : byte === 0x09 || byte === 0x0a || byte === 0x0d) passed.push(byte);
        return;
      case "c1":
        this.#state = "text";
        if (byte >= 0xa0 && byte <= 0xbf) passed.push(C1_LEAD, byte);
        else if (byte < 0x80) this.#next(byte, passed);
        return;
      case "escape":
        // CSI goes on with parameters; OSC, DCS, SOS, PM and APC with a string; all else is one byte more.
        if (byte === 0x5b) [this.#state, this.#sequence] = ["csi", []];
        else if ([0x5d, 0x50, 0x58, 0x5e, 0x5f].includes(byte)) this.#state = "string";
        else if (byte !== ESC) this.#state = "text";
        return;
      case "csi":
        this.#sequence.push(byte);
        if (byte >= 0x40 && byte <= 0x7e) this.#endCsi(byte, passed);
        else if (byte < 0x20 || byte > 0x7e || this.#sequence.length > 64) this.#state = "text";
        return;
      case "string":
        if (byte === 0x07) this.#state = "text";
        else if (byte === ESC) this.#state = "string-escape";
        return;
      case "string-escape":
        this.#state = byte === 0x5c ? "text" : "string";
    }
  }

  #endCsi(final: number, passed: number[]): void {
    this.#state = "text";
    const isColour = final === 0x6d && this.#sequence.slice(0, -1).every((each) => each >= 0x30 && each <= 0x3b);
    if (isColour) passed.push(ESC, 0x5b, ...this.#sequence);
  }

  /** The stream itself where it is no terminal. */
  static before(target: Writable & { readonly isTTY?: boolean }): Writable {
    if (target.isTTY !== true) return target;
    const filter = new TerminalFilter();
    const transform = new Transform({ transform: (chunk: Buffer, _encoding, done) => done(null, filter.pass(chunk)) });
    transform.pipe(target, { end: false });
    return transform;
  }
}
