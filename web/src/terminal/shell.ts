/**
 * A shell inside that outlives the connection to it: after a restart of the server, a loss of the network or a sleep, the page attaches
 * to it again and goes on at the byte where it was. The page ends the shell when it is left.
 */
import { VivError } from "../../../src/base/schema/errors.ts";
import type { CommandStream } from "../../../src/interfaces/client/command-stream.ts";
import { attach, shell } from "../server/client.ts";
import { live } from "../server/live.ts";

const AGAIN_MS = 1_500;
const HANG_UP_MS = 2_000;
const encoder = new TextEncoder();

export type ShellState =
  | { readonly kind: "running" }
  /** The shell goes on without this page. */
  | { readonly kind: "apart" }
  | { readonly kind: "ended"; readonly words: string };

interface Hears {
  readonly output: (data: Uint8Array) => void;
  /** Bytes that are not kept any more. */
  readonly gap: (bytes: number) => void;
  readonly state: (state: ShellState) => void;
}

/** A connection that closes at once could overtake the signal. */
function hangUp(stream: CommandStream): void {
  stream.signal("SIGHUP");
  setTimeout(() => stream.close(), HANG_UP_MS);
}

export class Shell {
  readonly #sandbox: string;
  readonly #hears: Hears;
  #size: { readonly rows: number; readonly cols: number };
  /** The shell's command, once it has begun. */
  #command: string | undefined;
  /** Bytes of output that were heard. */
  #heard = 0;
  #stream: CommandStream | undefined;
  /** Counts connections: what comes from an earlier one is not heard. */
  #connection = 0;
  #timer: number | undefined;
  #over = false;
  readonly #unlisten: () => void;

  constructor(sandbox: string, size: { readonly rows: number; readonly cols: number }, hears: Hears) {
    this.#sandbox = sandbox;
    this.#size = size;
    this.#hears = hears;
    this.#unlisten = live.onReturn(() => this.#connect());
    this.#connect();
  }

  type(text: string): void {
    // What is typed without a connection is lost; the page says that there is none.
    void this.#stream?.write(encoder.encode(text)).catch(() => undefined);
  }

  resize(rows: number, cols: number): void {
    this.#size = { rows, cols };
    this.#stream?.resize(rows, cols);
  }

  /** Ends the shell, as a terminal does that is closed. */
  close(): void {
    const stream = this.#stream;
    this.#finish();
    if (stream !== undefined) hangUp(stream);
  }

  #finish(): void {
    this.#over = true;
    this.#connection += 1;
    this.#stream = undefined;
    this.#unlisten();
    clearTimeout(this.#timer);
  }

  #connect(): void {
    if (this.#over) return;
    clearTimeout(this.#timer);
    this.#connection += 1;
    const connection = this.#connection;
    this.#stream?.close();
    this.#stream = undefined;
    this.#listen(connection).catch((error: unknown) => this.#broken(connection, error));
  }

  async #listen(connection: number): Promise<void> {
    const known = this.#command;
    const stream = await (known === undefined ? shell(this.#sandbox, this.#size) : attach(this.#sandbox, known));
    if (connection !== this.#connection) {
      // The page was left, or asked anew, while this one began: a shell that it does not know would stay.
      return known === undefined ? hangUp(stream) : stream.close();
    }
    this.#command = stream.command.id;
    this.#stream = stream;
    this.#hears.state({ kind: "running" });
    if (known !== undefined) stream.resize(this.#size.rows, this.#size.cols);
    let at = 0;
    for await (const output of stream.output) {
      if (connection !== this.#connection) return;
      const from = at;
      at += output.stream === "gap" ? output.bytes : output.data.length;
      if (at <= this.#heard) continue;
      const skipped = Math.max(0, this.#heard - from);
      this.#heard = at;
      if (output.stream === "gap") this.#hears.gap(output.bytes - skipped);
      else this.#hears.output(output.data.subarray(skipped));
    }
    const { exitCode } = await stream.end;
    if (connection !== this.#connection) return;
    this.#finish();
    this.#hears.state({ kind: "ended", words: `The shell ended with ${exitCode}.` });
  }

  #broken(connection: number, error: unknown): void {
    if (connection !== this.#connection) return;
    this.#stream = undefined;
    if (error instanceof VivError && error.code !== "server_unreachable") {
      this.#finish();
      return this.#hears.state({ kind: "ended", words: error.message });
    }
    this.#hears.state({ kind: "apart" });
    this.#timer = window.setTimeout(() => live.state.kind === "live" && this.#connect(), AGAIN_MS);
  }
}
