/** The desktop of a sandbox: a screen with windows that people look at and programs use. */
import { z } from "zod";
import { contract, Done } from "./contract.ts";
import { SandboxRef } from "./ids.ts";
import { LIMITS } from "./limits.ts";
import { ROUTES } from "./routes.ts";

const ofSandbox = z.strictObject({ sandbox: SandboxRef });

/** Name of the service that the screen runs as. No service of a config can have it. */
export const DESKTOP_SERVICE = "viv:desktop";
/** What programs inside find it by. */
export const DESKTOP_DISPLAY = ":0";

const Coordinate = z.int().min(0).max(LIMITS.maxDesktopSide);
const x = Coordinate.describe("Pixels from the left.");
const y = Coordinate.describe("Pixels from the top.");
const Button = z.enum(["left", "middle", "right"]);
const here = { x: x.optional(), y: y.optional() };

const Area = z
  .strictObject({ x, y, width: z.int().min(1).max(LIMITS.maxDesktopSide), height: z.int().min(1).max(LIMITS.maxDesktopSide) })
  .describe("A part of the screen; all of it if left out.")
  .meta({ id: "DesktopArea" });

export const DesktopAction = z
  .discriminatedUnion("do", [
    z.strictObject({ do: z.literal("move"), x, y }).describe("Move the pointer."),
    z
      .strictObject({
        do: z.literal("click"),
        ...here,
        button: Button.default("left").describe("Which button."),
        count: z.int().min(1).max(3).default(1).describe("2 is a double click."),
      })
      .describe("Click where the pointer is, or at a place."),
    z.strictObject({ do: z.literal("drag"), x, y, toX: x, toY: y, button: Button.default("left") }).describe("Press, move and let go."),
    z
      .strictObject({
        do: z.literal("scroll"),
        ...here,
        down: z.int().min(-100).max(100).default(0).describe("Steps down; negative is up."),
        right: z.int().min(-100).max(100).default(0).describe("Steps to the right; negative is left."),
      })
      .describe("Turn the wheel."),
    z
      .strictObject({ do: z.literal("type"), text: z.string().max(LIMITS.maxTypedCharacters).describe("Any characters of Unicode.") })
      .describe("Type a text."),
    z
      .strictObject({
        do: z.literal("key"),
        keys: z.string().min(1).max(100).describe("Keys held together, such as ctrl+shift+t, Return or F5."),
      })
      .describe("Press keys."),
    z
      .strictObject({
        do: z.literal("wait"),
        area: Area.optional(),
        timeoutMs: z.int().min(1).max(LIMITS.maxDesktopWaitMs).default(LIMITS.defaultDesktopWaitMs).describe("How long at most."),
      })
      .describe("Wait until the screen changes."),
  ])
  .describe("One thing done at the screen.")
  .meta({ id: "DesktopAction" });
export type DesktopAction = z.infer<typeof DesktopAction>;

export const Desktop = z
  .object({
    sandbox: z.string().describe("Id of its sandbox."),
    display: z.string().describe("Value of DISPLAY inside."),
    width: z.number().int().describe("Pixels."),
    height: z.number().int().describe("Pixels."),
    /** A person at the page; others then only look. */
    taken: z.boolean().describe("Whether a person has keys and pointer now: programs then only look."),
    viewers: z.number().int().describe("Pages that show it now."),
  })
  .describe("A screen that runs.")
  .meta({ id: "Desktop" });
export type Desktop = z.infer<typeof Desktop>;

/** Who has keys and pointer, as one viewer sees it. */
export const DesktopHolder = z
  .enum(["you", "person", "programs"])
  .describe("Who has keys and pointer: this viewer, another person, or programs.")
  .meta({ id: "DesktopHolder" });
export type DesktopHolder = z.infer<typeof DesktopHolder>;

export const DesktopWindow = z
  .object({
    id: z.string().describe("As xdotool names it."),
    title: z.string().describe("Title, shortened."),
    x: z.number().int().describe("Pixels from the left."),
    y: z.number().int().describe("Pixels from the top."),
    width: z.number().int().describe("Pixels."),
    height: z.number().int().describe("Pixels."),
    active: z.boolean().describe("Whether it has the keyboard."),
  })
  .describe("A window on the screen.")
  .meta({ id: "DesktopWindow" });
export type DesktopWindow = z.infer<typeof DesktopWindow>;

const Side = z.int().min(200).max(LIMITS.maxDesktopSide);

/** Of a desktop for which no size is given. */
export const DESKTOP_SIZE = { width: 1280, height: 800 } as const;

export const DESKTOP_CONTRACTS = {
  openDesktop: contract(
    ROUTES.openDesktop,
    "Start the desktop of a sandbox, or give one that runs another size",
    ofSandbox.extend({
      width: Side.optional().describe(
        `Pixels; without it, a new desktop has ${DESKTOP_SIZE.width}, and one that runs stays as wide as it is.`,
      ),
      height: Side.optional().describe(
        `Pixels; without it, a new desktop has ${DESKTOP_SIZE.height}, and one that runs stays as high as it is.`,
      ),
      browser: z.string().max(2048).optional().describe("Open Chromium with this address; empty for an empty page."),
    }),
    Desktop,
    201,
  ),
  inspectDesktop: contract(ROUTES.inspectDesktop, "The desktop of a sandbox", ofSandbox, Desktop),
  closeDesktop: contract(ROUTES.closeDesktop, "End the desktop of a sandbox, and its windows", ofSandbox, Done),
  useDesktop: contract(
    ROUTES.useDesktop,
    "Use pointer and keyboard, one action after the other",
    ofSandbox.extend({ actions: z.array(DesktopAction).min(1).max(LIMITS.maxDesktopActions).describe("What to do, in order.") }),
    z.object({
      width: z.number().int().describe("Of the screen, in pixels."),
      height: z.number().int().describe("Of the screen, in pixels."),
      changed: z.array(z.boolean()).describe("For each wait, in order, whether the screen changed in time."),
    }),
  ),
  listWindows: contract(
    ROUTES.listWindows,
    "Windows and pointer of a desktop",
    ofSandbox,
    z.object({
      windows: z.array(DesktopWindow),
      cursor: z.object({ x: z.number().int(), y: z.number().int() }).describe("Where the pointer is."),
    }),
  ),
};
