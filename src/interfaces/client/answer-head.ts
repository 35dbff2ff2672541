/** Status line and headers of an answer, as far as a call over the server's own socket needs them. */

const MOST_BYTES = 64 * 1024;
const END = "\r\n\r\n";

export interface Head {
  readonly status: number;
  /** Bytes of the body; undefined where it ends with its connection. */
  readonly length: number | undefined;
  /** Whether another request may follow on the connection. */
  readonly keeps: boolean;
}

export class HeadReader {
  #bytes: Buffer = Buffer.alloc(0);
  #text = "";

  /** What follows the head; undefined as long as it is not whole. */
  take(chunk: Buffer): Buffer | undefined {
    const bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk]);
    const end = bytes.indexOf(END);
    if (end < 0) {
      if (bytes.length > MOST_BYTES) throw new Error("the head of an answer has no end");
      this.#bytes = bytes;
      return undefined;
    }
    this.#text = bytes.toString("latin1", 0, end);
    return bytes.subarray(end + END.length);
  }

  head(): Head {
    const status = Number(/^HTTP\/1\.1 ([2-5]\d\d)(?: |\r|$)/.exec(this.#text)?.[1]);
    if (Number.isNaN(status)) throw new Error("the answer is not one of HTTP");
    // The server's own answers say how long they are.
    if (/\r\ntransfer-encoding:/i.test(this.#text)) throw new Error("the answer comes in chunks");
    const said = /\r\ncontent-length: *(\d{1,15}) *(?:\r|$)/i.exec(this.#text)?.[1];
    const length = status === 204 || status === 304 ? 0 : said === undefined ? undefined : Number(said);
    return { status, length, keeps: !/\r\nconnection: *close/i.test(this.#text) };
  }
}
