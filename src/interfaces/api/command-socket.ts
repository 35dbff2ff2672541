/** A command over a WebSocket: what the caller says goes to it, what it writes goes to the caller. */
import type { WebSocket } from "ws";
import type { Streams } from "../operations/operations.ts";
import { VivError } from "../../base/schema/errors.ts";
import { CHANNEL } from "../../base/schema/routes.ts";
import { STREAM_ROUTES, type SocketMessageOf } from "../../base/schema/stream-routes.ts";
import type { ExecOpen } from "../../base/schema/streams.ts";
import { Intake, sendBytes, toBuffer } from "../../base/wire/wire.ts";
import { parse, parseObject } from "./input.ts";

const OPEN_TIMEOUT_MS = 10_000;
const { opening: Opening, client: ClientMessage } = STREAM_ROUTES.exec.output.messages;

type CommandStream = Awaited<ReturnType<Streams["exec"]>>;
type Take = (data: Buffer, binary: boolean) => void;

function send(socket: WebSocket, message: SocketMessageOf<"exec" | "attach", "server">): void {
  if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(message));
}

function fail(socket: WebSocket, error: unknown): void {
  send(socket, { type: "error", ...VivError.from(error).toBody() });
  socket.close(1011);
}

/** Messages of a caller. A paused socket still emits those that came in one piece with the last: they are kept until the command takes them. */
class Inbox {
  readonly #socket: WebSocket;
  readonly #kept: Parameters<Take>[] = [];
  #take: Take | undefined;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data, binary) => {
      if (this.#take === undefined) this.#kept.push([toBuffer(data), binary]);
      else this.#take(toBuffer(data), binary);
    });
  }

  /** The first message, which says what to run. */
  async opening(): Promise<ExecOpen> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new VivError("timeout", "No message said what to run.")), OPEN_TIMEOUT_MS);
      this.#socket.once("close", () => {
        clearTimeout(timer);
        reject(new VivError("cancelled", "The caller went away."));
      });
      this.#take = (data, binary) => {
        clearTimeout(timer);
        // What follows belongs to the command and waits until it runs.
        this.#take = undefined;
        this.#socket.pause();
        try {
          if (binary) throw new VivError("invalid_input", "The first message is not text.");
          resolve(parse(Opening, parseObject(data)));
        } catch (error) {
          reject(error);
        }
      };
      this.#socket.resume();
    });
  }

  /** Hands over all messages, those that were kept first. */
  handTo(take: Take): void {
    for (const message of this.#kept.splice(0)) take(...message);
    this.#take = take;
  }
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

async function carry(socket: WebSocket, inbox: Inbox, stream: CommandStream, closing: AbortSignal): Promise<void> {
  let over = false;
  // When the server stops, the command goes on; when the caller goes, it ends as it was opened.
  socket.once("close", () => {
    if (!over && !closing.aborted) stream.close();
  });
  const messages = new CallerMessages(stream, new Intake(socket), (error) => fail(socket, error));
  send(socket, { type: "started", command: stream.command });
  inbox.handTo((data, binary) => messages.take(data, binary));
  socket.resume();
  await sendOutput(socket, stream);
  const end = await stream.end;
  over = true;
  send(socket, { type: "exit", end });
  socket.close(1000);
}

/** Starts a command, or finds it, and carries messages until it ends or the caller goes. */
export async function converse(socket: WebSocket, start: (inbox: Inbox) => Promise<CommandStream>, closing: AbortSignal): Promise<void> {
  const inbox = new Inbox(socket);
  try {
    const stream = await start(inbox);
    if (socket.readyState !== socket.OPEN) return stream.close();
    await carry(socket, inbox, stream, closing);
  } catch (error) {
    socket.resume();
    fail(socket, error);
  }
}
