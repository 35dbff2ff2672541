/** Framing and fields of the cell's protocol (native/PROTOCOL.md). */

/** What this program speaks, and which cells it can work with. */
export const PROTOCOL_VERSION = 1;

export const KIND = {
  request: 1,
  reply: 2,
  event: 3,
  error: 4,
  end: 5,
  entry: 6,
  stdout: 16,
  stderr: 17,
  stdin: 18,
  stdinEnd: 19,
  resize: 20,
  signal: 21,
  exit: 22,
  gap: 23,
  data: 24,
  hand: 25,
} as const;

export type Kind = (typeof KIND)[keyof typeof KIND];
export type FieldValue = string | Buffer;
export type FieldList = readonly (readonly [key: string, value: FieldValue])[];

export interface Frame {
  readonly kind: Kind;
  readonly payload: Buffer;
}

export const frameMaxBytes = 1 << 20;
export const chunkMaxBytes = 64 << 10;
/** Separates the parts of a value that has several. */
export const PART = "\x1f";

const headerBytes = 8;
const kinds: ReadonlySet<number> = new Set(Object.values(KIND));
const empty = Buffer.alloc(0);

/** The peer broke the protocol, or a value cannot be carried by it. */
export class FrameError extends Error {
  override readonly name = "FrameError";
}

export function encodeFrame(kind: Kind, payload: Uint8Array = empty): Buffer {
  if (payload.length > frameMaxBytes) throw new FrameError(`a frame holds at most ${frameMaxBytes} bytes, not ${payload.length}`);
  const frame = Buffer.allocUnsafe(headerBytes + payload.length);
  frame.writeUInt32LE(payload.length, 0);
  frame.writeUInt32LE(kind, 4);
  frame.set(payload, headerBytes);
  return frame;
}

/** Strings that follow each other are encoded together: most requests have nothing else. */
export function encodeFields(fields: FieldList): Buffer {
  const parts: Buffer[] = [];
  let text = "";
  for (const [key, value] of fields) {
    if (key === "" || key.includes("=") || key.includes("\0")) throw new FrameError(`${JSON.stringify(key)} is not a field name`);
    if (typeof value === "string" ? value.includes("\0") : value.includes(0)) throw new FrameError(`the value of ${key} holds a NUL byte`);
    if (typeof value === "string") {
      text += `${key}=${value}\0`;
      continue;
    }
    parts.push(Buffer.from(`${text}${key}=`), value);
    text = "\0";
  }
  return parts.length === 0 ? Buffer.from(text) : Buffer.concat([...parts, Buffer.from(text)]);
}

/** Joins the parts of a value; a part that holds the separator would be read as two. */
export function joinParts(parts: readonly FieldValue[]): Buffer {
  const joined: Buffer[] = [];
  for (const [index, part] of parts.entries()) {
    const bytes = typeof part === "string" ? Buffer.from(part) : part;
    if (bytes.includes(PART)) throw new FrameError("a part of a value holds the byte 0x1f");
    if (index > 0) joined.push(Buffer.from(PART));
    joined.push(bytes);
  }
  return Buffer.concat(joined);
}

/** Splits a value into at most `most` parts; the last keeps what is left. */
export function splitParts(value: Buffer, most = Number.POSITIVE_INFINITY): Buffer[] {
  const parts: Buffer[] = [];
  let start = 0;
  while (parts.length + 1 < most) {
    const end = value.indexOf(PART, start);
    if (end < 0) break;
    parts.push(value.subarray(start, end));
    start = end + 1;
  }
  parts.push(value.subarray(start));
  return parts;
}

/** The fields of a payload; a key may repeat, values are bytes. */
export class Fields {
  readonly #values = new Map<string, Buffer[]>();

  constructor(payload: Buffer) {
    if (payload.length > 0 && payload.at(-1) !== 0) throw new FrameError("a payload of fields does not end with NUL");
    for (let start = 0; start < payload.length;) {
      const end = payload.indexOf(0, start);
      const equals = payload.indexOf("=", start);
      if (equals <= start || equals > end) throw new FrameError("a field has no name");
      const key = payload.toString("utf8", start, equals);
      const list = this.#values.get(key);
      const value = payload.subarray(equals + 1, end);
      if (list === undefined) this.#values.set(key, [value]);
      else list.push(value);
      start = end + 1;
    }
  }

  get(key: string): string | undefined {
    return this.#values.get(key)?.[0]?.toString("utf8");
  }

  all(key: string): string[] {
    return this.rawAll(key).map((value) => value.toString("utf8"));
  }

  raw(key: string): Buffer | undefined {
    return this.#values.get(key)?.[0];
  }

  rawAll(key: string): readonly Buffer[] {
    return this.#values.get(key) ?? [];
  }

  /** A decimal number; undefined when the field is absent or empty. */
  number(key: string): number | undefined {
    const text = this.get(key);
    if (text === undefined || text === "") return undefined;
    if (!/^-?\d+$/.test(text)) throw new FrameError(`field ${key} is not a number: ${JSON.stringify(text)}`);
    return Number(text);
  }

  flag(key: string): boolean {
    return this.get(key) === "1";
  }

  keys(): string[] {
    return [...this.#values.keys()];
  }
}

/** Turns a stream of chunks into frames; throws FrameError on a frame the protocol does not allow. */
export class FrameDecoder {
  #pending: Buffer = empty;
  /** Where the next frame begins: a command that writes byte by byte makes thousands of them in a chunk. */
  #at = 0;

  /** Adds a chunk and returns every frame that is complete. */
  push(chunk: Buffer): Frame[] {
    this.feed(chunk);
    const frames: Frame[] = [];
    for (let frame = this.next(); frame !== undefined; frame = this.next()) frames.push(frame);
    return frames;
  }

  feed(chunk: Buffer): void {
    const rest = this.takePending();
    this.#pending = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
  }

  /** One frame, so that a reader can stop before bytes that are no frames. */
  next(): Frame | undefined {
    const data = this.#pending;
    const at = this.#at;
    if (data.length - at < headerBytes) return undefined;
    const length = data.readUInt32LE(at);
    const kind = data.readUInt32LE(at + 4);
    if (length > frameMaxBytes) throw new FrameError(`a frame of ${length} bytes`);
    if (!kinds.has(kind)) throw new FrameError(`a frame of unknown kind ${kind}`);
    const body = at + headerBytes;
    if (data.length - body < length) return undefined;
    this.#at = body + length;
    return { kind: kind as Kind, payload: data.subarray(body, body + length) };
  }

  /** What came after the last frame: the first bytes of a connection that turns raw. */
  takePending(): Buffer {
    const pending = this.#pending.subarray(this.#at);
    this.#pending = empty;
    this.#at = 0;
    return pending;
  }
}
