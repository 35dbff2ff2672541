/** One connection to process 1 of a sandbox: one request, then the frames that answer it. */
import { connect, type Socket } from "node:net";
import { constants } from "node:os";
import {
  encodeFields,
  encodeFrame,
  type FieldList,
  Fields,
  type Frame,
  FrameDecoder,
  KIND,
  PROTOCOL_VERSION,
} from "../../../base/host/frames.ts";
import { type ErrorCode, VivError } from "../../../base/schema/errors.ts";

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

/** The error code for a missing thing depends on the request; for all other requests it is a file. */
const absent: Readonly<Record<string, ErrorCode>> = {
  exec: "command_not_found",
  attach: "not_found",
  kill: "not_found",
  dial: "port_unreachable",
};

const USERS =
  "Name one of the sandbox's own /etc/passwd. Where viv is run by an ordinary user, that user is the only one inside: leave `--user` out.";

/** What a request is about, for the sentence that says why it failed. */
export interface Subject {
  readonly name: string;
  readonly user?: string;
  readonly cwd?: string;
}

/** The cell's words as one of ours; what it said stays in the cause. */
export function errorOf(frame: Frame, subject: string | Subject): VivError {
  const fields = new Fields(frame.payload);
  const word = fields.get("code") ?? "failed";
  const step = fields.get("step") ?? "";
  const code = codeOf(word, step, fields.number("errno") ?? 0);
  const about = typeof subject === "string" ? { name: subject } : subject;
  const message = sentence(code, step, about, word === "no-user", fields.get("message") ?? word);
  const cause = { code: word, errno: fields.number("errno") ?? 0, step };
  return new VivError(code, message, word === "no-user" ? { cause, remedy: USERS } : { cause });
}

function codeOf(word: string, step: string, errno: number): ErrorCode {
  // A terminal that was hung up says the same.
  if (errno === constants.errno.EIO && step !== "terminal") return "storage_damaged";
  if (errno === constants.errno.EPROTO && word === "unsupported") return "cell_incompatible";
  if (word === "not-found") return absent[step] ?? "file_not_found";
  return codes[word] ?? "cell_failed";
}

function sentence(code: ErrorCode, step: string, { name, user, cwd }: Subject, noUser: boolean, said: string): string {
  if (noUser) return `There is no user ${user ?? ""} in the sandbox.`;
  if (step === "cwd") return `The working folder ${cwd ?? ""} can't be entered: ${said}.`;
  if (code === "cell_incompatible")
    return `The sandbox was launched by another version of viv: ${said}, this server v=${PROTOCOL_VERSION}.`;
  if (code === "port_unreachable") return `Nothing listens on ${name} of the sandbox.`;
  if (step === "exec") return `${name} can't be run: ${said}.`;
  return code === "cell_failed" ? `${name}: ${said} (${step}).` : `${name}: ${said}.`;
}

export function lost(subject: string | Subject, cause?: unknown): VivError {
  const name = typeof subject === "string" ? subject : subject.name;
  return new VivError("not_running", `${name}: the sandbox does not answer any more.`, { cause });
}

/** Process 1 stands still, or what it made for this request does. */
export function silent(subject: string, ms: number): VivError {
  const seconds = Math.round(ms / 1000);
  return new VivError("sandbox_silent", `${subject}: process 1 of the sandbox did not answer within ${seconds} seconds.`);
}

/** Connects and sends the request in one go: the kernel carries both before process 1 wakes. */
export function openSocket(path: string, op: string, fields: FieldList): Socket {
  return request(connect({ path, allowHalfOpen: true }), op, fields);
}

export function request(socket: Socket, op: string, fields: FieldList): Socket {
  socket.write(encodeFrame(KIND.request, encodeFields([["v", String(PROTOCOL_VERSION)], ["op", op], ...fields])));
  return socket;
}

/** The answer as frames; reading slowly holds the other side back. Leaving the loop closes the connection. */
export async function* framesOf(socket: Socket, subject: string | Subject): AsyncGenerator<Frame, void, void> {
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
export async function ask(path: string, op: string, fields: FieldList, subject: string | Subject): Promise<Fields> {
  for await (const frame of framesOf(openSocket(path, op, fields), subject)) {
    if (frame.kind === KIND.reply) return new Fields(frame.payload);
  }
  throw lost(subject);
}

/** A request whose answer is a list: ENTRY frames, then END. */
export async function askList(path: string, op: string, fields: FieldList, subject: string | Subject): Promise<Fields[]> {
  const rows: Fields[] = [];
  for await (const frame of framesOf(openSocket(path, op, fields), subject)) {
    if (frame.kind === KIND.end) return rows;
    if (frame.kind === KIND.entry) rows.push(new Fields(frame.payload));
  }
  throw lost(subject);
}
