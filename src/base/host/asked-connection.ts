/**
 * One connection from a sandbox of which the server has no copy: the mover shows a plain request, and the server says what is sent
 * instead of it; the same for the head of an answer that is not simple. Of a tunnel, it shows what the program says first.
 */
import { LIMITS } from "../schema/limits.ts";
import type { GivenConnection, Move, MoveEnd, MovedBytes } from "./moved-connection.ts";

interface Dialled {
  /** Checked: the mover dials it as it is. */
  readonly address: string;
  readonly port: number;
  readonly withinMs: number;
}

/** What the mover is to send, and where. */
export interface Fetch extends Dialled {
  /** The request as it goes out. */
  readonly head: string;
  /** How long the next request is waited for after an answer; 0: not at all. */
  readonly keepMs: number;
  /** The last lines of the head of a simple answer. If it is empty, every answer is shown. */
  readonly tail: string;
}

/** A tunnel. */
export interface Opening extends Dialled {
  /** What the program is told once the address answers. */
  readonly told: string;
  /** How long it may be silent then, until enough of what it says was seen. */
  readonly silentMs: number;
}

/**
 * What came of a request: the head of an answer that is not simple, or what a program says in its tunnel; `undialled` where nothing was
 * reached, undefined where no answer came, and `over` where nothing is left to do: the mover has answered, or the program is gone.
 */
export type Answered = Buffer | "undialled" | "over" | undefined;

/** One request that is under way. */
export interface Fetched extends Move {
  /** The request may be sent; until then the address is only dialled. */
  go(): void;
  readonly answer: Promise<Answered>;
}

interface Channel {
  say(text: string): void;
  forget(): void;
}

/** Made once: one more for each connection costs more than all else here. */
const GONE = new Error("The program has hung up.");
const NOTHING: MovedBytes = { sent: 0, received: 0 };

export class AskedConnection {
  readonly #id: number;
  readonly #channel: Channel;
  readonly #gone = new AbortController();
  /** Resolves once the mover has it no more, or the server has a copy. */
  readonly closed: Promise<void>;
  readonly #close: () => void;
  #bytes = NOTHING;
  #answered: ((answer: Answered) => void) | undefined;
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

  /** Dials; once it may go, the request that was shown is sent as it is given here. */
  fetch({ head, keepMs, tail, ...to }: Fetch): Fetched {
    return this.#dial("fetch", to, `${keepMs} ${hex(head)}${tail === "" ? "" : ` ${hex(tail)}`}`);
  }

  /** Dials; once it may go, the program is told so. What it says is shown, unless it is carried already. */
  open({ told, silentMs, ...to }: Opening): Fetched {
    return this.#dial("open", to, `${silentMs} ${hex(told)}`);
  }

  #dial(word: string, { address, port, withinMs }: Dialled, rest: string): Fetched {
    const answer = Promise.withResolvers<Answered>();
    const ended = Promise.withResolvers<MoveEnd>();
    let last: MoveEnd | undefined;
    this.#bytes = NOTHING;
    this.#answered = answer.resolve;
    this.#end = (end) => {
      this.#end = undefined;
      last = end;
      ended.resolve(end);
      // No head comes any more, also none that would follow an interim answer.
      this.#answered?.("over");
    };
    if (this.#gone.signal.aborted) this.#end({ ...NOTHING, isWhole: false });
    else this.#say(`${word} ${this.#id} ${address} ${port} ${Math.ceil(withinMs)} ${LIMITS.egressIdleMs} ${rest}`);
    const bytes = (): MovedBytes => last ?? this.#bytes;
    return {
      answer: answer.promise,
      ended: ended.promise,
      go: () => this.#say(`go ${this.#id}`),
      cut: () => void (last === undefined && this.#say(`cut ${this.#id}`)),
      get bytes() {
        return bytes();
      },
    };
  }

  /** The next head of the same answer: the last one was an interim one. In a tunnel: what the program says next. */
  more(): Promise<Answered> {
    const { promise, resolve } = Promise.withResolvers<Answered>();
    this.#answered = resolve;
    if (this.#end === undefined) resolve("over");
    else this.#say(`more ${this.#id}`);
    return promise;
  }

  /** Sends this head inside, then so many bytes of the body, or all that come; then the next request is waited for, or nothing. */
  reply(head: string, bytes: number | "all", keepMs: number): void {
    this.#say(bytes === "all" ? `stream ${this.#id} ${hex(head)}` : `reply ${this.#id} ${keepMs} ${bytes} ${hex(head)}`);
  }

  /** Whatever is said in the tunnel goes through, what was shown before all else. */
  carry(): void {
    this.#say(`carry ${this.#id}`);
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
  answered(answer: Answered): void {
    this.#answered?.(answer);
    if (answer === "undialled") this.#end?.({ ...NOTHING, isWhole: false });
  }

  /** From the mover: nothing more is moved. */
  ended(end: MoveEnd): void {
    this.#bytes = end;
    this.#end?.(end);
  }

  /** From the mover: the copy that was asked for. */
  given(connection: GivenConnection): void {
    // What was dialled is closed.
    this.#end?.({ ...NOTHING, isWhole: false });
    this.#close();
    this.#given?.(connection);
  }

  /** From the mover: it is no more. Also where the mover has ended. */
  gone(): void {
    this.#channel.forget();
    this.#gone.abort(GONE);
    this.ended({ ...this.#bytes, isWhole: false });
    this.#given?.(undefined);
    this.#close();
  }

  #say(text: string): void {
    this.#channel.say(text);
  }
}

function hex(text: string): string {
  return Buffer.from(text, "latin1").toString("hex");
}
