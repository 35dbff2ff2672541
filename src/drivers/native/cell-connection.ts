/** One connection to process 1 of a sandbox: one request, then the frames that answer it. */
import { connect, type Socket } from "node:net";
import { encodeFields, encodeFrame, type FieldList, Fields, type Frame, FrameDecoder, KIND } from "../../host/frames.ts";
import { type ErrorCode, VivError } from "../../schema/errors.ts";

const codes: Readonly<Record<string, ErrorCode>> = {
  "bad-request": "invalid_input",
  "not-runnable": "command_not_runnable",
  denied: "denied",
  exists: "exists",
  "not-directory": "invalid_input",
  "is-directory": "invalid_input",
  "not-empty": "invalid_input",
  "no-space": "disk_full",
  "too-many": "no_capacity",
  "no-user": "invalid_input",
  closed: "not_running",
  unsupported: "unsupported",
};

/** What is not there depends on what was asked for; anything else is a file. */
const absent: Readonly<Record<string, ErrorCode>> = { exec: "command_not_found", attach: "not_found", kill: "not_found", dial: "not_found" };

/** The cell's words as one of ours; what it said stays in the cause. */
export function errorOf(frame: Frame, subject: string): VivError {
  const fields = new Fields(frame.payload);
  const word = fields.get("code") ?? "failed";
  const step = fields.get("step") ?? "";
  const cause = { code: word, errno: fields.number("errno") ?? 0, step };
  if (word === "no-user") return new VivError("invalid_input", `${subject}: there is no such user in the sandbox`, { cause });
  const code = word === "not-found" ? (absent[step] ?? "file_not_found") : (codes[word] ?? "cell_failed");
  const where = step === "" || step === "exec" ? "" : ` (${step})`;
  return new VivError(code, `${subject}: ${fields.get("message") ?? word}${where}`, { cause });
}

export function lost(subject: string, cause?: unknown): VivError {
  return new VivError("not_running", `${subject}: the sandbox does not answer any more`, { cause });
}

/** Connects and sends the request in one go: the kernel carries both before process 1 wakes. */
export function openSocket(path: string, op: string, fields: FieldList): Socket {
  const socket = connect({ path, allowHalfOpen: true });
  socket.write(encodeFrame(KIND.request, encodeFields([["v", "1"], ["op", op], ...fields])));
  return socket;
}

/** The answer as frames; reading slowly holds the other side back. Leaving the loop closes the connection. */
export async function* framesOf(socket: Socket, subject: string): AsyncGenerator<Frame, void, void> {
  const decoder = new FrameDecoder();
  try {
    for await (const chunk of socket) {
      for (const frame of decoder.push(chunk as Buffer)) {
        if (frame.kind === KIND.error) throw errorOf(frame, subject);
        yield frame;
      }
    }
  } catch (error) {
    throw error instanceof VivError ? error : lost(subject, error);
  } finally {
    socket.destroy();
  }
}

/** A request whose answer is one REPLY. */
export async function ask(path: string, op: string, fields: FieldList, subject: string): Promise<Fields> {
  for await (const frame of framesOf(openSocket(path, op, fields), subject)) {
    if (frame.kind === KIND.reply) return new Fields(frame.payload);
  }
  throw lost(subject);
}

/** A request whose answer is a list: ENTRY frames, then END. */
export async function askList(path: string, op: string, fields: FieldList, subject: string): Promise<Fields[]> {
  const rows: Fields[] = [];
  for await (const frame of framesOf(openSocket(path, op, fields), subject)) {
    if (frame.kind === KIND.end) return rows;
    if (frame.kind === KIND.entry) rows.push(new Fields(frame.payload));
  }
  throw lost(subject);
}
