/** One connection from a sandbox, as the mover has it. The server decides, and gives away what is to be moved. */
import type { Socket } from "node:net";
import { LIMITS } from "../schema/limits.ts";

export interface MovedBytes {
  readonly sent: number;
  readonly received: number;
}

export interface MoveEnd extends MovedBytes {
  /** Both directions have ended by themselves, or the body is complete. */
  readonly isWhole: boolean;
}

/** Bytes that are moved now. */
export interface Move {
  readonly bytes: MovedBytes;
  readonly ended: Promise<MoveEnd>;
  /** Resets both sides. */
  cut(): void;
}

/** A copy of a connection, and what the mover has of it. */
export interface GivenConnection {
  readonly socket: Socket;
  readonly connection: MovedConnection;
}

interface Channel {
  say(text: string, socket?: Socket, sent?: (error: Error | null) => void): void;
  forget(): void;
}

/** Resolves once the kernel has these bytes, and those before. */
export function written(socket: Socket, data: Buffer): Promise<void> {
  if (data.length === 0 && socket.writableLength === 0) return Promise.resolve();
  return new Promise((resolve, reject) => {
    socket.write(data, (error) => (error === null || error === undefined ? resolve() : reject(error)));
  });
}

const NOTHING: MovedBytes = { sent: 0, received: 0 };

export class MovedConnection {
  readonly #id: number;
  readonly #channel: Channel;
  readonly #socket: Socket;
  /** Resolves once neither the server nor the mover has it any more. */
  readonly closed: Promise<void>;
  readonly #close: () => void;
  #bytes = NOTHING;
  #end: ((end: MoveEnd) => void) | undefined;
  #isTaken = false;

  constructor(id: number, socket: Socket, channel: Channel) {
    this.#id = id;
    this.#socket = socket;
    this.#channel = channel;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#close = () => {
      channel.forget();
      resolve();
    };
    // The mover's copy keeps the connection open until it is told.
    socket.once("close", () => {
      if (this.#isTaken) return;
      channel.say(`drop ${id}`);
      if (this.#end === undefined) this.#close();
    });
  }

  /** The server reads no more: what comes from now on stays for the mover. */
  take(): void {
    this.#isTaken = true;
    this.#socket.destroy();
  }

  /** Moves everything both ways until both have ended, after `take`. What the server has read must have been written by now. */
  join(outside: Socket, idleMs: number = LIMITS.egressIdleMs): Move {
    return this.#begin(`join ${this.#id} ${idleMs}`, outside);
  }

  /** Gives up what was taken and not joined. */
  drop(): void {
    if (this.#isTaken && this.#end === undefined) {
      this.#channel.say(`drop ${this.#id}`);
      this.#close();
    }
  }

  /** Moves so many bytes from outside to inside. The server writes nothing to the connection meanwhile. */
  body(outside: Socket, bytes: number): Move {
    return this.#begin(`body ${this.#id} ${LIMITS.egressIdleMs} ${bytes}`, outside);
  }

  /** From the mover: how much was moved so far. */
  heard(bytes: MovedBytes): void {
    this.#bytes = bytes;
  }

  /** From the mover: nothing more is moved. */
  ended(end: MoveEnd): void {
    this.#bytes = end;
    this.#end?.(end);
    this.#end = undefined;
    if (this.#isTaken || this.#socket.destroyed) this.#close();
  }

  /** The mover has ended. */
  lost(): void {
    this.#socket.destroy();
    this.ended({ ...this.#bytes, isWhole: false });
    this.#close();
  }

  #begin(text: string, outside: Socket): Move {
    const { promise, resolve } = Promise.withResolvers<MoveEnd>();
    let last: MovedBytes | undefined;
    this.#bytes = NOTHING;
    this.#end = (end) => {
      last = end;
      resolve(end);
    };
    this.#channel.say(text, outside, (error) => {
      outside.destroy();
      if (error !== null) this.ended({ ...NOTHING, isWhole: false });
    });
    const bytes = (): MovedBytes => last ?? this.#bytes;
    return {
      ended: promise,
      cut: () => void (last === undefined && this.#channel.say(`cut ${this.#id}`)),
      get bytes() {
        return bytes();
      },
    };
  }
}
