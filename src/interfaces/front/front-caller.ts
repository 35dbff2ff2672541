/** A process far from here: its streams and signals, as frames of native/PROTOCOL.md. */
import { EventEmitter } from "node:events";
import { constants } from "node:os";
import { Readable, Writable, type Duplex } from "node:stream";
import { chunkMaxBytes, encodeFields, encodeFrame, Fields, FrameError, KIND, type FieldList, type Frame } from "../../base/host/frames.ts";
import type { HandedOutput } from "../../base/schema/command.ts";
import type { Caller } from "../cli/caller.ts";

const NAMES = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name as NodeJS.Signals]));
const HEADER_BYTES = 8;
/** Output that may wait for its reader before the command does. */
const WINDOW_BYTES = 256 * 1024;

interface Size {
  readonly rows: number | undefined;
  readonly columns: number | undefined;
}

function sizeOf(fields: Fields, prefix: string): Size {
  return { rows: fields.number(`${prefix}rows`) || undefined, columns: fields.number(`${prefix}cols`) || undefined };
}

/** Input that comes as frames. Its sender is told what was taken, and sends no more than a window ahead. */
class FrontInput extends Readable {
  readonly isTTY: boolean;
  readonly #say: (fields: FieldList) => void;
  readonly #taken: (bytes: number) => void;
  #asked = false;

  constructor(isTTY: boolean, say: (fields: FieldList) => void, taken: (bytes: number) => void) {
    super({ highWaterMark: chunkMaxBytes });
    this.isTTY = isTTY;
    this.#say = say;
    this.#taken = taken;
  }

  setRawMode(on: boolean): void {
    this.#say([["raw", on ? "1" : "0"]]);
  }

