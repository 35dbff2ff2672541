/**
 * Vivarium in pi, inside a sandbox. pi asks nothing of itself, so this asks the server before each tool call, over pi's own way to ask
 * a person: without an answer nothing is done. The agent also gets the tools of docs/GATEWAY.md.
 *
 * pi does not start when it can't load an extension that it is given, and a run gives it no task before this one has said that it is
 * there.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

const GATEWAY = process.env.VIVARIUM_GATEWAY ?? "http://127.0.0.1:4097";
/** Set before the name of each tool of the gateway: pi's own tools have plain names. */
const OWN = "vivarium_";
/** While the server is away a call waits so long; then it fails. */
const PATIENCE_MS = 600_000;
const PAUSE_MS = 500;

const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function ask(method, params, signal) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      const answer = await fetch(`${GATEWAY}/mcp`, {
        method: "POST",
        headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
        ...(signal === undefined ? {} : { signal }),
      });
      const text = await answer.text();
      if (answer.status === 429 && Date.now() < end) {
        await rest(1000 * Math.max(1, Number(answer.headers.get("retry-after")) || 1));
        continue;
      }
      const { result, error } = parsed(text);
      if (result === undefined) throw new Error(`Vivarium: ${error?.message ?? "no answer"}`);
      return result;
    } catch (error) {
      // Only a connection that can't be had, or that broke, is made again.
      if (!(error instanceof TypeError) || signal?.aborted === true || Date.now() > end) throw error;
      await rest(PAUSE_MS);
    }
  }
}

/** A long call is answered as a stream of events, the last of which is the answer. */
function parsed(text) {
  if (text.startsWith("{")) return JSON.parse(text);
  const events = text.split("\n").filter((line) => line.startsWith("data: "));
  return JSON.parse(events.at(-1)?.slice("data: ".length) ?? "{}");
}

/** A tool of the gateway, as pi takes it. */
function toolOf({ name, description, inputSchema }) {
  return {
    name: `${OWN}${name}`,
    label: name,
    description,
    promptSnippet: description.split(". ", 1)[0],
    parameters: inputSchema,
    async execute(_call, given, signal) {
      const { content, isError } = await ask("tools/call", { name, arguments: given }, signal);
      if (isError === true) throw new Error(content.map(({ text }) => text).join("\n"));
      return { content, details: {} };
    },
  };
}

/** A project's own settings could put a program of its own around every command. */
function refusal(cwd) {
  try {
    const settings = JSON.parse(readFileSync(join(cwd, ".pi", "settings.json"), "utf8"));
    return settings.shellPath || settings.shellCommandPrefix ? "The project's .pi/settings.json changes how commands run." : undefined;
  } catch (error) {
    return error.code === "ENOENT" || error.code === "ENOTDIR" ? undefined : "The project's .pi/settings.json can't be read.";
  }
}

export default async function vivarium(pi) {
  const { tools } = await ask("tools/list", {});
  for (const tool of tools) pi.registerTool(toolOf(tool));
  pi.on("session_start", (_event, ctx) => ctx.ui.setStatus("vivarium", "ready"));
  pi.on("tool_call", async (event, ctx) => {
    // The gateway itself judges these.
    if (event.toolName.startsWith(OWN)) return undefined;
    const { command, path, pattern } = event.input ?? {};
    const against = event.toolName === "bash" ? refusal(ctx.cwd) : undefined;
    if (against !== undefined) return { block: true, reason: against };
    const question = { call: event.toolCallId, tool: event.toolName, argument: command ?? path ?? pattern };
    const answer = JSON.parse((await ctx.ui.input("vivarium", JSON.stringify(question))) ?? "{}");
    return answer.allowed === true ? undefined : { block: true, reason: String(answer.reason ?? "It was not allowed.") };
  });
}
