/** A command in a sandbox, as a tool waits for it. */
import type { Client } from "../client/client.ts";
import type { CommandResult } from "../../base/schema/command.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Work } from "./follow.ts";
import { clean, lastPart } from "./results.ts";

export function commandWork(client: Client, sandbox: string, command: string): Work<CommandResult> {
  return {
    look: () => client.call("inspectCommand", { sandbox, command }),
    isOver: ({ running }) => !running,
    sandboxes: ({ sandbox: id }) => [id],
    listen: (tell, signal) => untilEnd(client, sandbox, command, tell, signal),
    cancel: () => client.call("killCommand", { sandbox, command, signal: "TERM" }),
  };
}

async function* untilEnd(
  client: Client,
  sandbox: string,
  command: string,
  tell: (text: string) => void,
  signal: AbortSignal,
): AsyncGenerator<void, void, void> {
  const stream = await client.attach(sandbox, command);
  const leave = (): void => stream.close();
  signal.addEventListener("abort", leave, { once: true });
  try {
    for await (const output of stream.output) {
      if (output.stream === "gap") continue;
      const line = Buffer.from(output.data).toString("utf8").trimEnd().split("\n").at(-1);
      if (line !== undefined && line !== "") tell(line);
    }
    yield;
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}

/** `next` stands for what a command that still runs is told otherwise. */
export function commandFields(handle: string, ended: CommandResult, next?: string): Record<string, unknown> {
  const { running, end, stdout, stderr } = ended;
  const most = LIMITS.toolTextCharacters / 2;
  return {
    session_id: handle,
    status: running ? "running" : end?.exitCode === 0 ? "completed" : end?.cause === "timeout" ? "timeout" : "failed",
    exit_code: end?.exitCode ?? null,
    stdout: lastPart(clean(stdout), most),
    stderr: lastPart(clean(stderr), most),
    ...(end?.message == null ? {} : { reason: clean(end.message) }),
    ...(running ? { next: next ?? `It still runs. Call wait with session_id ${handle}.` } : {}),
  };
}
