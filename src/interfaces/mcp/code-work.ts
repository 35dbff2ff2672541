/** A piece of code in a sandbox, as a tool waits for it and tells of it; and the contexts of such code. */
import type { CallToolResult, ImageContent } from "@modelcontextprotocol/server";
import type { Client } from "../client/client.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { ToolInput } from "../../base/schema/mcp.ts";
import type { CodeOutput, Execution } from "../../base/schema/notebook.ts";
import type { Call } from "./call.ts";
import type { Answer } from "./execute-task.ts";
import type { Work } from "./follow.ts";
import { pictureOf } from "./pictures.ts";
import { clean, cleanLine, lastPart, result } from "./results.ts";
import { ownSandbox, sandboxOf } from "./sessions.ts";

const PICTURES = ["image/png", "image/jpeg"];

export function codeWork(client: Client, sandbox: string, execution: string): Work<Execution> {
  const look = (): Promise<Execution> => client.call("inspectExecution", { sandbox, execution });
  return {
    look,
    isOver: ({ state }) => state !== "running",
    sandboxes: () => [sandbox],
    listen: (tell, signal) => outputs(client, sandbox, execution, tell, signal),
    cancel: async () => client.call("interruptContext", { sandbox, context: (await look()).context }),
  };
}

async function* outputs(
  client: Client,
  sandbox: string,
  execution: string,
  tell: (text: string) => void,
  signal: AbortSignal,
): AsyncGenerator<void, void, void> {
  for await (const event of client.executionEvents(sandbox, execution, signal)) {
    if (event.type === "ended") yield;
    else if ("text" in event.output) tell(event.output.text.trimEnd().split("\n").at(-1) ?? "");
  }
}

const STATUS = { running: "running", done: "completed", failed: "failed", interrupted: "interrupted" } as const;

/** What was printed and shown as text, in order, and the pictures beside it. */
export function codeResult(execution: Execution, next?: string): CallToolResult {
  const { id, sandbox, context, state, reason, outputs: all, droppedBytes } = execution;
  const seen = all.flatMap((output) => pictureIn(output) ?? []);
  const claimed = all.filter((output) => "data" in output && PICTURES.some((type) => output.data[type] !== undefined)).length;
  const pictures = seen.slice(-LIMITS.toolPictures);
  const isOver = state !== "running";
  const handle = `${sandbox}/${id}`;
  const fields = {
    session_id: isOver ? sandbox : handle,
    status: STATUS[state],
    context,
    output: lastPart(clean(all.map(textOf).join(""))).trimEnd(),
    ...(reason === null ? {} : { reason: clean(reason) }),
    ...(claimed > pictures.length ? { pictures_left_out: claimed - pictures.length } : {}),
    ...(droppedBytes > 0 ? { bytes_left_out: droppedBytes } : {}),
    ...(isOver ? {} : { next: next ?? `It still runs. Call wait with session_id ${handle}.` }),
  };
  return result(fields, pictures);
}

function pictureIn(output: CodeOutput): ImageContent | undefined {
  if (!("data" in output)) return undefined;
  const content = PICTURES.map((type) => output.data[type]).find((value) => typeof value === "string");
  return typeof content === "string" ? pictureOf(Buffer.from(content, "base64")) : undefined;
}

function textOf(output: CodeOutput): string {
  if ("text" in output) return output.text;
  if (output.kind === "error") return `${output.traceback}\n`;
  const { "text/plain": plain, "application/json": json, "text/html": html } = output.data;
  if (json !== undefined) return `${JSON.stringify(json)}\n`;
  const text = plain ?? html;
  return typeof text === "string" ? `${text}\n` : "";
}

export async function pythonContext(call: Call, { session_id, do: what, context }: ToolInput<"python_context">): Promise<Answer> {
  const { client } = call;
  if (what === "list") {
    const sandbox = await sandboxOf(call, session_id);
    const { contexts } = await client.call("listContexts", { sandbox });
    return result({
      session_id: sandbox,
      contexts: contexts.map(({ name, state }) => ({ name: cleanLine(name), state: cleanLine(state) })),
    });
  }
  const sandbox = await ownSandbox(call, session_id);
  await client.call(what === "restart" ? "restartContext" : "interruptContext", { sandbox, context });
  return result({ session_id: sandbox, context, status: what === "restart" ? "restarted" : "interrupted" });
}
