import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import type { OutputOf } from "../../../base/schema/contracts.ts";
import type { Client } from "../../client/client.ts";
import { command } from "../command.ts";
import { ACTION_WORDS, desktopAction } from "../desktop-actions.ts";
import { definedOnly } from "../defined-only.ts";
import type { Screen } from "../screen.ts";
import { clean } from "../text.ts";
import { usageError } from "../values.ts";

function sizeOf(text: string | undefined): { width?: number; height?: number } {
  if (text === undefined) return {};
  const [, width, height] = /^(\d{3,4})x(\d{3,4})$/.exec(text) ?? [];
  if (width === undefined || height === undefined) throw usageError("--size takes two numbers such as 1280x800.");
  return { width: Number(width), height: Number(height) };
}

async function takeScreenshot(client: Client, sandbox: string, path: string): Promise<void> {
  const picture = await client.screenshot(sandbox);
  if (path === "-") await pipeline(picture, process.stdout, { end: false });
  else await pipeline(picture, createWriteStream(path));
}

function showWindows(screen: Screen, { windows, cursor }: OutputOf<"listWindows">): void {
  for (const { title, x, y, width, height, active } of windows)
    screen.print(`${active ? "*" : " "} ${width}x${height}+${x}+${y}  ${clean(title)}`);
  screen.print(`  pointer at ${cursor.x} ${cursor.y}`);
}

export default command({
  name: "desktop",
  summary: "Start the desktop of a sandbox, look at it and use it",
  details: `Programs that are started in the sandbox from then on show their windows there. Actions are ${ACTION_WORDS}; each is one argument. They are done in order, before the screenshot. While a person has taken over at the page, actions are refused.`,
  examples: [
    ["viv desktop try", "start it, or say that it runs"],
    ["viv desktop try --size 1600x900", "give it another size"],
    ["viv desktop try --browser", "with Chromium"],
    ["viv desktop try --browser http://localhost:3000", "with Chromium at an address inside"],
    ["viv desktop try 'click 200 120' 'type Hello' 'key Return' wait --screenshot now.png", "use it, and look"],
    ["viv desktop try --windows", "which windows there are"],
    ["viv desktop try --close", "end it"],
  ],
  options: {
    size: { type: "text", value: "WIDTHxHEIGHT", summary: "Size, also of one that runs; a new one has 1280x800 if left out" },
    browser: {
      type: "text",
      value: "ADDRESS",
      optional: /^[a-z][a-z0-9+.-]*:\S*$/i,
      summary: "Open Chromium, at this address such as http://localhost:3000 if one is given",
    },
    screenshot: { type: "text", value: "FILE", completes: "path", summary: "Write what it shows to a PNG file; - for standard output" },
    windows: { type: "flag", summary: "List its windows, and where the pointer is" },
    close: { type: "flag", summary: "End it, with its windows" },
  },
  positionals: [
    { name: "SANDBOX", summary: "Id or name", completes: "sandbox" },
    { name: "ACTION", summary: "What to do, such as 'click 200 120'", optional: true, rest: "values" },
  ],
  async run({ positionals: [sandbox = ""], rest, options, json, screen, client }) {
    const actions = rest.map((line) => desktopAction(line));
    const server = await client();
    if (options.close) {
      const answer = await server.call("closeDesktop", { sandbox });
      return json ? screen.json(answer) : screen.print("The desktop has ended.");
    }
    const how = { sandbox, ...sizeOf(options.size), ...definedOnly({ browser: options.browser }) };
    const desktop = await screen.during("Starting the desktop", server.call("openDesktop", how));
    const used = actions.length === 0 ? undefined : await server.call("useDesktop", { sandbox, actions });
    if (options.screenshot !== undefined) await takeScreenshot(server, sandbox, options.screenshot);
    const shown = options.windows ? await server.call("listWindows", { sandbox }) : undefined;
    if (options.screenshot === "-") return;
    if (json) return screen.json({ ...desktop, ...used, ...shown });
    if (shown !== undefined) return showWindows(screen, shown);
    if (used !== undefined || options.screenshot !== undefined) return;
    screen.print(`The desktop of ${sandbox} has ${desktop.width} by ${desktop.height} pixels.`);
    screen.say(screen.paint("dim", `Look at it: viv open '/sandbox/${sandbox}?show=desktop'`));
  },
});
