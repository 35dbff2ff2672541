/** use_desktop and screenshot: the screen of a sandbox, with a picture of it. */
import { buffer } from "node:stream/consumers";
import type { Client } from "../client/client.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { ToolInput } from "../../base/schema/mcp.ts";
import type { Call } from "./call.ts";
import type { Answer } from "./execute-task.ts";
import { pictureOf } from "./pictures.ts";
import { cleanLine, result } from "./results.ts";
import { ownSandbox, sandboxOf } from "./sessions.ts";

/** What an action causes is on the picture that follows it, if it comes within this time. */
const SETTLE_MS = 1_000;
const MOST_WINDOWS = 20;

export async function useDesktop(call: Call, { session_id, actions, browser, close }: ToolInput<"use_desktop">): Promise<Answer> {
  const { client } = call;
  if (close && session_id === undefined)
    throw new VivError("invalid_input", "A screen that is to be ended has a session_id.", { remedy: "Call list to see what there is." });
  const sandbox = await ownSandbox(call, session_id);
  if (close) {
    await client.call("closeDesktop", { sandbox });
    return result({ session_id: sandbox, status: "closed" });
  }
  call.tell("Opening the screen");
  await client.call("openDesktop", { sandbox, ...(browser === undefined ? {} : { browser }) });
  const isSettled = actions.length === 0 || actions.length === LIMITS.maxDesktopActions || actions.at(-1)?.do === "wait";
  const all = isSettled ? actions : [...actions, { do: "wait" as const, timeoutMs: SETTLE_MS }];
  if (all.length > 0) await client.call("useDesktop", { sandbox, actions: all }, call.signal);
  return shown(client, sandbox);
}

export async function screenshot(call: Call, { session_id }: ToolInput<"screenshot">): Promise<Answer> {
  return shown(call.client, await sandboxOf(call, session_id));
}

async function shown(client: Client, sandbox: string): Promise<Answer> {
  const { windows, cursor } = await client.call("listWindows", { sandbox });
  const picture = pictureOf(await buffer(await client.screenshot(sandbox)));
  const fields = {
    session_id: sandbox,
    windows: windows
      .slice(0, MOST_WINDOWS)
      .map(({ title, x, y, width, height, active }) => ({ title: cleanLine(title), x, y, width, height, active })),
    pointer: cursor,
    ...(picture === undefined ? { picture: "too large to be shown here" } : {}),
    ...(windows.length === 0 ? { next: "It is empty. Call run to start a program, or use_desktop with browser." } : {}),
  };
  return result(fields, picture === undefined ? [] : [picture]);
}
