/** The programs that a desktop is made of. They are the machine's own, as everything inside. */
import { DESKTOP_DISPLAY } from "../../base/schema/desktop.ts";
import { VivError } from "../../base/schema/errors.ts";

/** On the sandbox's disk, and the user's alone. */
export const SCREEN_SOCKET = "/tmp/.viv-desktop.sock";

/** Where programs inside speak to it. */
export const WINDOWS_SOCKET = `/tmp/.X11-unix/X${DESKTOP_DISPLAY.slice(1)}`;

/** Which Debian package has each program. */
const PACKAGES: Readonly<Record<string, string>> = {
  Xvnc: "tigervnc-standalone-server",
  openbox: "openbox",
  chromium: "chromium",
};

/** What a desktop can't be without. */
export const NEEDED = ["Xvnc", "openbox"];

export function missingPrograms(missing: readonly string[]): VivError {
  const packages = missing.map((program) => PACKAGES[program] ?? program);
  return new VivError("desktop_missing", `This machine has no ${missing.join(", ")}, which a desktop needs.`, {
    remedy: `Run \`apt install ${packages.join(" ")}\` on the machine, then try again.`,
  });
}

/** Without a listener on the network, and without GLX, which takes 50 MB and half of its start. */
export function screen(width: number, height: number): string[] {
  // A sandbox may be paused for hours in the middle of a picture: no time limits.
  const options = `-geometry ${width}x${height} -depth 24 -rfbunixpath ${SCREEN_SOCKET} -rfbunixmode 0600 -rfbport -1 -SecurityTypes None
    -nolisten tcp -nolisten local -AlwaysShared -noreset -extension GLX -IdleTimeout 0 -MaxDisconnectionTime 0 -MaxIdleTime 0`;
  return ["Xvnc", DESKTOP_DISPLAY, ...options.split(/\s+/)];
}

/** A calm background, and the window manager in the place of the shell. */
export const WINDOW_MANAGER = ["/bin/sh", "-c", "xsetroot -solid '#2b3038' 2>/dev/null; exec openbox"];

/** Its own sandbox needs what a sandbox does not give, and the walls stand around it anyway. */
export function browser(address: string): string[] {
  return [
    "chromium",
    "--no-sandbox",
    "--test-type",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--password-store=basic",
    "--user-data-dir=/tmp/.viv-browser",
    "--start-maximized",
    // What follows is an address, whatever it begins with.
    "--",
    address === "" ? "about:blank" : address,
  ];
}
