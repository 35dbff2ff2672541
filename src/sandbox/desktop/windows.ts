/** The windows of a desktop. Their titles come from programs inside: they are text, shortened. */
import type { DesktopWindow } from "../../base/schema/desktop.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { X11 } from "./x11.ts";

const MOST_TITLE_BYTES = 400;

function numbers(data: Buffer): number[] {
  return Array.from({ length: Math.floor(data.length / 4) }, (_, at) => data.readUInt32LE(at * 4));
}

/** Those that the window manager knows, the newest last, and where the pointer is. */
export async function listWindows(x11: X11): Promise<{ windows: DesktopWindow[]; cursor: { x: number; y: number } }> {
  const known = numbers(await x11.property(x11.root, await x11.atom("_NET_CLIENT_LIST"), LIMITS.maxListedWindows * 4));
  const [active] = numbers(await x11.property(x11.root, await x11.atom("_NET_ACTIVE_WINDOW"), 4));
  const titles = [await x11.atom("_NET_WM_NAME"), await x11.atom("WM_NAME")];
  const windows: DesktopWindow[] = [];
  for (const window of known) {
    const place = await x11.geometry(window);
    // It may have gone meanwhile.
    if (place === undefined) continue;
    windows.push({ id: String(window), title: await titleOf(x11, window, titles), ...place, active: window === active });
  }
  return { windows, cursor: await x11.pointer() };
}

/** Windows that come before it are not in front, and have no keyboard. */
export async function hasWindowManager(x11: X11): Promise<boolean> {
  return (await x11.property(x11.root, await x11.atom("_NET_SUPPORTING_WM_CHECK"), 4)).length > 0;
}

async function titleOf(x11: X11, window: number, properties: readonly number[]): Promise<string> {
  for (const property of properties) {
    const title = await x11.property(window, property, MOST_TITLE_BYTES);
    if (title.length > 0) return title.toString("utf8");
  }
  return "";
}
