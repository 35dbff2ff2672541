// Made from the contracts by scripts/sdk-types.ts.

/** One thing done at the screen. */
export type DesktopAction = {
  do: "move";
  /** Pixels from the left. */
  x: number;
  /** Pixels from the top. */
  y: number;
} | {
  do: "click";
  /** Pixels from the left. */
  x?: number | undefined;
  /** Pixels from the top. */
  y?: number | undefined;
  /** Which button. */
  button?: "left" | "middle" | "right" | undefined;
  /** 2 is a double click. */
  count?: number | undefined;
} | {
  do: "drag";
  /** Pixels from the left. */
  x: number;
  /** Pixels from the top. */
  y: number;
  /** Pixels from the left. */
  toX: number;
  /** Pixels from the top. */
  toY: number;
  button?: "left" | "middle" | "right" | undefined;
} | {
  do: "scroll";
  /** Pixels from the left. */
  x?: number | undefined;
  /** Pixels from the top. */
  y?: number | undefined;
  /** Steps down; negative is up. */
  down?: number | undefined;
  /** Steps to the right; negative is left. */
  right?: number | undefined;
} | {
  do: "type";
  /** Any characters of Unicode. */
  text: string;
} | {
  do: "key";
  /** Keys held together, such as ctrl+shift+t, Return or F5. */
  keys: string;
} | {
  do: "wait";
  area?: DesktopArea | undefined;
  /** How long at most. */
  timeoutMs?: number | undefined;
};

/** A window on the screen. */
export interface DesktopWindow {
  /** As xdotool names it. */
  id: string;
  /** Title, shortened. */
  title: string;
  /** Pixels from the left. */
  x: number;
  /** Pixels from the top. */
  y: number;
  /** Pixels. */
  width: number;
  /** Pixels. */
  height: number;
  /** Whether it has the keyboard. */
  active: boolean;
}

/** A screen that runs. */
export interface DesktopInfo {
  /** Id of its sandbox. */
  sandbox: string;
  /** Value of DISPLAY inside. */
  display: string;
  /** Pixels. */
  width: number;
  /** Pixels. */
  height: number;
  /** Whether a person has keys and pointer now: programs then only look. */
  taken: boolean;
  /** Pages that show it now. */
  viewers: number;
}

/** A part of the screen; all of it if left out. */
export interface DesktopArea {
  /** Pixels from the left. */
  x: number;
  /** Pixels from the top. */
  y: number;
  width: number;
  height: number;
}
