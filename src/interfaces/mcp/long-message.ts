/** Messages of a client that are too long to be read: they are refused with a reason, and never silently lost. */
import { LIMITS } from "../../base/schema/limits.ts";

const MEGABYTE = 1024 ** 2;
/** What is kept of a long message at its beginning and at its end, to find the id of the request. */
const KEPT_BYTES = 4096;
/** Of JSON-RPC, for errors that are the server's own. */
const SERVER_ERROR = -32_000;

const TOO_LONG = `This message is larger than ${LIMITS.maxToolMessageBytes / MEGABYTE} MB. A file is ${LIMITS.maxGivenFileBytes / MEGABYTE} MB at most, all files of a task are ${LIMITS.maxGivenBytes / MEGABYTE} MB at most. Send smaller files, or let the task download them, and call execute_task again.`;

/** Beginning and end of a line whose middle is left out. */
export class LongLine {
  #head = Buffer.alloc(0);
  #tail = Buffer.alloc(0);

  add(part: Buffer): this {
    if (this.#head.length < KEPT_BYTES) this.#head = Buffer.concat([this.#head, part.subarray(0, KEPT_BYTES - this.#head.length)]);
    const end = part.subarray(Math.max(0, part.length - KEPT_BYTES));
    this.#tail = Buffer.concat([this.#tail, end]).subarray(-KEPT_BYTES);
    return this;
  }

  /** Of the request that this is, which programs write first or last; undefined where it is in neither place. */
  get id(): string | number | undefined {
    const id = String.raw`"id"\s*:\s*(\d{1,15}|"(?:[^"\\]|\\.)*")`;
    const named = String.raw`"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"`;
    const first = new RegExp(String.raw`^\s*\{\s*(?:${named}\s*,\s*)*${id}`).exec(this.#head.toString("utf8"));
    const last = new RegExp(String.raw`[\]},"\d]\s*,\s*${id}\s*(?:,\s*${named}\s*)*\}\s*$`).exec(this.#tail.toString("utf8"));
    const found = first?.[1] ?? last?.[1];
    return found === undefined ? undefined : (JSON.parse(found) as string | number);
  }
}

/** The answer to a message that is too long; without an id, the client only learns that it was refused. */
export function tooLong(id: string | number | undefined): string {
  return JSON.stringify({ jsonrpc: "2.0", id: id ?? null, error: { code: SERVER_ERROR, message: TOO_LONG } });
}
