/** Reads the answer of a server outside. It is written anew for the client; what can't be understood ends the connection. */

export interface ResponseHead {
  readonly status: number;
  readonly phrase: string;
  /** Names and values in turn, as they came. */
  readonly headers: readonly string[];
}

export interface ResponseSink {
  head(head: ResponseHead): void;
  /** Bytes of the body; `done` when their memory is free again. */
  body(chunk: Buffer, done: () => void): void;
  end(): void;
  broken(): void;
}

const HEAD_END = Buffer.from("\r\n\r\n");
const MAX_LINE = 4096;

export class ResponseReader {
  readonly #sink: ResponseSink;
  readonly #headRequest: boolean;
  readonly #maxHead: number;
  #state: "head" | "length" | "until-end" | "chunk-size" | "chunk" | "chunk-end" | "trailer" | "done" = "head";
  /** Bytes of a head or a line that is not whole yet. */
  #rest = Buffer.alloc(0);
  #left = 0;

  constructor(sink: ResponseSink, options: { headRequest: boolean; maxHeadBytes: number }) {
    this.#sink = sink;
    this.#headRequest = options.headRequest;
    this.#maxHead = options.maxHeadBytes;
  }

  /** Bytes of the body that have not come yet, where their number is known and they come as they are. */
  get left(): number {
    return this.#state === "length" ? this.#left : 0;
  }

  /** What was left has gone another way. */
  passedBy(): void {
    if (this.#state === "length") this.#finish();
  }

  take(chunk: Buffer, done: () => void): void {
    // One more than there are bodies in the chunk, so that it is not free before all of it was seen.
    let held = 1;
    const release = (): void => {
      held -= 1;
      if (held === 0) done();
    };
    let data = chunk;
    while (data.length > 0 && this.#state !== "done") {
      if (this.#state === "length" || this.#state === "until-end" || this.#state === "chunk") {
        const body = this.#state === "until-end" ? data : data.subarray(0, this.#left);
        data = data.subarray(body.length);
        held += 1;
        this.#sink.body(body, release);
        if (this.#state !== "until-end") this.#passed(body.length);
      } else data = this.#state === "head" ? this.#readHead(data) : this.#readLine(data);
    }
    release();
  }

  /** The server has ended its side. */
  ended(): void {
    if (this.#state === "until-end") this.#finish();
    else if (this.#state !== "done") this.#break();
  }

  #passed(bytes: number): void {
    this.#left -= bytes;
    if (this.#left > 0) return;
    if (this.#state === "length") this.#finish();
    else this.#state = "chunk-end";
  }

  #finish(): void {
    this.#state = "done";
    this.#sink.end();
  }

  #break(): Buffer {
    this.#state = "done";
    this.#sink.broken();
    return this.#rest.subarray(0, 0);
  }

  #readHead(data: Buffer): Buffer {
    // Small, and copied out of memory that others use.
    const all = Buffer.concat([this.#rest, data]);
    const end = all.indexOf(HEAD_END);
    if (end < 0 || end > this.#maxHead) {
      if (all.length > this.#maxHead) return this.#break();
      this.#rest = all;
      return data.subarray(data.length);
    }
    const used = end + HEAD_END.length - this.#rest.length;
    this.#rest = Buffer.alloc(0);
    const head = readHead(all.toString("latin1", 0, end));
    if (head === undefined) return this.#break();
    // An interim answer, such as 103; the real one follows.
    if (head.status >= 100 && head.status < 200) return head.status === 101 ? this.#break() : data.subarray(used);
    return this.#begin(head) ? data.subarray(used) : this.#break();
  }

  #begin(head: ResponseHead): boolean {
    const framing = framingOf(head, this.#headRequest);
    if (framing === undefined) return false;
    // Where there are two lengths, one reader uses the first and another the second.
    this.#sink.head(framing.isChunked ? { ...head, headers: without(head.headers, "content-length") } : head);
    this.#left = typeof framing.body === "number" ? framing.body : 0;
    if (framing.body === 0) this.#finish();
    else if (framing.body === "all") this.#state = framing.isChunked ? "chunk-size" : "until-end";
    else this.#state = "length";
    return true;
  }

  /** One line of the framing of chunks. */
  #readLine(data: Buffer): Buffer {
    const end = data.indexOf(10);
    const part = end < 0 ? data : data.subarray(0, end + 1);
    const line = Buffer.concat([this.#rest, part]);
    if (line.length > MAX_LINE) return this.#break();
    this.#rest = end < 0 ? line : Buffer.alloc(0);
    if (end >= 0 && !this.#line(line.toString("latin1").replace(/\r?\n$/, ""))) return this.#break();
    return data.subarray(part.length);
  }

  #line(text: string): boolean {
    if (this.#state === "chunk-end") {
      this.#state = "chunk-size";
      return text === "";
    }
    if (this.#state === "trailer") {
      if (text === "") this.#finish();
      return true;
    }
    const size = /^([0-9a-f]{1,12})[ \t]*(;.*)?$/i.exec(text)?.[1];
    if (size === undefined) return false;
    this.#left = Number.parseInt(size, 16);
    this.#state = this.#left === 0 ? "trailer" : "chunk";
    return true;
  }
}

/** Undefined where it is not clear how the body ends. A chunked answer may have no body. */
export function framingOf(
  { status, headers }: ResponseHead,
  headRequest: boolean,
): { readonly isChunked: boolean; readonly body: number | "all" } | undefined {
  const coding = values(headers, "transfer-encoding");
  const lengths = new Set(values(headers, "content-length"));
  if (coding.length > 1 || (coding.length === 1 && coding[0]?.toLowerCase() !== "chunked") || lengths.size > 1) return undefined;
  const [length] = lengths;
  if (length !== undefined && !/^\d{1,15}$/.test(length)) return undefined;
  const isChunked = coding.length === 1;
  const isBare = headRequest || status === 204 || status === 304;
  return { isChunked, body: isBare ? 0 : isChunked || length === undefined ? "all" : Number(length) };
}

/** Without the empty line at its end; undefined if it is none. */
export function readHead(text: string): ResponseHead | undefined {
  const [first = "", ...lines] = text.split("\r\n");
  const match = /^HTTP\/1\.[01] ([1-9]\d\d)(?: ([\t\x20-\x7e\x80-\xff]*))?$/.exec(first);
  if (match === null) return undefined;
  const headers: string[] = [];
  for (const line of lines) {
    const header = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/.exec(line);
    if (header === null) return undefined;
    headers.push(header[1] ?? "", header[2] ?? "");
  }
  return { status: Number(match[1]), phrase: match[2] ?? "", headers };
}

export function without(headers: readonly string[], unwanted: string): string[] {
  return headers.filter((_, index) => headers[index - (index % 2)]?.toLowerCase() !== unwanted);
}

function values(headers: readonly string[], wanted: string): string[] {
  return headers.filter((_, index) => index % 2 === 1 && headers[index - 1]?.toLowerCase() === wanted);
}
