/** A command's output on its way to the terminal, which waits while something else is shown there. */
import { Writable } from "node:stream";
import { TerminalModes } from "./terminal-modes.ts";

/** How much output is kept here before the command itself has to wait. */
const WAITING_BYTES = 64 * 1024;

/** Keeps everything else off the terminal. */
export interface Stage {
  /** The terminal modes that the held output has set. */
  readonly modes?: TerminalModes;
  hold(): void;
  release(): void;
}

export class HeldOutput extends Writable implements Stage {
  readonly modes = new TerminalModes();
  readonly #target: Writable;
  readonly #redraw: () => void;
  #held = false;
  #next: (() => void) | undefined;

  /** `redraw` makes a program that has the whole screen draw it again. */
  constructor(target: Writable, redraw: () => void) {
    super({ highWaterMark: WAITING_BYTES });
    this.#target = target;
    this.#redraw = redraw;
  }

  hold(): void {
    this.#held = true;
  }

  release(): void {
    if (!this.#held) return;
    this.#held = false;
    if (this.modes.alternate) this.#redraw();
    this.#next?.();
    this.#next = undefined;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.#held) this.#next = () => this.#pass(chunk, done);
    else this.#pass(chunk, done);
  }

  #pass(chunk: Buffer, done: () => void): void {
    this.modes.note(chunk);
    if (this.#target.write(chunk)) done();
    else this.#target.once("drain", done);
  }
}
