/** A command in a sandbox, heard and steered over its own connection. */
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { chunkMaxBytes, encodeFields, encodeFrame, Fields, type Frame, FrameDecoder, KIND } from "../../../base/host/frames.ts";
import type { HandedOutput } from "../../../base/schema/command.ts";
import { VivError } from "../../../base/schema/errors.ts";
import { exitOf, outputOf } from "../command-frames.ts";
import type { OutputChunk, RawExit, RunningCommand } from "../drivers.ts";
import { errorOf, lost, type Subject } from "./cell-connection.ts";

/** Output that waits for its reader before the connection, and with it the command, is held. */
const waitingMaxBytes = 256 * 1024;
/** What a chunk costs beyond its bytes: a command that writes them one by one must not fill the queue with thousands. */
const chunkCostBytes = 256;

/** Process 1 accepts 32 to 64 digits. */
const tokenBytes = 32;
/** What the kernel takes for the path of a socket; Node finds ways around it, other programs do not. */
const socketPathMaxBytes = 107;

type Take = (handed: HandedOutput) => Promise<void>;

const costOf = (chunk: OutputChunk): number => chunkCostBytes + (chunk.stream === "gap" ? 0 : chunk.data.length);

export class CellCommand implements RunningCommand {
  readonly #socket: Socket;
  readonly #subject: Subject;
  readonly #decoder = new FrameDecoder();
  readonly #started = Promise.withResolvers<Fields>();
  readonly #exit = Promise.withResolvers<RawExit>();
  /** What stands between output is done in its order. */
  readonly #waiting: (OutputChunk | (() => Promise<void>))[] = [];
  #waitingBytes = 0;
  #wake: (() => void) | undefined;
  #ended = false;
  #detached = false;
  readonly #signalApart: (signal: number) => void;
  readonly #release: ((socket: Socket) => void) | undefined;
  #hasInput = false;
  /** Whether process 1 may still have to read more than the request: then the next request must not follow on this connection. */
  #hasSteered = false;
  /** The connection is another command's by now. */
  #hasLeft = false;
  #pid = 0;
  #offset = 0;
  readonly #onData = (chunk: Buffer): void => this.#receive(chunk);
  readonly #onError = (error: Error): void => this.#lose(error);
  // The connection is half-open by design: the end of process 1 shows as the end of its side.
  readonly #onEnd = (): void => void this.#socket.destroy();
  readonly #onClose = (): void => this.#lose();
  readonly #place: Omit<HandedOutput, "token"> | undefined;
  #hands = false;
  #handed: (() => Promise<void>) | undefined;

  /**
   * `signalApart` signals the command over another connection. `place` is where another program finds a command that was started here.
   * `release` gets the connection if process 1 keeps it after the end.
   */
  constructor(
    socket: Socket,
    subject: string | Subject,
    signalApart: (signal: number) => void,
    started: { readonly place?: Omit<HandedOutput, "token">; readonly release?: (socket: Socket) => void } = {},
  ) {
    this.#signalApart = signalApart;
    this.#place = started.place;
    this.#release = started.release;
    this.#socket = socket;
    this.#subject = typeof subject === "string" ? { name: subject } : subject;
    this.#exit.promise.catch(() => undefined); // who only waits for the start hears of a loss there
    socket.on("data", this.#onData).on("error", this.#onError).on("end", this.#onEnd).on("close", this.#onClose);
  }

  /** Resolves when the program runs; rejects when it cannot. */
  async started(): Promise<this> {
    const fields = await this.#started.promise;
    this.#pid = fields.number("pid") ?? 0;
    this.#offset = fields.number("offset") ?? 0;
    this.#hands = fields.flag("hands");
    return this;
  }

  /** Inside the sandbox; 0 for a command that was attached to. */
  get pid(): number {
    return this.#pid;
  }

  /** Bytes of output before what this connection hears. */
  get offset(): number {
    return this.#offset;
  }

  get exit(): Promise<RawExit> {
    return this.#exit.promise;
  }

  get output(): AsyncIterable<OutputChunk> {
    return this.#chunks();
  }

  async write(data: Uint8Array): Promise<void> {
    this.#hasInput = true;
    for (let at = 0; at < data.length; at += chunkMaxBytes) {
      await this.#send(encodeFrame(KIND.stdin, data.subarray(at, at + chunkMaxBytes)));
    }
  }

  endInput(): void {
    this.#hasInput = true;
    if (this.#isWritable) this.#socket.write(encodeFrame(KIND.stdinEnd));
  }

  resize(rows: number, cols: number): void {
    this.#steer(KIND.resize, [
      ["rows", String(rows)],
      ["cols", String(cols)],
    ]);
  }

