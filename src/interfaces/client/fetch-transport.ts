/** How a page in a browser, or another program with no more than the web's own interfaces, reaches a server. */
import { VivError } from "../../base/schema/errors.ts";
import { SESSION_KEY_HEADER, SOCKET_KEY_PREFIX, SOCKET_PROTOCOL, SOCKET_TOKEN_PREFIX } from "../../base/schema/routes.ts";
import {
  errorOf,
  MAX_ERROR_BYTES,
  readText,
  unreachable,
  type Answer,
  type Channel,
  type HttpRequest,
  type Transport,
} from "./transport.ts";

/** Bytes that may wait to be sent before a sender waits. */
const SEND_WINDOW_BYTES = 256 * 1024;
const LOOK_AGAIN_MS = 10;

type Chunks = AsyncIterable<Uint8Array>;

/** Not all browsers iterate over a stream by themselves. */
async function* chunksOf(stream: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array, void, void> {
  if (stream === null) return;
  const reader = stream.getReader();
  let whole = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      yield value;
    }
    whole = true;
  } finally {
    // A reader that leaves early lets the server know.
    if (!whole) await reader.cancel().catch(() => undefined);
  }
}

/** Browsers send no streams over HTTP/1, so an upload is put together first. */
async function bodyOf(body: string | Chunks): Promise<string | Blob> {
  if (typeof body === "string") return body;
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for await (const chunk of body) parts.push(new Uint8Array(chunk));
  return new Blob(parts);
}

/** A program with the server's token, or a page of the dashboard with the key of its session, whose cookie the browser sends. */
type Caller = { readonly token: string } | { readonly key: string };

/** How requests and WebSockets say who calls. */
interface Proof {
  readonly header: readonly [name: string, value: string];
  readonly protocol: string;
}

export class FetchTransport implements Transport<Chunks> {
  readonly #url: string;
  readonly #proof: Proof;

  constructor(options: { readonly url: string } & Caller) {
    this.#url = options.url.replace(/\/$/, "");
    this.#proof =
      "token" in options
        ? { header: ["authorization", `Bearer ${options.token}`], protocol: `${SOCKET_TOKEN_PREFIX}${options.token}` }
        : { header: [SESSION_KEY_HEADER, options.key], protocol: `${SOCKET_KEY_PREFIX}${options.key}` };
  }

  async send({ method, path, body, contentType, headers, signal }: HttpRequest): Promise<Answer<Chunks>> {
    const content = body === undefined ? undefined : await bodyOf(body);
    try {
      const response = await fetch(`${this.#url}${path}`, {
        method,
        headers: {
          [this.#proof.header[0]]: this.#proof.header[1],
          ...(contentType === undefined ? {} : { "content-type": contentType }),
          ...headers,
        },
        redirect: "manual",
        cache: "no-store",
        ...(content === undefined ? {} : { body: content }),
        ...(signal === undefined ? {} : { signal }),
      });
      const { status, statusText } = response;
      return { status, statusText, headers: new Map(response.headers.entries()), body: chunksOf(response.body) };
    } catch (error) {
      throw unreachable(error);
    }
  }

  async request(request: HttpRequest): Promise<Answer<Chunks>> {
    const answer = await this.send(request);
    if (answer.status >= 200 && answer.status < 300) return answer;
    throw errorOf(await readText(answer.body, MAX_ERROR_BYTES), answer.status);
  }

  async json<Value>(request: HttpRequest): Promise<Value> {
    return JSON.parse(await readText((await this.request(request)).body)) as Value;
  }

  /** A browser sends no header with a WebSocket, so that goes among the subprotocols. */
  async webSocket(path: string, protocols: readonly string[] = [SOCKET_PROTOCOL]): Promise<Channel> {
    if (!("WebSocket" in globalThis))
      throw new VivError("unsupported", "This runtime has no WebSocket.", {
        remedy: 'Import "vivarium" instead of "vivarium/client", or use Node 22 or newer.',
      });
    const url = `${this.#url.replace(/^http/, "ws")}${path}`;
    const socket = new WebSocket(url, [...protocols, this.#proof.protocol]);
    socket.binaryType = "arraybuffer";
    const channel = browserChannel(socket);
    return new Promise((resolve, reject) => {
      socket.addEventListener("open", () => resolve(channel), { once: true });
      // A browser does not tell a page why.
      const refused = (): void => reject(new VivError("server_unreachable", "The server refused the connection, or can't be reached."));
      socket.addEventListener("error", refused, { once: true });
      socket.addEventListener("close", refused, { once: true });
    });
  }

  close(): void {
    // The browser closes its connections by itself.
  }
}

/** Messages that come before the listener wait for it. */
function browserChannel(socket: WebSocket): Channel {
  const early: (string | Uint8Array)[] = [];
  let hear = (data: string | Uint8Array): void => void early.push(data);
  socket.addEventListener("message", ({ data }: { data: string | ArrayBuffer }) =>
    hear(typeof data === "string" ? data : new Uint8Array(data)),
  );
  return {
    get isOpen() {
      return socket.readyState === socket.OPEN;
    },
    get protocol() {
      return socket.protocol;
    },
    async send(data) {
      if (socket.readyState !== socket.OPEN) throw new VivError("server_unreachable", "The connection is closed.");
      socket.send(typeof data === "string" ? data : new Uint8Array(data));
      while (socket.bufferedAmount > SEND_WINDOW_BYTES) await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    },
    pause: () => undefined,
    resume: () => undefined,
    close: () => socket.close(1000),
    listen(listener) {
      socket.addEventListener("close", ({ code }) => listener.close(code), { once: true });
      hear = (data) => listener.message(data);
      for (const data of early.splice(0)) listener.message(data);
      if (socket.readyState === socket.CLOSED) listener.close(1006);
    },
  };
}
