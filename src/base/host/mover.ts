/**
 * The mover: a process in C (`cell mover`) that takes connections from sandboxes, and moves the bytes of those that were decided on.
 * It keeps a copy of the descriptor of each connection; the server gets another and speaks with the program until it has decided.
 * When its process ends, its connections end with it, and the server starts another one.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { Socket } from "node:net";
import { constants as system } from "node:os";
import type { Duplex } from "node:stream";
import { VivError } from "../schema/errors.ts";
import { LIMITS } from "../schema/limits.ts";
import type { Logger } from "./log.ts";
import { AskedConnection } from "./asked-connection.ts";
import { type Move, MovedConnection, written } from "./moved-connection.ts";
import { startUnprotected } from "./oom.ts";

/** What is done with the connections from inside. */
export interface Taker {
  /** Gets a connection, with what process 1 says of it; empty where it says nothing. */
  take(socket: Socket, preface: Buffer, connection: MovedConnection): void;
  /** Gets a request that looks plain; empty where the next one on a connection does not. Without it, all are taken. */
  asked?(connection: AskedConnection, request: Buffer): void;
}

interface Door {
  readonly path: string;
  readonly taker: Taker;
  /** Told once whether it is open: 0, or the number of the error. */
  opened: ((error: number) => void) | undefined;
}

export interface MoverOptions {
  /** The cell program; undefined where there is none. */
  readonly program: string | undefined;
  readonly log: Logger;
}

type Say = (text: string, socket?: Socket, sent?: (error: Error | null) => void) => void;

const stderrMaxBytes = 8192;
/** Of a connection whose two ends decide how long they are silent. */
const NEVER_MS = Number.MAX_SAFE_INTEGER;

export class Mover {
  readonly #options: MoverOptions;
  readonly #doors = new Map<number, Door>();
  readonly #connections = new Map<number, MovedConnection>();
  /** Those of which the server has no copy. */
  readonly #asked = new Map<number, AskedConnection>();
  /** Told the number of a connection that the mover was given; 0 where it has no room. */
  readonly #holding = new Map<number, (connection: number) => void>();
  #nextHold = 1;
  /** When it was started again, in monotonic time. */
  #restarts: number[] = [];
  #child: ChildProcess | undefined;
  #later: NodeJS.Timeout | undefined;
  #nextDoor = 1;
  #closing = false;

  constructor(options: MoverOptions) {
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Listens at a path for process 1 of a sandbox; the answer closes it. Connections that were taken stay. */
  async open(path: string, taker: Taker): Promise<() => void> {
    const id = this.#nextDoor++;
    const { promise, resolve } = Promise.withResolvers<number>();
    if (this.#child === undefined) this.#start();
    this.#doors.set(id, { path, taker, opened: resolve });
    this.#sayDoor(id, path);
    const error = await promise;
    if (error !== 0) {
      this.#doors.delete(id);
      throw new VivError("cell_failed", `The way out of a sandbox can't be opened: error ${error} at ${path}.`);
    }
    return () => {
      this.#doors.delete(id);
      this.#say(`shut ${id}`);
      rmSync(path, { force: true });
    };
  }

  /**
   * Moves everything between two connections until both directions have ended. Nothing was read from the second one. Undefined where
   * it can't: there is no program to move with, or they are no sockets of the system.
   */
  async join(read: Duplex, unread: Duplex): Promise<Move | undefined> {
    if (this.#options.program === undefined || !(read instanceof Socket) || !(unread instanceof Socket)) return undefined;
    const connection = await this.#hold(read);
    read.pause();
    const rest = (read.read() as Buffer | null) ?? Buffer.alloc(0);
    // What broke while it was read here breaks for the other end, too.
    const isBroken = read.destroyed;
    // In the same turn of the event loop as the last read: what comes from now on is the mover's.
    connection.take();
    try {
      if (isBroken) throw new VivError("cancelled", "The connection broke off.");
      await written(unread, rest);
      if (unread.destroyed) throw new VivError("cancelled", "The caller went away.");
    } catch (error) {
      connection.drop();
      throw error;
    }
    return connection.join(unread, NEVER_MS);
  }

  /** Ends all of its connections. */
  async close(): Promise<void> {
    this.#closing = true;
    clearTimeout(this.#later);
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    const patience = setTimeout(() => child.kill("SIGKILL"), LIMITS.cellSilenceMs);
    if (child.connected) child.disconnect();
    await ended;
    clearTimeout(patience);
  }

  #start(): void {
    const { program } = this.#options;
    if (program === undefined) throw new VivError("unsupported", "This machine has no cell, so no sandbox has a way out.");
    // A process group of its own keeps a Ctrl-C at the server's terminal away from it.
    const child = startUnprotected(() =>
      spawn(program, ["mover"], { stdio: ["ignore", "ignore", "pipe", "ipc"], serialization: "json", detached: true, env: {} }),
    );
    this.#child = child;
    let complaints = "";
    child.stderr?.on("data", (chunk: Buffer) => (complaints = (complaints + chunk.toString("utf8")).slice(-stderrMaxBytes)));
    child.on("message", (message, handle) => {
      // The numbers of a mover that has ended mean other connections now.
      if (this.#child === child) this.#hear(message, handle);
      else if (handle instanceof Socket) handle.destroy();
    });
    const lost = (how: string): void => this.#lose(child, `${how} ${complaints.trim()}`.trim());
    child.once("error", (error) => lost(error.message));
    child.once("exit", (code, signal) => lost(`ended with ${signal ?? `exit code ${code}`}`));
    child.unref();
    child.channel?.unref();
    for (const [id, { path }] of this.#doors) this.#sayDoor(id, path);
  }

  #sayDoor(id: number, path: string): void {
    // Only a server or a mover that was killed leaves one.
    rmSync(path, { force: true });
    this.#say(`door ${id} ${Buffer.from(path).toString("hex")}`);
  }

  #say(text: string, socket?: Socket, sent?: (error: Error | null) => void): void {
    const child = this.#child;
    if (child?.connected !== true) return sent?.(new Error("The mover has ended."));
    // What was not sent because the mover has ended is told by its end.
    child.send(text, socket, { keepOpen: true }, (error) => sent?.(error));
  }

  #hear(message: unknown, handle: unknown): void {
    const [word, ...rest] = String(message).split(" ");
    const [first = 0, second = 0, third = 0, fourth = 0] = rest.map(Number);
    if (word === "ask") return this.#ask(first, second, bytesOf(rest[2]));
    if (word === "answer") return this.#asked.get(first)?.answered(rest[1] === "" ? undefined : bytesOf(rest[1]));
    if (word === "said") return this.#asked.get(first)?.answered(bytesOf(rest[1]));
    if (word === "undialled") return this.#asked.get(first)?.answered("undialled");
    if (word === "gone") return this.#asked.get(first)?.gone();
    if (word === "conn") return this.#arrive(first, second, bytesOf(rest[2]), handle);
    const moving = this.#asked.get(first) ?? this.#connections.get(first);
    if (word === "moved") return moving?.heard({ sent: second, received: third });
    if (word === "end") return moving?.ended({ sent: second, received: third, isWhole: fourth === 1 });
    if (word === "held") return this.#holding.get(first)?.(second);
    if (word === "door") this.#opened(first, second);
  }

  #opened(id: number, error: number): void {
    const door = this.#doors.get(id);
    if (error !== 0 && door !== undefined && door.opened === undefined)
      this.#options.log.warn("the way out of a sandbox could not be opened again", { path: door.path, error });
    door?.opened?.(error);
    if (door !== undefined) door.opened = undefined;
  }

  #ask(id: number, door: number, request: Buffer): void {
    const taker = this.#doors.get(door)?.taker;
    if (taker === undefined) return this.#say(`drop ${id}`);
    if (taker.asked === undefined) return this.#say(`give ${id}`);
    const connection = this.#asked.get(id) ?? new AskedConnection(id, { say: this.#toThisMover(), forget: () => this.#asked.delete(id) });
    this.#asked.set(id, connection);
    taker.asked(connection, request);
  }

