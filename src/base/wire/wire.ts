/** What both ends of a WebSocket share: flow control, and a TCP connection as messages. */
import { Duplex } from "node:stream";
import type { RawData, WebSocket } from "ws";
import type { ScreenMessage, TunnelMessage } from "../schema/streams.ts";

/** Bytes that may wait to be sent before a sender waits. */
const SEND_WINDOW_BYTES = 256 * 1024;
/** Bytes of one message at most; receivers refuse larger ones. */
const MESSAGE_BYTES = 256 * 1024;
const PAUSED_PING_MS = 2_000;
const END_OF_STREAM: TunnelMessage = { type: "end" };

export function toBuffer(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}

/** Sends a message; resolves at once while the other side keeps up, and when it has caught up otherwise. */
export function sendInFlow(socket: WebSocket, data: Uint8Array | string): Promise<void> {
  if (socket.readyState !== socket.OPEN) return Promise.reject(new Error("the connection is closed"));
  if (socket.bufferedAmount < SEND_WINDOW_BYTES) {
    socket.send(data);
    return Promise.resolve();
  }
  return new Promise((resolve, reject) => socket.send(data, (error) => (error ? reject(error) : resolve())));
}

/** Sends bytes in messages of bounded size, each behind the same prefix. */
export async function sendBytes(socket: WebSocket, data: Uint8Array, prefix: Uint8Array = Buffer.alloc(0)): Promise<void> {
  for (let at = 0; at < data.length; at += MESSAGE_BYTES) {
    const part = data.subarray(at, at + MESSAGE_BYTES);
    await sendInFlow(
      socket,
      prefix.length === 0 ? Buffer.from(part.buffer, part.byteOffset, part.byteLength) : Buffer.concat([prefix, part]),
    );
  }
}

/** Pauses a socket so that its sender waits. A paused socket does not see its peer go, so it is pinged meanwhile: writing finds out. */
export class Intake {
  readonly #socket: WebSocket;
  #ping: NodeJS.Timeout | undefined;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.once("close", () => clearInterval(this.#ping));
  }

  pause(): void {
    if (this.#socket.isPaused || this.#socket.readyState !== this.#socket.OPEN) return;
    this.#socket.pause();
    this.#ping = setInterval(() => {
      if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
    }, PAUSED_PING_MS);
    this.#ping.unref();
  }

  resume(): void {
    clearInterval(this.#ping);
    if (this.#socket.isPaused) this.#socket.resume();
  }
}

/** The screen of a desktop tells who has control, too: that is for those who ask for it. */
function isEnd(text: string): boolean {
  try {
    return (JSON.parse(text) as ScreenMessage).type !== "control";
  } catch {
    return true;
  }
}

/** A byte stream over a WebSocket, with back-pressure both ways and half-close. */
export class SocketStream extends Duplex {
  readonly #socket: WebSocket;
  readonly #intake: Intake;
  #ended = false;

  constructor(socket: WebSocket) {
    super({ allowHalfOpen: true });
    this.#socket = socket;
    this.#intake = new Intake(socket);
    socket.on("message", (data, binary) => {
      if (!binary) {
        if (isEnd(toBuffer(data).toString())) this.#end();
      } else if (!this.push(toBuffer(data))) this.#intake.pause();
    });
    socket.on("error", (error) => this.destroy(error));
    socket.on("close", (code) => {
      if (this.#ended || code === 1000) this.#end();
      else this.destroy(new Error("the connection broke off"));
    });
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.push(null);
  }

  override _read(): void {
    this.#intake.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    sendBytes(this.#socket, chunk).then(() => done(), done);
  }

  override _final(done: (error?: Error | null) => void): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(JSON.stringify(END_OF_STREAM));
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#intake.resume();
    if (error === null) this.#socket.close(1000);
    else this.#socket.terminate();
    done(error);
  }
}

function destroyWith(one: Duplex, other: Duplex): void {
  one.on("error", () => other.destroy());
  one.once("close", () => {
    if (!one.readableEnded || !one.writableFinished) other.destroy();
  });
}

/** Joins two connections: an end on one side ends the other's input, a break breaks both. stream.pipeline would close a side that still has to answer. */
export function join(one: Duplex, other: Duplex): void {
  destroyWith(one, other);
  destroyWith(other, one);
  one.pipe(other);
  other.pipe(one);
}
