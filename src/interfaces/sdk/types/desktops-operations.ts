// Made from the contracts by scripts/sdk-types.ts.

/** Input of: Start the desktop of a sandbox; one that runs stays as it is. */
export interface OpenDesktopInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Pixels. */
  width?: number | undefined;
  /** Pixels. */
  height?: number | undefined;
  /** Open Chromium with this address; empty for an empty page. */
  browser?: string | undefined;
}

/** A screen that runs. */
export interface OpenDesktopOutput {
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

/** Input of: The desktop of a sandbox. */
export interface InspectDesktopInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** A screen that runs. */
export interface InspectDesktopOutput {
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
  actions: ({
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
    /** A part of the screen; all of it if left out. */
    area?: {
      /** Pixels from the left. */
      x: number;
      /** Pixels from the top. */
      y: number;
      width: number;
      height: number;
    } | undefined;
    /** How long at most. */
    timeoutMs?: number | undefined;
  })[];
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
  windows: ({
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
  })[];
  /** Where the pointer is. */
  cursor: {
    x: number;
    y: number;
  };
}