  #arrive(id: number, door: number, preface: Buffer, handle: unknown): void {
    const taker = this.#doors.get(door)?.taker;
    const asked = this.#asked.get(id);
    this.#asked.delete(id);
    if (!(handle instanceof Socket) || taker === undefined) {
      if (handle instanceof Socket) handle.destroy();
      asked?.gone();
      return this.#say(`drop ${id}`);
    }
    handle.allowHalfOpen = true;
    const connection = this.#know(id, handle);
    if (asked === undefined) taker.take(handle, preface, connection);
    else asked.given({ socket: handle, connection });
  }

  async #hold(socket: Socket): Promise<MovedConnection> {
    if (this.#child === undefined) this.#start();
    const number = this.#nextHold++;
    const { promise, resolve } = Promise.withResolvers<number>();
    this.#holding.set(number, resolve);
    this.#say(`hold ${number}`, socket, (error) => error !== null && resolve(0));
    const id = await promise;
    this.#holding.delete(number);
    if (id === 0) throw new VivError("no_capacity", "There is no room for one more connection.");
    return this.#know(id, socket);
  }

  #know(id: number, socket: Socket): MovedConnection {
    const connection = new MovedConnection(id, socket, { say: this.#toThisMover(), forget: () => this.#connections.delete(id) });
    this.#connections.set(id, connection);
    return connection;
  }

  /** The number of a connection means nothing to the next process. */
  #toThisMover(): Say {
    const child = this.#child;
    return (text, socket, sent) => (child === this.#child ? this.#say(text, socket, sent) : sent?.(new Error("The mover has ended.")));
  }

  #lose(child: ChildProcess, reason: string): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    for (const connection of this.#connections.values()) connection.lost();
    for (const connection of this.#asked.values()) connection.gone();
    for (const told of this.#holding.values()) told(0);
    for (const [id, { opened }] of this.#doors) {
      if (opened === undefined) continue;
      this.#doors.delete(id);
      opened(system.errno.EPIPE);
    }
    if (this.#closing) return;
    this.#options.log.warn("the mover ended, and open connections of sandboxes with it; it is started again", { reason });
    const now = performance.now();
    this.#restarts = [...this.#restarts.filter((at) => now - at < LIMITS.helperRestartsMs), now];
    if (this.#restarts.length <= LIMITS.helperRestarts) return this.#start();
    // Again and again: sandboxes have no way out until the next try.
    this.#later = setTimeout(() => this.#child === undefined && this.#start(), LIMITS.helperRestartsMs).unref();
  }
}

function bytesOf(digits = ""): Buffer {
  return Buffer.from(digits, "hex");
}