  /** Behind input that the command does not read, a signal would wait for as long as the command runs. */
  signal(signal: number): void {
    if (this.#hasInput) this.#signalApart(signal);
    else this.#steer(KIND.signal, [["signal", String(signal)]]);
  }

  detach(): void {
    this.#detached = true;
    if (!this.#hasLeft) this.#socket.destroy();
  }

  /** A process 1 of an earlier version does not know of it. */
  handOver(take: Take): boolean {
    const place = this.#place;
    if (place === undefined || !this.#hands || this.#handed !== undefined || !this.#isWritable) return false;
    if (Buffer.byteLength(place.socket) > socketPathMaxBytes) return false;
    const token = randomBytes(tokenBytes).toString("hex");
    this.#hasSteered = true;
    this.#handed = () => take({ ...place, token });
    this.#socket.write(encodeFrame(KIND.hand, encodeFields([["token", token]])));
    return true;
  }

  handBack(): void {
    if (this.#handed !== undefined && this.#isWritable) this.#socket.write(encodeFrame(KIND.hand, encodeFields([["back", "1"]])));
  }

  /** Ends the command, whatever has become of it, and stops listening. */
  abandon(): void {
    this.signal(9);
    this.#detached = true;
    if (!this.#hasLeft) this.#socket.destroySoon();
  }

  get #isWritable(): boolean {
    return !this.#hasLeft && this.#socket.writable;
  }

  #steer(kind: typeof KIND.resize | typeof KIND.signal, fields: [string, string][]): void {
    this.#hasSteered = true;
    if (this.#isWritable) this.#socket.write(encodeFrame(kind, encodeFields(fields)));
  }

  /** Resolves when there is room for more; a command that has ended does not read the rest of its input. */
  #send(frame: Buffer): Promise<void> {
    if (!this.#isWritable || this.#socket.write(frame)) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        this.#socket.off("drain", done).off("close", done);
        resolve();
      };
      this.#socket.on("drain", done).on("close", done);
    });
  }

  #receive(chunk: Buffer): void {
    try {
      for (const frame of this.#decoder.push(chunk)) this.#take(frame);
    } catch (error) {
      this.#socket.destroy(error instanceof Error ? error : new Error(String(error)));
    }
    this.#wake?.();
    if (!this.#hasLeft && this.#waitingBytes > waitingMaxBytes) this.#socket.pause();
  }

  #take(frame: Frame): void {
    const chunk = outputOf(frame);
    if (chunk !== undefined) {
      this.#waiting.push(chunk);
      this.#waitingBytes += costOf(chunk);
    } else if (frame.kind === KIND.event) {
      if (this.#handed !== undefined) this.#waiting.push(this.#handed);
    } else if (frame.kind === KIND.reply) {
      this.#started.resolve(new Fields(frame.payload));
    } else if (frame.kind === KIND.exit) {
      this.#ended = true;
      const fields = new Fields(frame.payload);
      this.#exit.resolve(exitOf(fields));
      this.#leave(fields.flag("kept"));
    } else if (frame.kind === KIND.error) {
      this.#fail(errorOf(frame, this.#subject));
      this.#socket.destroy();
    }
  }

  #leave(kept: boolean): void {
    const socket = this.#socket;
    if (!kept || this.#release === undefined || this.#hasInput || this.#hasSteered) return void socket.destroy();
    socket.off("data", this.#onData).off("error", this.#onError).off("end", this.#onEnd).off("close", this.#onClose);
    this.#hasLeft = true;
    this.#release(socket);
  }

  #lose(cause?: Error): void {
    if (this.#ended) return;
    this.#fail(
      this.#detached
        ? new VivError("cancelled", `${this.#subject.name}: this caller has stopped listening to it.`)
        : lost(this.#subject, cause),
    );
  }

  #fail(error: Error): void {
    this.#ended = true;
    this.#started.reject(error);
    this.#exit.reject(error);
    this.#wake?.();
  }

  /** Ends with the command, or quietly after detach(); `exit` rejects if the sandbox is lost. */
  async *#chunks(): AsyncGenerator<OutputChunk, void, void> {
    for (;;) {
      const chunk = this.#waiting.shift();
      if (typeof chunk === "function") {
        await chunk();
        continue;
      }
      if (chunk !== undefined) {
        this.#waitingBytes -= costOf(chunk);
        if (!this.#hasLeft && this.#waitingBytes <= waitingMaxBytes / 2 && this.#socket.isPaused()) this.#socket.resume();
        yield chunk;
        continue;
      }
      if (this.#ended || this.#detached) return;
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = undefined;
    }
  }
}
