/** The desktop of a sandbox: what it shows, and what a program does there. */
import { readBytes } from "../client/transport.ts";
import { refuseUnknown, type CallOptions, type Connection } from "./connection.ts";
import "./dispose.ts";
import { VivariumError } from "./error.ts";
import type { ListWindowsOutput, OpenDesktopInput, UseDesktopOutput } from "./types/desktops-operations.ts";
import type { DesktopAction, DesktopArea, DesktopInfo, DesktopWindow } from "./types/desktops.ts";

/** How a desktop begins; one that runs gets the size, if one is given. */
export interface DesktopOptions extends Omit<OpenDesktopInput, "sandbox">, CallOptions {}

export interface ClickOptions extends CallOptions {
  /** The left one if left out. */
  readonly button?: "left" | "middle" | "right" | undefined;
  /** 2 is a double click. */
  readonly count?: number | undefined;
}

export interface ScrollOptions extends CallOptions {
  /** Steps down; negative is up. */
  readonly down?: number | undefined;
  /** Steps to the right; negative is left. */
  readonly right?: number | undefined;
  /** Where the wheel is turned; where the pointer is if left out. */
  readonly at?: Point | undefined;
}

export interface ChangeOptions extends CallOptions {
  /** A part of the screen; all of it if left out. */
  readonly area?: DesktopArea | undefined;
  /** How long at most; ten seconds if left out. */
  readonly timeoutMs?: number | undefined;
}

/** A place on the screen, in pixels from the left and from the top. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

/** The screen of a sandbox. Calls that act reject with `desktop_taken` while a person has taken over; calls that look go on. */
export class Desktop {
  /** As it was when it was opened. */
  readonly info: DesktopInfo;
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection, info: DesktopInfo) {
    this.#connection = connection;
    this.info = info;
  }

  /** What it shows now, as a PNG file. */
  async screenshot(options: CallOptions = {}): Promise<Uint8Array> {
    refuseUnknown("desktop.screenshot", options, ["signal"]);
    const { signal } = options;
    return this.#connection.use(async (client) => readBytes(await client.screenshot(this.info.sandbox, signal)), signal);
  }

  /** Moves the pointer. */
  async move(to: Point, options: CallOptions = {}): Promise<void> {
    await this.do([{ do: "move", ...to }], options);
  }

  /** Clicks at a place, or where the pointer is. */
  async click(at?: Point, options: ClickOptions = {}): Promise<void> {
    const { signal, ...rest } = options;
    await this.do([{ do: "click", ...at, ...rest }], { signal });
  }

  /** Clicks twice. */
  async doubleClick(at?: Point, options: CallOptions = {}): Promise<void> {
    await this.do([{ do: "click", ...at, count: 2 }], options);
  }

  /** Presses a button at one place and lets it go at another. */
  async drag(from: Point, to: Point, options: Omit<ClickOptions, "count"> = {}): Promise<void> {
    const { signal, ...rest } = options;
    await this.do([{ do: "drag", ...from, toX: to.x, toY: to.y, ...rest }], { signal });
  }

  /** Turns the wheel. */
  async scroll(options: ScrollOptions): Promise<void> {
    const { signal, at, ...rest } = options;
    await this.do([{ do: "scroll", ...at, ...rest }], { signal });
  }

  /** Types a text, with any characters of Unicode. */
  async type(text: string, options: CallOptions = {}): Promise<void> {
    await this.do([{ do: "type", text }], options);
  }

  /** Presses keys together, such as ctrl+shift+t, Return or F5. */
  async key(keys: string, options: CallOptions = {}): Promise<void> {
    await this.do([{ do: "key", keys }], options);
  }

  /** Waits until the screen changes; false where it did not in time. */
  async waitForChange(options: ChangeOptions = {}): Promise<boolean> {
    const { signal, ...rest } = options;
    return (await this.do([{ do: "wait", ...rest }], { signal })).changed[0] ?? false;
  }

  /** Several actions in one call, in order: nothing comes between them. */
  async do(actions: readonly DesktopAction[], options: CallOptions = {}): Promise<UseDesktopOutput> {
    refuseUnknown("desktop.do", options, ["signal"]);
    return this.#connection.call("useDesktop", { sandbox: this.info.sandbox, actions: [...actions] }, options.signal);
  }

  /** Its windows. */
  async windows(options: CallOptions = {}): Promise<DesktopWindow[]> {
    return (await this.#look(options)).windows;
  }

  /** Where the pointer is. */
  async cursor(options: CallOptions = {}): Promise<Point> {
    return (await this.#look(options)).cursor;
  }

  /** Ends it, with its windows. */
  async close(options: CallOptions = {}): Promise<void> {
    const { signal, ...rest } = options;
    await this.#connection.call("closeDesktop", { sandbox: this.info.sandbox, ...rest }, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.close();
    } catch (error) {
      // It ended with its sandbox, or was closed already.
      if (!(error instanceof VivariumError) || !["not_found", "not_running"].includes(error.code)) throw error;
    }
  }

  #look({ signal, ...rest }: CallOptions): Promise<ListWindowsOutput> {
    return this.#connection.call("listWindows", { sandbox: this.info.sandbox, ...rest }, signal);
  }
}
