/** What a kernel says, as outputs. It comes from the sandbox: what does not fit is left out. */
import { z } from "zod";
import { stripVTControlCharacters } from "node:util";
import type { CodeOutput } from "../../base/schema/notebook.ts";

const Mime = z.record(z.string().max(200), z.json());

const KernelMessage = z.object({
  header: z.object({ msg_type: z.string(), session: z.string().optional() }),
  parent_header: z.object({ msg_id: z.string().optional() }),
  content: z.record(z.string(), z.json()),
});

/** News of the kernel itself (it died, or answers a question with the name of this start of it), or of an execution. */
export type KernelNews = { readonly died: true } | { readonly start: string } | ExecutionNews;

export type ExecutionNews =
  | { readonly execution: string; readonly output: CodeOutput }
  | { readonly execution: string; readonly isIdle: true }
  | { readonly execution: string; readonly reply: "ok" | "error" | "aborted"; readonly count: number | null };

const OUTPUTS: Readonly<Record<string, z.ZodType<CodeOutput>>> = {
  stream: z.object({ name: z.enum(["stdout", "stderr"]), text: z.string() }).transform(({ name, text }) => ({ kind: name, text })),
  execute_result: z.object({ data: Mime }).transform(({ data }) => ({ kind: "result" as const, data })),
  display_data: z.object({ data: Mime }).transform(({ data }) => ({ kind: "display" as const, data })),
  update_display_data: z.object({ data: Mime }).transform(({ data }) => ({ kind: "display" as const, data })),
  error: z.object({ ename: z.string(), evalue: z.string(), traceback: z.array(z.string()) }).transform(({ ename, evalue, traceback }) => ({
    kind: "error" as const,
    name: ename,
    value: evalue,
    traceback: stripVTControlCharacters(traceback.join("\n")),
  })),
};

/** Jupyter starts a kernel that died again: without its variables, and without a word to those who wait for it. */
const DEAD = new Set<unknown>(["restarting", "autorestarting", "dead"]);

const Reply = z.object({ status: z.enum(["ok", "error", "aborted"]), execution_count: z.number().int().nullish() });

/** undefined for what no execution is waiting for. */
export function newsIn(text: string): KernelNews | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // A kernel may send anything.
    return undefined;
  }
  const message = KernelMessage.safeParse(value);
  if (message.data?.header.msg_type === "status" && DEAD.has(message.data.content["execution_state"])) return { died: true };
  if (message.data?.header.msg_type === "kernel_info_reply") return { start: message.data.header.session ?? "" };
  const execution = message.data?.parent_header.msg_id;
  if (message.data === undefined || execution === undefined) return undefined;
  const { header, content } = message.data;
  if (header.msg_type === "status") return content["execution_state"] === "idle" ? { execution, isIdle: true } : undefined;
  if (header.msg_type === "execute_reply") {
    const reply = Reply.safeParse(content).data;
    return reply === undefined ? undefined : { execution, reply: reply.status, count: reply.execution_count ?? null };
  }
  const output = Object.hasOwn(OUTPUTS, header.msg_type) ? OUTPUTS[header.msg_type]?.safeParse(content).data : undefined;
  return output === undefined ? undefined : { execution, output };
}

/** A question that a kernel also answers while it runs code. */
export function signOfLife(): string {
  return request("control", "kernel_info_request", `sign-${Date.now()}`, {});
}

/** Runs code: the id of the execution is the id of the message. */
export function executeRequest(execution: string, code: string, { silent = false } = {}): string {
  const content = { code, silent, store_history: !silent, user_expressions: {}, allow_stdin: false, stop_on_error: true };
  return request("shell", "execute_request", execution, content);
}

function request(channel: string, kind: string, id: string, content: object): string {
  return JSON.stringify({
    channel,
    header: {
      msg_id: id,
      msg_type: kind,
      username: "viv",
      session: "viv",
      version: "5.3",
      date: new Date().toISOString(),
    },
    parent_header: {},
    metadata: {},
    content,
  });
}
