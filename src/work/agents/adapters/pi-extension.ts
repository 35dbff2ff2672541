/**
 * The extension that pi loads: pi asks nothing of itself, so this asks the server before each tool call, over pi's own way to ask a
 * person. Without an answer nothing is done. pi does not start when it can't load an extension it is given, and the session gives it
 * no task before the extension has said that it is there.
 */
export const PI_EXTENSION = `import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A project's own settings could put a program of its own around every command. */
function refusal(cwd) {
  try {
    const settings = JSON.parse(readFileSync(join(cwd, ".pi", "settings.json"), "utf8"));
    return settings.shellPath || settings.shellCommandPrefix ? "The project's .pi/settings.json changes how commands run." : undefined;
  } catch (error) {
    return error.code === "ENOENT" || error.code === "ENOTDIR" ? undefined : "The project's .pi/settings.json can't be read.";
  }
}

export default function vivarium(pi) {
  pi.on("session_start", (_event, ctx) => ctx.ui.setStatus("vivarium", "ready"));
  pi.on("tool_call", async (event, ctx) => {
    const { command, path, pattern } = event.input ?? {};
    const against = event.toolName === "bash" ? refusal(ctx.cwd) : undefined;
    if (against !== undefined) return { block: true, reason: against };
    const question = { call: event.toolCallId, tool: event.toolName, argument: command ?? path ?? pattern };
    const answer = JSON.parse((await ctx.ui.input("vivarium", JSON.stringify(question))) ?? "{}");
    return answer.allowed === true ? undefined : { block: true, reason: String(answer.reason ?? "It was not allowed.") };
  });
}
`;
