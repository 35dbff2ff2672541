/** The name in the first message of a TLS connection (RFC 8446, RFC 6066). Everything in it is the sandbox's word. */

export type Hello =
  | { readonly kind: "more" }
  /** Not TLS, or broken. */
  | { readonly kind: "other" }
  | { readonly kind: "tls"; readonly name: string | undefined };

const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const RECORD_HEADER = 5;
/** A ClientHello with post-quantum keys and tickets stays far below. */
export const MAX_HELLO_BYTES = 32 * 1024;
/** It is read anew with every piece that comes. */
const MOST_RECORDS = 1024;

const OTHER: Hello = { kind: "other" };
const MORE: Hello = { kind: "more" };

/** Reads what has come so far. */
export function readClientHello(data: Buffer): Hello {
  if (data.length > 0 && data[0] !== HANDSHAKE) return OTHER;
  if (data.length > 1 && data[1] !== 3) return OTHER;
  const handshake = joinRecords(data);
  if (!Buffer.isBuffer(handshake)) return handshake;
  if (handshake.length < 4) return data.length > MAX_HELLO_BYTES ? OTHER : MORE;
  if (handshake[0] !== CLIENT_HELLO) return OTHER;
  const length = handshake.readUIntBE(1, 3);
  if (length > MAX_HELLO_BYTES) return OTHER;
  if (handshake.length < 4 + length) return MORE;
  return readBody(new Reader(handshake.subarray(4, 4 + length)));
}

/** A message may be cut into records anywhere. */
function joinRecords(data: Buffer): Buffer | Hello {
  const parts: Buffer[] = [];
  let at = 0;
  while (data.length - at >= RECORD_HEADER) {
    if (data[at] !== HANDSHAKE) break;
    const length = data.readUInt16BE(at + 3);
    if (length === 0 || length > 16_384 + 256 || parts.length === MOST_RECORDS) return OTHER;
    parts.push(data.subarray(at + RECORD_HEADER, at + RECORD_HEADER + length));
    at += RECORD_HEADER + length;
  }
  return Buffer.concat(parts);
}

function readBody(body: Reader): Hello {
  body.skip(2 + 32);
  body.vector(1);
  body.vector(2);
  body.vector(1);
  if (body.broken) return OTHER;
  if (body.ended) return { kind: "tls", name: undefined };
  const extensions = new Reader(body.vector(2));
  let name: string | undefined;
  let seen = false;
  while (!extensions.ended && !extensions.broken) {
    const type = extensions.number(2);
    const content = extensions.vector(2);
    if (type !== SERVER_NAME) continue;
    // Where there are two names, it is not known which one the server takes.
    if (seen) return OTHER;
    seen = true;
    name = readServerName(new Reader(content));
    if (name === undefined) return OTHER;
  }
  return body.broken || extensions.broken ? OTHER : { kind: "tls", name };
}

function readServerName(extension: Reader): string | undefined {
  const names = new Reader(extension.vector(2));
  const type = names.number(1);
  const name = names.vector(2);
  if (extension.broken || names.broken || !names.ended || !extension.ended || type !== 0) return undefined;
  return name.toString("latin1");
}

class Reader {
  readonly #data: Buffer;
  #at = 0;
  broken = false;

  constructor(data: Buffer) {
    this.#data = data;
  }

  get ended(): boolean {
    return this.#at >= this.#data.length;
  }

  number(bytes: number): number {
    if (this.#at + bytes > this.#data.length) return this.#break();
    const value = this.#data.readUIntBE(this.#at, bytes);
    this.#at += bytes;
    return value;
  }

  /** Bytes behind their length. */
  vector(lengthBytes: number): Buffer {
    const length = this.number(lengthBytes);
    const start = this.#at;
    this.skip(length);
    return this.broken ? Buffer.alloc(0) : this.#data.subarray(start, start + length);
  }

  skip(bytes: number): void {
    if (this.#at + bytes > this.#data.length) this.#break();
    else this.#at += bytes;
  }

  #break(): number {
    this.broken = true;
    this.#at = this.#data.length;
    return 0;
  }
}
