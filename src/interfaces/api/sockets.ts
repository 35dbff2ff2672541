/** WebSocket routes: commands and tunnels. */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer, type WebSocket } from "ws";
import type { Streams } from "../operations/operations.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { CHANNEL, SOCKET_PROTOCOL } from "../../base/schema/routes.ts";
import { STREAM_ROUTES } from "../../base/schema/stream-routes.ts";
import { ClientMessage, ExecOpen, type ServerMessage } from "../../base/schema/streams.ts";
import { Intake, join, sendBytes, SocketStream, toBuffer } from "../../base/wire/wire.ts";
import { merge, parse, parseObject, readQuery } from "./input.ts";
import { pathOf } from "./guard.ts";

const OPEN_TIMEOUT_MS = 10_000;

type CommandStream = Awaited<ReturnType<Streams["exec"]>>;

function send(socket: WebSocket, message: ServerMessage): void {
  if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(message));
}

function fail(socket: WebSocket, error: unknown): void {
  send(socket, { type: "error", ...VivError.from(error).toBody() });
  socket.close(1011);
}

/** The first message, which says what to run. */
async function opening(socket: WebSocket): Promise<ExecOpen> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new VivError("timeout", "No message said what to run.")), OPEN_TIMEOUT_MS);
    socket.once("close", () => {
      clearTimeout(timer);
      reject(new VivError("cancelled", "The caller went away."));
    });
    socket.resume();
    socket.once("message", (data, binary) => {
      clearTimeout(timer);
      // What follows belongs to the command and waits until it runs.
      socket.pause();
      try {
        if (binary) throw new VivError("invalid_input", "The first message is not text.");
        resolve(parse(ExecOpen, parseObject(toBuffer(data))));
      } catch (error) {
        reject(error);
      }
    });
  });
}

/** Hands a caller's messages to a command, in order; while the command does not read, the caller waits. */
class CallerMessages {
  readonly #stream: CommandStream;
  readonly #intake: Intake;
  readonly #failed: (error: unknown) => void;
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;

  constructor(stream: CommandStream, intake: Intake, failed: (error: unknown) => void) {
    this.#stream = stream;
    this.#intake = intake;
    this.#failed = failed;
  }

  take(data: Buffer, binary: boolean): void {
    this.#waiting += 1;
    this.#intake.pause();
    this.#last = this.#last
      .then(() => (binary ? this.#input(data) : this.#control(data)))
      .catch(this.#failed)
      .then(() => {
        this.#waiting -= 1;
        if (this.#waiting === 0) this.#intake.resume();
      });
  }

  #input(data: Buffer): Promise<void> {
    if (data[0] !== CHANNEL.stdin) throw new VivError("invalid_input", "A binary message starts with the channel byte of standard input.");
    return this.#stream.write(data.subarray(1));
  }

  #control(data: Buffer): void {
    const message = parse(ClientMessage, parseObject(data));
    if (message.type === "resize") this.#stream.resize(message.rows, message.cols);
    else if (message.type === "signal") this.#stream.signal(message.signal);
    else this.#stream.endInput();
  }
}

async function sendOutput(socket: WebSocket, stream: CommandStream): Promise<void> {
  for await (const chunk of stream.output) {
    if (socket.readyState !== socket.OPEN) return;
    if (chunk.stream === "gap") send(socket, { type: "gap", bytes: chunk.bytes });
    else await sendBytes(socket, chunk.data, Buffer.of(CHANNEL[chunk.stream]));
  }
}

async function converse(socket: WebSocket, stream: CommandStream, closing: AbortSignal): Promise<void> {
  let over = false;
  // When the server stops, the command goes on; when the caller goes, it ends as it was opened.
  socket.once("close", () => {
    if (!over && !closing.aborted) stream.close();
  });
  const messages = new CallerMessages(stream, new Intake(socket), (error) => fail(socket, error));
  socket.on("message", (data, binary) => messages.take(toBuffer(data), binary));
  send(socket, { type: "started", command: stream.command });
  socket.resume();
  try {
    await sendOutput(socket, stream);
    const end = await stream.end;
    over = true;
    send(socket, { type: "exit", end });
    socket.close(1000);
  } catch (error) {
    fail(socket, error);
  }
}

export class Sockets {
  readonly #streams: Streams;
  readonly #closing: AbortSignal;
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: LIMITS.maxBodyBytes,
    perMessageDeflate: false,
    clientTracking: true,
    // Never echoes the protocol that carries the token.
    handleProtocols: (protocols) => (protocols.has(SOCKET_PROTOCOL) ? SOCKET_PROTOCOL : false),
  });

  constructor(streams: Streams, closing: AbortSignal) {
    this.#streams = streams;
    this.#closing = closing;
  }

  /** Rejects when the request names no WebSocket route, or before it was switched. */
  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const parts = pathOf(request).split("/").slice(1).map(decodeURIComponent);
    const [root, sandbox, kind, which, last] = parts;
    const query = readQuery(request.url ?? "");
    if (root === "sandboxes" && kind === "exec" && parts.length === 3) {
      const input = parse(STREAM_ROUTES.exec.input, merge({ sandbox: sandbox ?? "" }, query));
      const opened = await this.#switch(request, socket, head);
      return this.#command(opened, async () => this.#streams.exec(input.sandbox, await opening(opened)));
    }
    if (root === "sandboxes" && kind === "commands" && last === "attach" && parts.length === 5) {
      const input = parse(STREAM_ROUTES.attach.input, merge({ sandbox: sandbox ?? "", command: which ?? "" }, query));
      return this.#command(await this.#switch(request, socket, head), () =>
        this.#streams.attach(input.sandbox, input.command, input.stdin ?? false),
      );
    }
    if (root === "sandboxes" && kind === "ports" && last === "tunnel" && parts.length === 5) {
      const input = parse(STREAM_ROUTES.tunnel.input, merge({ sandbox: sandbox ?? "", port: which ?? "" }, query));
      return this.#tunnel(await this.#streams.dial(input.sandbox, input.port), request, socket, head);
    }
    throw new VivError("not_found", "There is no such WebSocket route.", { remedy: "See /docs for the routes there are." });
  }

  #switch(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<WebSocket> {
    return new Promise((resolve, reject) => {
      // A handshake that ws refuses is answered and closed by it.
      socket.once("close", () => reject(new VivError("cancelled", "The caller went away.")));
      this.#server.handleUpgrade(request, socket, head, (opened) => {
        opened.on("error", () => opened.terminate());
        // Until its listeners are there, what the caller sent along waits.
        opened.pause();
        resolve(opened);
      });
    });
  }

  async #command(socket: WebSocket, start: () => Promise<CommandStream>): Promise<void> {
    try {
      const stream = await start();
      if (socket.readyState !== socket.OPEN) return stream.close();
      await converse(socket, stream, this.#closing);
    } catch (error) {
      socket.resume();
      fail(socket, error);
    }
  }

  async #tunnel(inside: Duplex, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    inside.on("error", () => inside.destroy());
    try {
      join(new SocketStream(await this.#switch(request, socket, head)), inside);
    } catch (error) {
      inside.destroy();
      throw error;
    }
  }

  /** Says goodbye to everyone. */
  close(): void {
    for (const socket of this.#server.clients) {
      socket.resume();
      socket.close(1001);
    }
  }

  terminate(): void {
    for (const socket of this.#server.clients) socket.terminate();
  }
}