  /** A reader has come. Frames then come by themselves. */
  override _read(): void {
    if (!this.#asked) this.#say([["stdin", "1"]]);
    this.#asked = true;
  }

  /** The front stops reading when signals are its own again: a reader that comes after that asks anew. */
  override resume(): this {
    if (this.#asked) this.#say([["stdin", "1"]]);
    return super.resume();
  }

  // Whichever way a stream hands its data on, it is by this event.
  override emit(event: string | symbol, ...values: unknown[]): boolean {
    const [data] = values;
    if (event === "data" && Buffer.isBuffer(data)) this.#taken(data.length);
    return super.emit(event as "data", ...(values as [unknown]));
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#say([["stdin", "0"]]);
    done(error);
  }
}

class FrontOutput extends Writable {
  readonly isTTY: boolean;
  rows: number | undefined;
  columns: number | undefined;
  readonly #socket: Duplex;
  readonly #kind: typeof KIND.stdout | typeof KIND.stderr;

  constructor(socket: Duplex, kind: typeof KIND.stdout | typeof KIND.stderr, isTTY: boolean, size: Size) {
    super();
    this.#socket = socket;
    this.#kind = kind;
    this.isTTY = isTTY;
    this.resize(size);
  }

  resize(size: Size): void {
    this.rows = this.isTTY ? size.rows : undefined;
    this.columns = this.isTTY ? size.columns : undefined;
  }

  /** Waits while the caller's own reader does. Large output is not copied on its way. */
  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#socket.cork();
    for (let at = 0; at < chunk.length; at += chunkMaxBytes) {
      const part = chunk.subarray(at, at + chunkMaxBytes);
      const header = Buffer.allocUnsafe(HEADER_BYTES);
      header.writeUInt32LE(part.length, 0);
      header.writeUInt32LE(this.#kind, 4);
      this.#socket.write(header);
      this.#socket.write(part);
    }
    this.#socket.uncork();
    if (this.#socket.writableLength < WINDOW_BYTES || this.#socket.destroyed) done();
    else this.#whenRoom(done);
  }

  #whenRoom(done: () => void): void {
    const next = (): void => {
      this.#socket.off("drain", next).off("close", next);
      done();
    };
    this.#socket.on("drain", next).on("close", next);
  }
}

export class FrontCaller extends EventEmitter implements Caller {
  readonly stdin: FrontInput;
  readonly stdout: FrontOutput;
  readonly stderr: FrontOutput;
  readonly approver: string | undefined;
  readonly gone: AbortSignal;
  readonly #socket: Duplex;
  #listening = 0;
  #inputOver = false;
  #giveBack: (() => void) | undefined;

  constructor(socket: Duplex, request: Fields, gone: AbortSignal) {
    super();
    this.#socket = socket;
    this.gone = gone;
    this.approver = request.get("approver");
    this.stdin = new FrontInput(
      request.flag("stdin_tty"),
      (fields) => this.say(fields),
      (bytes) => this.#taken(bytes),
    );
    this.stdout = new FrontOutput(socket, KIND.stdout, request.flag("stdout_tty"), sizeOf(request, ""));
    this.stderr = new FrontOutput(socket, KIND.stderr, request.flag("stderr_tty"), sizeOf(request, "stderr_"));
  }

  goesOnWith(words: readonly string[]): void {
    this.say([["again", String(words.length)], ...words.map((word) => ["again_arg", word] as const)]);
  }

  say(fields: FieldList): void {
    if (this.#socket.writable) this.#socket.write(encodeFrame(KIND.reply, encodeFields(fields)));
  }

  /** Signals are the command's as long as something here listens to them. */
  override on(event: string, listener: (...words: never[]) => void): this {
    if (isSignal(event) && this.#listening++ === 0) this.say([["signals", "1"]]);
    return super.on(event, listener as (...words: unknown[]) => void);
  }

  override off(event: string, listener: (...words: never[]) => void): this {
    if (isSignal(event) && this.#listening-- === 1) this.say([["signals", "0"]]);
    return super.off(event, listener as (...words: unknown[]) => void);
  }

  /** What the caller does, and what happens to it. */
  take({ kind, payload }: Frame): void {
    if (kind === KIND.stdin || kind === KIND.stdinEnd) this.#input(kind === KIND.stdin ? payload : null);
    else if (kind === KIND.signal) this.#signal(new Fields(payload).number("signal") ?? 0);
    else if (kind === KIND.resize) this.#resize(new Fields(payload));
    else if (kind === KIND.error) this.#closed(new Fields(payload));
    else if (kind === KIND.event && new Fields(payload).get("event") === "untaken") this.#giveBack?.();
    else throw new FrameError(`a frame of kind ${kind} from a front`);
  }

  /** It has gone: whatever still works for it finds its streams closed. */
  leave(): void {
    this.#giveBack?.();
    this.#input(null);
    this.#closed(new Fields(encodeFields([["step", "stdout"]])));
  }

  /** All that was written before has gone to the front when it is told of the rest. */
  async takeOutput({ socket, exec, token }: HandedOutput, giveBack: () => void): Promise<void> {
    for (const stream of [this.stdout, this.stderr]) await new Promise<void>((resolve) => stream.write("", () => resolve()));
    this.#giveBack = giveBack;
    if (!this.#socket.writable) return giveBack();
    this.say([
      ["take", socket],
      ["exec", exec],
      ["token", token],
    ]);
  }

  #input(data: Buffer | null): void {
    if (!this.stdin.destroyed && !this.stdin.readableEnded && !this.#inputOver) this.stdin.push(data);
    this.#inputOver ||= data === null;
  }

  #taken(bytes: number): void {
    const fields = encodeFields([
      ["event", "taken"],
      ["bytes", String(bytes)],
    ]);
    if (this.#socket.writable) this.#socket.write(encodeFrame(KIND.event, fields));
  }

  #signal(number: number): void {
    const name = NAMES.get(number);
    if (name === undefined) throw new FrameError(`signal ${number} from a front`);
    this.emit(name, name);
  }

  #resize(fields: Fields): void {
    this.stdout.resize(sizeOf(fields, ""));
    this.stderr.resize(sizeOf(fields, "stderr_"));
    this.stdout.emit("resize");
    this.emit("SIGWINCH", "SIGWINCH");
  }

  #closed(fields: Fields): void {
    const stream = fields.get("step") === "stderr" ? this.stderr : this.stdout;
    stream.emit("error", Object.assign(new Error("the reader has gone"), { code: "EPIPE" }));
  }
}

function isSignal(event: string): boolean {
  return event.startsWith("SIG");
}
