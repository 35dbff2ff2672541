/** A command inside, as a caller far from it holds it. */
import { settlable } from "./settlable.ts";
import type { Command, CommandEnd, HandedOutput } from "../../base/schema/command.ts";
import { VivError, type ErrorBody } from "../../base/schema/errors.ts";
import { CHANNEL } from "../../base/schema/routes.ts";
import type { SocketMessageOf } from "../../base/schema/stream-routes.ts";
import type { Channel } from "./transport.ts";

/** Output that may wait for its reader before the server is made to wait. */
const UNREAD_BYTES = 256 * 1024;
/** Bytes of one message at most; the server refuses larger ones. */
const MESSAGE_BYTES = 256 * 1024;

type CommandOutput =
  | { readonly stream: "stdout" | "stderr"; readonly data: Uint8Array }
  | { readonly stream: "gap"; readonly bytes: number };

/** What a caller does with a command, wherever it holds it. */
export interface CommandStream {
  readonly command: Command;
  /** Output in order; ends when the command has ended. Not reading it makes the command wait. */
  readonly output: AsyncIterable<CommandOutput>;
  readonly end: Promise<CommandEnd>;
  write(data: Uint8Array): Promise<void>;
  endInput(): void;
  resize(rows: number, cols: number): void;
  signal(signal: string): void;
  /** Goes away: the command is killed or kept, as it was opened. */
  close(): void;
  /**
   * From now on another program reads the output: `take` is awaited between the last that comes here and the rest. Absent, or false,
   * where output can't be handed over.
   */
  handOver?(take: (handed: HandedOutput) => Promise<void>): boolean;
  /** Output that no reader has taken comes here again. */
  handBack?(): void;
}

export class ChannelCommand implements CommandStream {
  readonly output: AsyncIterable<CommandOutput>;
  readonly #channel: Channel;
  readonly #started = settlable<Command>();
  readonly #ended = settlable<CommandEnd>();
  #command: Command | undefined;
  #unread: CommandOutput[] = [];
  #unreadBytes = 0;
  #over = false;
  #failure: VivError | undefined;
  #wake: (() => void) | undefined;

  private constructor(channel: Channel) {
    this.#channel = channel;
    this.output = this.#read();
    // A rejection must not end the process of a caller that does not await these.
    this.#ended.promise.catch(() => undefined);
    this.#started.promise.catch(() => undefined);
  }

  /** Resolves when the server says the command has started. */
  static async over(channel: Channel, opening?: string): Promise<CommandStream> {
    const stream = new ChannelCommand(channel);
    channel.listen({
      message: (data) => (typeof data === "string" ? stream.#message(data) : stream.#data(data)),
      close: () => stream.#finish(new VivError("server_unreachable", "The connection to the server broke off before the command ended.")),
    });
    if (opening !== undefined) await channel.send(opening);
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

  async write(data: Uint8Array): Promise<void> {
    for (let at = 0; at < data.length; at += MESSAGE_BYTES) {
      const part = data.subarray(at, at + MESSAGE_BYTES);
      const frame = new Uint8Array(part.length + 1);
      frame[0] = CHANNEL.stdin;
      frame.set(part, 1);
      await this.#channel.send(frame);
    }
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

  close(): void {
    this.#channel.close();
  }

  #send(message: SocketMessageOf<"exec" | "attach", "client">): void {
    // The end of a connection is told by its close.
    if (this.#channel.isOpen) this.#channel.send(JSON.stringify(message)).catch(() => undefined);
  }

  #data(frame: Uint8Array): void {
    this.#put({ stream: frame[0] === CHANNEL.stderr ? "stderr" : "stdout", data: frame.subarray(1) }, frame.length);
  }

  #message(text: string): void {
    const message = JSON.parse(text) as SocketMessageOf<"exec" | "attach", "server">;
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
    if (this.#unreadBytes > UNREAD_BYTES) this.#channel.pause();
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
        if (this.#unreadBytes <= UNREAD_BYTES / 2) this.#channel.resume();
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
