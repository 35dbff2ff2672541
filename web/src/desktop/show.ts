/** Draws the screen of a sandbox into an element, by noVNC. What comes from the screen is hostile: pixels, and a text that is shown as text. */
import RFB from "@novnc/novnc";
import type { DesktopHolder } from "../../../src/base/schema/desktop.ts";
import { call, screen } from "../server/client.ts";
import { ScreenChannel } from "./screen-channel.ts";

/** A connection that this page had may count for a moment longer. */
const LOOKS = 4;
const LOOK_AGAIN_MS = 300;
/** What is shown of a text that was copied inside; a longer one would make the page slow. */
const MOST_CLIPBOARD_CHARACTERS = 100_000;

export type Connection = { readonly kind: "connecting" } | { readonly kind: "shown" } | { readonly kind: "ended"; readonly why: string };

/** What the page hears. */
interface Hears {
  readonly connection: (connection: Connection) => void;
  readonly holder: (holder: DesktopHolder) => void;
  /** A text that a program inside has copied. */
  readonly copied: (text: string) => void;
}

export interface Shown {
  /** Puts a text into the clipboard inside. */
  readonly paste: (text: string) => void;
  /** Whether the screen takes the size of its place in the page, as long as this page has control. */
  readonly fit: (on: boolean) => void;
  readonly focus: () => void;
  readonly close: () => void;
}

/** Whether no person has control. A page that comes back does not take it from another one. */
async function isFree(sandbox: string): Promise<boolean> {
  for (let look = 0; look < LOOKS; look += 1) {
    if (!(await call("inspectDesktop", { sandbox })).taken) return true;
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
  return false;
}

export function show(place: HTMLElement, sandbox: string, control: "none" | "take" | "if-free", hears: Hears): Shown {
  let rfb: RFB | undefined;
  let closed = false;
  let fits = false;
  const work = async (): Promise<void> => {
    const takes = control === "take" || (control === "if-free" && (await isFree(sandbox)));
    if (closed) return;
    const channel = await screen(sandbox, takes);
    if (closed) return channel.close();
    const made = new RFB(place, new ScreenChannel(channel, told), { shared: true });
    rfb = made;
    made.viewOnly = !takes;
    made.scaleViewport = true;
    made.background = "transparent";
    made.resizeSession = fits;
    made.addEventListener("connect", () => {
      hears.connection({ kind: "shown" });
      if (takes) made.focus();
    });
    made.addEventListener("clipboard", (event) => hears.copied(event.detail.text.slice(0, MOST_CLIPBOARD_CHARACTERS)));
    made.addEventListener("disconnect", () => {
      rfb = undefined;
      if (!closed) hears.connection({ kind: "ended", why: "The connection to the screen has ended." });
    });
  };
  const told = (holder: DesktopHolder): void => {
    if (closed) return;
    // The server drops what this page would send; here it is not sent.
    if (rfb !== undefined && holder !== "you") rfb.viewOnly = true;
    hears.holder(holder);
  };
  work().catch((error: unknown) => {
    if (!closed) hears.connection({ kind: "ended", why: error instanceof Error ? error.message : String(error) });
  });
  return {
    paste: (text) => rfb?.clipboardPasteFrom(text),
    fit: (on) => {
      fits = on;
      if (rfb !== undefined) rfb.resizeSession = on;
    },
    focus: () => rfb?.focus(),
    close: () => {
      closed = true;
      rfb?.disconnect();
    },
  };
}
