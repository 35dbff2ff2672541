/**
 * A connection to the outside. Node gives every 64 KiB memory of their own, and collecting that costs more than moving the bytes:
 * here two pieces of memory take turns, and a piece is read into again once its receiver has called `done`.
 */
import { Socket } from "node:net";
import type { Move, MovedBytes } from "../../base/host/moved-connection.ts";

const FIRST_BYTES = 16 * 1024;
const LARGE_BYTES = 256 * 1024;

/** Gets what comes, in order; the memory is only its own until it calls `done`. */
export type ChunkReceiver = (chunk: Buffer, done: () => void) => void;

export class OutsideConnection {
  /** To be written to and watched; it is read through `take`. */
  readonly socket: Socket;
  /** Resolves when it is over, also where the mover had it last. */
  readonly ended: Promise<void>;
  readonly #pieces: [Buffer, Buffer] = [Buffer.allocUnsafeSlow(FIRST_BYTES), Buffer.allocUnsafeSlow(FIRST_BYTES)];
  readonly #busy: [boolean, boolean] = [false, false];
  #turn: 0 | 1 = 0;
  #taker: ChunkReceiver | undefined;
  readonly #waiting: (readonly [Buffer, 0 | 1])[] = [];
  #isStopped = false;
  #move: Move | undefined;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.socket = new Socket({
      allowHalfOpen: true,
      noDelay: true,
      onread: { buffer: () => this.#pieces[this.#turn], callback: (length: number) => this.#read(length) },
    });
    // Told by close; an error without a listener would end the server.
    this.socket.on("error", () => undefined);
    this.socket.once("close", () => void (this.#move?.ended ?? Promise.resolve()).then(() => resolve()));
  }

  /** Sends the first packet. */
  dial(address: string, port: number): void {
    this.socket.connect({ host: address, port, autoSelectFamily: false });
  }

  /** Bytes either way so far. */
  get bytes(): MovedBytes {
    const { sent, received } = this.#move?.bytes ?? { sent: 0, received: 0 };
    return { sent: this.socket.bytesWritten + sent, received: this.socket.bytesRead + received };
  }

  cut(): void {
    this.#move?.cut();
    if (this.#move === undefined) this.socket.destroy();
  }

  /** Reads no more. Gives what came and has no receiver. */
  stop(): Buffer {
    this.#isStopped = true;
    this.socket.pause();
    return Buffer.concat(this.#waiting.splice(0).map(([chunk]) => chunk));
  }

  /** Leaves the rest to the mover, after `stop`. */
  give(begin: (socket: Socket) => Move): Move {
    // Its time is the mover's now.
    this.socket.setTimeout(0);
    this.#move = begin(this.socket);
    return this.#move;
  }

  /** From now on, what comes and came goes there. */
  take(taker: ChunkReceiver): void {
    this.#taker = taker;
    for (const [chunk, index] of this.#waiting.splice(0)) this.#hand(chunk, index);
  }

  /** False stops reading: the receiver still uses the next piece. */
  #read(length: number): boolean {
    const index = this.#turn;
    const next = index === 0 ? 1 : 0;
    const piece = this.#pieces[index];
    this.#busy[index] = true;
    this.#turn = next;
    if (!this.#busy[next] && length === piece.length && this.#pieces[next].length < LARGE_BYTES)
      this.#pieces[next] = Buffer.allocUnsafeSlow(LARGE_BYTES);
    if (this.#taker === undefined) this.#waiting.push([piece.subarray(0, length), index]);
    else this.#hand(piece.subarray(0, length), index);
    return !this.#isStopped && !this.#busy[next];
  }

  #hand(chunk: Buffer, index: 0 | 1): void {
    this.#taker?.(chunk, () => {
      this.#busy[index] = false;
      if (!this.socket.destroyed && !this.#isStopped) this.socket.resume();
    });
  }
}
