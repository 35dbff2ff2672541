/** A command inside, as a caller far from it holds it. */
import type { WebSocket } from "ws";
import type { Command, CommandEnd } from "../../base/schema/command.ts";
import { VivError, type ErrorBody } from "../../base/schema/errors.ts";
import { CHANNEL } from "../../base/schema/routes.ts";
import type { SocketMessageOf } from "../../base/schema/stream-routes.ts";
import { Intake, sendBytes, toBuffer } from "../../base/wire/wire.ts";

/** Output that may wait for its reader before the server is made to wait. */
const UNREAD_BYTES = 256 * 1024;
const STDIN = Buffer.of(CHANNEL.stdin);

type CommandOutput = { readonly stream: "stdout" | "stderr"; readonly data: Buffer } | { readonly stream: "gap"; readonly bytes: number };

export class CommandStream {
  /** Output in order; ends when the command has ended. Not reading it makes the command wait. */
  readonly output: AsyncIterable<CommandOutput>;
  readonly #socket: WebSocket;
  readonly #intake: Intake;
  readonly #started = Promise.withResolvers<Command>();
  readonly #ended = Promise.withResolvers<CommandEnd>();
  #command: Command | undefined;
  #unread: CommandOutput[] = [];
  #unreadBytes = 0;
  #over = false;
  #failure: VivError | undefined;
  #wake: (() => void) | undefined;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    this.#intake = new Intake(socket);
    this.output = this.#read();
    // A rejection must not end the process of a caller that does not await these.
    this.#ended.promise.catch(() => undefined);
    this.#started.promise.catch(() => undefined);
    socket.on("message", (data, binary) => (binary ? this.#data(toBuffer(data)) : this.#message(toBuffer(data))));
    socket.on("close", () =>
      this.#finish(new VivError("server_unreachable", "The connection to the server broke off before the command ended.")),
    );
  }

  /** Resolves when the server says the command has started. */
  static async over(socket: WebSocket, opening?: string): Promise<CommandStream> {
    const stream = new CommandStream(socket);
    socket.resume();
    if (opening !== undefined) socket.send(opening);
    stream.#command = await stream.#started.promise;
    return stream;
  }

  get command(): Command {
    if (this.#command === undefined) throw new VivError("internal", "The command has not started.");
    return this.#command;
  }

  get end(): Promise<CommandEnd> {
    return this.#ended.promise;
  }

  write(data: Uint8Array): Promise<void> {
    return sendBytes(this.#socket, data, STDIN);
  }

  endInput(): void {
    this.#send({ type: "stdin-end" });
  }

  resize(rows: number, cols: number): void {
    this.#send({ type: "resize", rows, cols });
  }

  signal(signal: string): void {
    this.#send({ type: "signal", signal });
  }

  /** Goes away: the command is killed or kept, as it was opened. */
  close(): void {
    this.#intake.resume();
    // Input that the command does not read any more would be sent before the close, and delay it.
    if (this.#socket.bufferedAmount > 0) this.#socket.terminate();
    else this.#socket.close(1000);
  }

  #send(message: SocketMessageOf<"exec" | "attach", "client">): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #data(frame: Buffer): void {
    this.#put({ stream: frame[0] === CHANNEL.stderr ? "stderr" : "stdout", data: frame.subarray(1) }, frame.length);
  }

  #message(text: Buffer): void {
    const message = JSON.parse(text.toString("utf8")) as SocketMessageOf<"exec" | "attach", "server">;
    if (message.type === "started") this.#started.resolve(message.command);
    else if (message.type === "gap") this.#put({ stream: "gap", bytes: message.bytes }, 0);
    else if (message.type === "error") this.#finish(VivError.fromBody({ error: message.error } as ErrorBody));
    else {
      this.#ended.resolve(message.end);
      this.#finish(undefined);
    }
  }

  #put(output: CommandOutput, bytes: number): void {
    this.#unread.push(output);
    this.#unreadBytes += bytes;
    if (this.#unreadBytes > UNREAD_BYTES) this.#intake.pause();
    this.#wake?.();
  }

  #finish(failure: VivError | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#failure = failure;
    if (failure !== undefined) {
      this.#started.reject(failure);
      this.#ended.reject(failure);
    }
    this.#wake?.();
  }

  async *#read(): AsyncGenerator<CommandOutput, void, void> {
    for (;;) {
      const next = this.#unread.shift();
      if (next !== undefined) {
        this.#unreadBytes -= next.stream === "gap" ? 0 : next.data.length + 1;
        if (this.#unreadBytes <= UNREAD_BYTES / 2) this.#intake.resume();
        yield next;
      } else if (this.#over) {
        if (this.#failure !== undefined) throw this.#failure;
        return;
      } else {
        await new Promise<void>((resolve) => (this.#wake = resolve));
        this.#wake = undefined;
      }
    }
  }
}
