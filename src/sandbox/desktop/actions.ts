/** What is done at the screen, as keys and pointer movements. */
import { setTimeout as delay } from "node:timers/promises";
import type { DesktopAction } from "../../base/schema/desktop.ts";
import { keysOfChord, keysOfText } from "./keysyms.ts";
import type { Rfb } from "./rfb.ts";

const BUTTONS = { left: 1, middle: 2, right: 4 } as const;
const WHEEL = { up: 8, down: 16, left: 32, right: 64 } as const;
/** Between press and release: a window manager holds the pointer for a moment when a click reaches another window. */
const BUTTON_MS = 15;
/** Between the steps of a drag: programs look at how a pointer moves. */
const DRAG_STEPS = 10;
const DRAG_STEP_MS = 10;
/** A key that is not on the keyboard is put there first, and programs need a moment to notice. */
const NEW_KEY_MS = 25;
const UNICODE = 0x01000000;

export class Hands {
  readonly #rfb: Rfb;
  #x: number;
  #y: number;

  constructor(rfb: Rfb) {
    this.#rfb = rfb;
    this.#x = Math.floor(rfb.width / 2);
    this.#y = Math.floor(rfb.height / 2);
  }

  /** For a wait: whether the screen changed in time. */
  async act(action: DesktopAction, signal: AbortSignal): Promise<boolean | undefined> {
    switch (action.do) {
      case "move":
        this.#move(action.x, action.y);
        return undefined;
      case "click":
        await this.#click(action, signal);
        return undefined;
      case "drag":
        await this.#drag(action, signal);
        return undefined;
      case "scroll":
        await this.#scroll(action, signal);
        return undefined;
      case "type":
        await this.#type(action.text, signal);
        return undefined;
      case "key":
        this.#chord(action.keys);
        return undefined;
      case "wait":
        return this.#wait(action, signal);
    }
  }

  #move(x = this.#x, y = this.#y, buttons = 0): void {
    this.#x = x;
    this.#y = y;
    this.#rfb.pointer(x, y, buttons);
  }

  async #press(button: number, signal: AbortSignal): Promise<void> {
    this.#move(this.#x, this.#y, button);
    await delay(BUTTON_MS);
    this.#move();
    await delay(BUTTON_MS, undefined, { signal });
  }

  async #click({ x, y, button, count }: Extract<DesktopAction, { do: "click" }>, signal: AbortSignal): Promise<void> {
    this.#move(x, y);
    for (let at = 0; at < count; at++) await this.#press(BUTTONS[button], signal);
  }

  async #drag({ x, y, toX, toY, button }: Extract<DesktopAction, { do: "drag" }>, signal: AbortSignal): Promise<void> {
    this.#move(x, y);
    try {
      for (let step = 0; step <= DRAG_STEPS; step++) {
        const along = (from: number, to: number): number => Math.round(from + ((to - from) * step) / DRAG_STEPS);
        this.#move(along(x, toX), along(y, toY), BUTTONS[button]);
        await delay(DRAG_STEP_MS, undefined, { signal });
      }
    } finally {
      this.#move();
    }
  }

  async #scroll({ x, y, down, right }: Extract<DesktopAction, { do: "scroll" }>, signal: AbortSignal): Promise<void> {
    this.#move(x, y);
    for (let step = 0; step < Math.abs(down); step++) await this.#press(down > 0 ? WHEEL.down : WHEEL.up, signal);
    for (let step = 0; step < Math.abs(right); step++) await this.#press(right > 0 ? WHEEL.right : WHEEL.left, signal);
  }

  async #type(text: string, signal: AbortSignal): Promise<void> {
    for (const key of keysOfText(text)) {
      this.#rfb.key(key, true);
      this.#rfb.key(key, false);
      if (key >= UNICODE) await delay(NEW_KEY_MS, undefined, { signal });
    }
  }

  #chord(chord: string): void {
    const keys = keysOfChord(chord);
    for (const key of keys) this.#rfb.key(key, true);
    for (const key of keys.toReversed()) this.#rfb.key(key, false);
  }

  async #wait({ area, timeoutMs }: Extract<DesktopAction, { do: "wait" }>, signal: AbortSignal): Promise<boolean> {
    const { width, height } = this.#rfb;
    const whole = { x: 0, y: 0, width, height };
    return this.#rfb.change(area ?? whole, timeoutMs, signal);
  }
}
