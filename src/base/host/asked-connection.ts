/**
 * One connection from a sandbox of which the server has no copy: the mover shows a plain request and the head of its answer, and the
 * server says what is sent instead of them.
 */
import { LIMITS } from "../schema/limits.ts";
import type { GivenConnection, Move, MoveEnd, MovedBytes } from "./moved-connection.ts";

/** What the mover is to send, and where. */
export interface Fetch {
  /** Checked: the mover dials it as it is. */
  readonly address: string;
  readonly port: number;
  readonly withinMs: number;
  /** The request as it goes out. */
  readonly head: Buffer;
}

/** One request that is under way. */
export interface Fetched extends Move {
  /** The head of the answer; `undialled` where nothing was reached; undefined where none came. */
  readonly answer: Promise<Buffer | "undialled" | undefined>;
}

interface Channel {
  say(text: string): void;
  forget(): void;
}

const NOTHING: MovedBytes = { sent: 0, received: 0 };

export class AskedConnection {
  readonly #id: number;
  readonly #channel: Channel;
  readonly #gone = new AbortController();
  /** Resolves once the mover has it no more, or the server has a copy. */
  readonly closed: Promise<void>;
  readonly #close: () => void;
  #bytes = NOTHING;
  #answered: ((answer: Buffer | "undialled" | undefined) => void) | undefined;
  #end: ((end: MoveEnd) => void) | undefined;
  #given: ((given: GivenConnection | undefined) => void) | undefined;

  constructor(id: number, channel: Channel) {
    this.#id = id;
    this.#channel = channel;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#close = resolve;
  }

  /** Aborted once the program has hung up, or the connection was cut. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  /** Dials, and sends the request that was shown, as it is given here. */
  fetch({ address, port, withinMs, head }: Fetch): Fetched {
    const answer = Promise.withResolvers<Buffer | "undialled" | undefined>();
    const ended = Promise.withResolvers<MoveEnd>();
    let last: MoveEnd | undefined;
    this.#bytes = NOTHING;
    this.#answered = answer.resolve;
    this.#end = (end) => {
      this.#end = undefined;
      last = end;
      ended.resolve(end);
      answer.resolve(undefined);
    };
    if (this.#gone.signal.aborted) this.#end({ ...NOTHING, isWhole: false });
    else this.#say(`fetch ${this.#id} ${address} ${port} ${Math.ceil(withinMs)} ${LIMITS.egressIdleMs} ${head.toString("hex")}`);
    const bytes = (): MovedBytes => last ?? this.#bytes;
    return {
      answer: answer.promise,
      ended: ended.promise,
      cut: () => void (last === undefined && this.#say(`cut ${this.#id}`)),
      get bytes() {
        return bytes();
      },
    };
  }

  /** The next head of the same answer: the last one was an interim one. */
  more(): Promise<Buffer | "undialled" | undefined> {
    const { promise, resolve } = Promise.withResolvers<Buffer | "undialled" | undefined>();
    this.#answered = resolve;
    if (this.#end === undefined) resolve(undefined);
    else this.#say(`more ${this.#id}`);
    return promise;
  }

  /** Sends this head inside, then so many bytes of the body, or all that come; then the next request is waited for, or nothing. */
  reply(head: Buffer, bytes: number | "all", keepMs: number): void {
    const text = head.toString("hex");
    this.#say(bytes === "all" ? `stream ${this.#id} ${text}` : `reply ${this.#id} ${keepMs} ${bytes} ${text}`);
  }

  /** The server speaks with the program from now on; undefined where it is gone. */
  give(): Promise<GivenConnection | undefined> {
    const { promise, resolve } = Promise.withResolvers<GivenConnection | undefined>();
    this.#given = resolve;
    if (this.#gone.signal.aborted) resolve(undefined);
    else this.#say(`give ${this.#id}`);
    return promise;
  }

  destroy(): void {
    if (!this.#gone.signal.aborted) this.#say(`drop ${this.#id}`);
  }

  /** From the mover: how much was moved so far. */
  heard(bytes: MovedBytes): void {
    this.#bytes = bytes;
  }

  /** From the mover: what came of the request. */
  answered(answer: Buffer | "undialled" | undefined): void {
    if (answer === "undialled") this.#end?.({ ...NOTHING, isWhole: false });
    this.#answered?.(answer);
  }

  /** From the mover: nothing more is moved. */
  ended(end: MoveEnd): void {
    this.#bytes = end;
    this.#end?.(end);
  }

  /** From the mover: the copy that was asked for. */
  given(connection: GivenConnection): void {
    this.#close();
    this.#given?.(connection);
  }

  /** From the mover: it is no more. Also where the mover has ended. */
  gone(): void {
    this.#channel.forget();
    this.#gone.abort();
    this.ended({ ...this.#bytes, isWhole: false });
    this.#given?.(undefined);
    this.#close();
  }

  #say(text: string): void {
    this.#channel.say(text);
  }
}
