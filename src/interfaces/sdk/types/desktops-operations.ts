// Made from the contracts by scripts/sdk-types.ts.
import type { DesktopAction, DesktopWindow } from "./desktops.ts";

/** Input of: Start the desktop of a sandbox, or give one that runs another size. */
export interface OpenDesktopInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Pixels; without it, a new desktop has 1280, and one that runs stays as wide as it is. */
  width?: number | undefined;
  /** Pixels; without it, a new desktop has 800, and one that runs stays as high as it is. */
  height?: number | undefined;
  /** Open Chromium with this address; empty for an empty page. */
  browser?: string | undefined;
}

/** Input of: The desktop of a sandbox. */
export interface InspectDesktopInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Input of: End the desktop of a sandbox, and its windows. */
export interface CloseDesktopInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Input of: Use pointer and keyboard, one action after the other. */
export interface UseDesktopInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** What to do, in order. */
  actions: DesktopAction[];
}

/** Answer of: Use pointer and keyboard, one action after the other. */
export interface UseDesktopOutput {
  /** Of the screen, in pixels. */
  width: number;
  /** Of the screen, in pixels. */
  height: number;
  /** For each wait, in order, whether the screen changed in time. */
  changed: boolean[];
}

/** Input of: Windows and pointer of a desktop. */
export interface ListWindowsInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Answer of: Windows and pointer of a desktop. */
export interface ListWindowsOutput {
  windows: DesktopWindow[];
  /** Where the pointer is. */
  cursor: {
    x: number;
    y: number;
  };
}
