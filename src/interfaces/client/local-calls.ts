/**
 * Calls over the server's Unix socket: text out, text back, one after the other over connections that are kept. Node's own client
 * makes a dozen objects for each request, which take longer than the server does for most calls.
 */
import { createConnection, type Socket } from "node:net";
import { HeadReader, type Head } from "./answer-head.ts";
import { unreachable, type HttpRequest } from "./transport.ts";

const MOST_KEPT = 16;
/** Shorter than the server's own patience, so that no call goes into a connection that the server is closing. */
const KEPT_MS = 30_000;
/** What can stand in the first line of a request as it is. */
const PLAIN = /^[\x21-\x7e]+$/;

export interface TextAnswer {
  readonly status: number;
  readonly text: string;
}

type TextRequest = Pick<HttpRequest, "method" | "path" | "contentType" | "signal"> & { readonly body?: string };

/** Whether a request can go this way: its body is text or absent, and it has no headers of its own. */
export function isPlain(request: HttpRequest): request is TextRequest {
  return typeof request.body !== "object" && request.headers === undefined && PLAIN.test(request.path);
}

export class LocalCalls {
  readonly #path: string;
  readonly #idle: LocalConnection[] = [];
  #sweep: NodeJS.Timeout | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  async ask(request: TextRequest): Promise<TextAnswer> {
    const { signal } = request;
    if (signal?.aborted === true) throw unreachable(aborted());
    const connection = this.#idle.pop() ?? new LocalConnection(createConnection(this.#path), (gone) => this.#forget(gone));
    const cancel = (): void => connection.fail(aborted());
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      const answer = await connection.ask(wordsOf(request));
      if (connection.isReusable) this.#keep(connection);
      return answer;
    } catch (error) {
      throw unreachable(error);
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  close(): void {
    clearTimeout(this.#sweep);
    for (const connection of this.#idle.splice(0)) connection.close();
  }

  #keep(connection: LocalConnection): void {
    if (this.#idle.length >= MOST_KEPT) return connection.close();
    this.#idle.push(connection);
    this.#sweep ??= setTimeout(() => this.#closeOld(), KEPT_MS).unref();
  }

  /** One timer for all: a timer for each call would cost more than the call needs of the rest. */
  #closeOld(): void {
    const now = performance.now();
    for (const connection of this.#idle.filter(({ idleSince }) => now - idleSince >= KEPT_MS / 2)) connection.close();
    this.#sweep = this.#idle.length === 0 ? undefined : setTimeout(() => this.#closeOld(), KEPT_MS / 2).unref();
  }

  #forget(connection: LocalConnection): void {
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }
}

function aborted(): Error {
  return new DOMException("The call was cancelled.", "AbortError");
}

function wordsOf({ method, path, body, contentType }: TextRequest): string {
  const type = contentType === undefined ? "" : `Content-Type: ${contentType}\r\n`;
  const length = body === undefined ? "" : `Content-Length: ${Buffer.byteLength(body)}\r\n`;
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${type}${length}\r\n${body ?? ""}`;
}

/** One connection, on which one call at a time is under way. While it is idle it does not keep the program running. */
class LocalConnection {
  readonly #socket: Socket;
  readonly #onGone: (connection: LocalConnection) => void;
  #asked: PromiseWithResolvers<TextAnswer> | undefined;
  #head = new HeadReader();
  #known: Head | undefined;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #isReusable = true;
  idleSince = 0;

  constructor(socket: Socket, onGone: (connection: LocalConnection) => void) {
    this.#socket = socket;
    this.#onGone = onGone;
    socket
      .on("data", (chunk) => this.#receive(chunk))
      .on("error", (error) => this.fail(error))
      .on("end", () => this.#ended())
      .on("close", () => this.fail(new Error("the connection was closed before the answer was whole")));
  }

  get isReusable(): boolean {
    return this.#isReusable;
  }

  ask(words: string): Promise<TextAnswer> {
    const asked = newPromise<TextAnswer>();
    this.#asked = asked;
    this.#socket.ref();
    this.#socket.write(words);
    return asked.promise;
  }

  /** Ends the call that is under way, if there is one, and the connection with it. */
  fail(error: Error): void {
    const asked = this.#asked;
    this.close();
    asked?.reject(error);
  }

  close(): void {
    this.#isReusable = false;
    this.#asked = undefined;
    this.#onGone(this);
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    // Nothing is said before it is asked for.
    if (this.#asked === undefined) return this.close();
    try {
      this.#take(chunk);
    } catch (error) {
      this.fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #take(chunk: Buffer): void {
    let rest: Buffer | undefined = chunk;
    if (this.#known === undefined) {
      rest = this.#head.take(chunk);
      if (rest === undefined) return;
      this.#known = this.#head.head();
    }
    this.#chunks.push(rest);
    this.#bytes += rest.length;
    const { length } = this.#known;
    if (length !== undefined && this.#bytes > length) throw new Error("more came than the answer has");
    if (this.#bytes === length) this.#answer(this.#known);
  }

  /** An answer that does not say how long it is ends with its connection. */
  #ended(): void {
    this.#isReusable = false;
    if (this.#known !== undefined && this.#known.length === undefined) this.#answer(this.#known);
    else this.fail(new Error("the connection ended before the answer was whole"));
  }

  #answer({ status, keeps, length }: Head): void {
    const asked = this.#asked;
    const [only, ...more] = this.#chunks;
    const bytes = more.length === 0 && only !== undefined ? only : Buffer.concat(this.#chunks);
    this.#asked = undefined;
    this.#head = new HeadReader();
    this.#known = undefined;
    this.#chunks = [];
    this.#bytes = 0;
    if (keeps && length !== undefined) {
      this.idleSince = performance.now();
      this.#socket.unref();
    } else this.close();
    asked?.resolve({ status, text: bytes.toString("utf8") });
  }
}

/** `Promise.withResolvers` is younger than the oldest Node that the client runs on. */
function newPromise<Value>(): PromiseWithResolvers<Value> {
  let resolve: (value: Value | PromiseLike<Value>) => void = () => undefined;
  let reject: (reason?: unknown) => void = () => undefined;
  const promise = new Promise<Value>((keep, refuse) => {
    resolve = keep;
    reject = refuse;
  });
  return { promise, resolve, reject };
}
