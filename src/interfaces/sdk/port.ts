/** A port inside a sandbox. */
import { errorOf, MAX_ERROR_BYTES, readText, type Answer, type Channel } from "../client/transport.ts";
import { refuseUnknown, type CallOptions, type Connection } from "./connection.ts";
import "./dispose.ts";
import type { OpenPort } from "./platform.ts";

export interface FetchOptions extends CallOptions {
  readonly method?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array> | undefined;
}

/** Every answer that comes from inside has it; the server's own have not. */
const FROM_INSIDE = "content-security-policy";
const WITHOUT_BODY = new Set([204, 205, 304]);

/** A port inside a sandbox, reached through the server. */
export class Port {
  /** Its number inside. */
  readonly number: number;
  readonly #connection: Connection;
  readonly #sandbox: string;

  /** @internal */
  constructor(connection: Connection, sandbox: string, port: number) {
    this.#connection = connection;
    this.#sandbox = sandbox;
    this.number = port;
  }

  /** HTTP to the port. As with `fetch`, an answer of any status is a value. */
  async fetch(path = "/", options: FetchOptions = {}): Promise<Response> {
    refuseUnknown("port.fetch", options, ["method", "headers", "body", "signal"]);
    const { method = "GET", headers, body, signal } = options;
    const request = {
      method,
      path: absolute(path),
      ...(headers === undefined ? {} : { headers }),
      ...(body === undefined ? {} : { body: body instanceof Uint8Array ? once(body) : body }),
      ...(signal === undefined ? {} : { signal }),
    };
    const answer = await this.#connection.use((client) => client.askPort(this.#sandbox, this.number, request), signal);
    if (!answer.headers.has(FROM_INSIDE) && answer.status >= 400) {
      throw errorOf(await readText(answer.body, MAX_ERROR_BYTES), answer.status);
    }
    return responseOf(answer, method);
  }

  /** A WebSocket to the port. */
  async webSocket(path = "/", options: { readonly protocols?: readonly string[] } = {}): Promise<PortSocket> {
    refuseUnknown("port.webSocket", options, ["protocols"]);
    const channel = await this.#connection.use((client) =>
      client.portSocket(this.#sandbox, this.number, absolute(path), options.protocols ?? []),
    );
    return new PortSocket(channel);
  }

  /** Opens a port of this machine, on 127.0.0.1, that leads to this one; any free one if none is given. Node only. */
  async listen(options: { readonly port?: number } = {}): Promise<LocalPort> {
    refuseUnknown("port.listen", options, ["port"]);
    const machine = await this.#connection.machine("port.listen");
    return new LocalPort(await machine.listen(this.#sandbox, this.number, options.port ?? 0));
  }
}

function absolute(path: string): string {
  return path.startsWith("/") ? path : `/${path}`;
}

async function* once(data: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  yield data;
}

function responseOf({ status, statusText, headers, body }: Answer<AsyncIterable<Uint8Array>>, method: string): Response {
  const empty = method === "HEAD" || WITHOUT_BODY.has(status);
  return new Response(empty ? null : streamOf(body), { status, statusText, headers: [...headers] });
}

function streamOf(body: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = body[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done === true) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}

/** A port of this machine that leads into a sandbox, until it is closed. */
export class LocalPort {
  readonly port: number;
  /** Such as http://127.0.0.1:40123. */
  readonly url: string;
  readonly #opened: OpenPort;

  /** @internal */
  constructor(opened: OpenPort) {
    this.#opened = opened;
    this.port = opened.port;
    this.url = `http://127.0.0.1:${opened.port}`;
  }

  /** Closes it, and its connections. */
  async close(): Promise<void> {
    await this.#opened.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** A WebSocket to a port inside. Iterating over it gives its messages until it is closed. */
export class PortSocket implements AsyncIterable<string | Uint8Array> {
  /** The subprotocol that the program inside chose. */
  readonly protocol: string;
  readonly #channel: Channel;
  readonly #unread: (string | Uint8Array)[] = [];
  #closed = false;
  #wake: (() => void) | undefined;

  /** @internal */
  constructor(channel: Channel) {
    this.#channel = channel;
    this.protocol = channel.protocol;
    channel.listen({
      message: (data) => {
        this.#unread.push(data);
        channel.pause();
        this.#wake?.();
      },
      close: () => {
        this.#closed = true;
        this.#wake?.();
      },
    });
  }

  send(data: string | Uint8Array): Promise<void> {
    return this.#channel.send(data);
  }

  close(): void {
    this.#channel.close();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string | Uint8Array, void, void> {
    for (;;) {
      const next = this.#unread.shift();
      if (next !== undefined) yield next;
      else if (this.#closed) return;
      else {
        const woken = new Promise<void>((resolve) => (this.#wake = resolve));
        this.#channel.resume();
        await woken;
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}
