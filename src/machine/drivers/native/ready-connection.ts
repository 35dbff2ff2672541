/**
 * A connection for the next command: the one that the last command left, or one made ahead. Connecting wakes process 1 once more than
 * the request alone, and commands come in rows: a caller that ran one soon runs another.
 */
import { connect, type Socket } from "node:net";

/** Long enough for the caller's next command; an idle sandbox has no such connection. */
const KEPT_MS = 10_000;

interface Ready {
  readonly socket: Socket;
  readonly drop: () => void;
  readonly timer: NodeJS.Timeout;
}

export class ReadyConnection {
  readonly #path: string;
  #ready: Ready | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** Makes one, unless there is one. */
  prepare(): void {
    if (this.#ready === undefined) this.keep(connect({ path: this.#path, allowHalfOpen: true }));
  }

  /** Takes a connection on which nothing is under way, and no listener is left. */
  keep(socket: Socket): void {
    if (this.#ready !== undefined) return void socket.destroy();
    const drop = (): void => {
      if (this.#ready?.socket === socket) this.#forget();
      socket.destroy();
    };
    // Nothing is said on it before a request: reading only shows its end.
    socket.on("error", drop).on("end", drop).on("close", drop).resume();
    this.#ready = { socket, drop, timer: setTimeout(drop, KEPT_MS).unref() };
  }

  /** The ready connection, without a listener. */
  take(): Socket | undefined {
    const ready = this.#forget();
    if (ready === undefined) return undefined;
    const { socket, drop } = ready;
    if (socket.readyState !== "open") return void socket.destroy();
    return socket.off("error", drop).off("end", drop).off("close", drop);
  }

  #forget(): Ready | undefined {
    const ready = this.#ready;
    this.#ready = undefined;
    clearTimeout(ready?.timer);
    return ready;
  }
}
