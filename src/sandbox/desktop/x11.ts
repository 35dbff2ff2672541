/** As much of X11 as it takes to ask a screen for its windows. The other side is in the sandbox: what it answers is bounded. */
import type { Duplex } from "node:stream";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { ByteReader } from "./byte-reader.ts";

const OPCODE = { getGeometry: 14, internAtom: 16, getProperty: 20, queryPointer: 38, translateCoordinates: 40 } as const;
/** Every answer has at least so many bytes. */
const ANSWER = 32;
const REPLY = 1;
const ERROR = 0;

const padded = (length: number): number => Math.ceil(length / 4) * 4;

/** Little endian, version 11.0, no authorization: the socket is the user's alone. */
const SETUP = Buffer.from([0x6c, 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

export class X11 {
  readonly #socket: Duplex;
  readonly #reader: ByteReader;
  readonly #signal: AbortSignal;
  #root = 0;

  private constructor(socket: Duplex, signal: AbortSignal) {
    this.#socket = socket;
    this.#reader = new ByteReader(socket);
    this.#signal = signal;
  }

  static async open(socket: Duplex, signal: AbortSignal): Promise<X11> {
    const x11 = new X11(socket, signal);
    try {
      await x11.#greet();
      return x11;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  get root(): number {
    return this.#root;
  }

  close(): void {
    this.#socket.destroy();
  }

  async atom(name: string): Promise<number> {
    const request = Buffer.alloc(8 + padded(name.length));
    request.writeUInt8(OPCODE.internAtom, 0);
    request.writeUInt16LE(name.length, 4);
    request.write(name, 8, "latin1");
    return (await this.#ask(request))?.readUInt32LE(8) ?? 0;
  }

  /** What a property holds, up to a length; empty where there is none. */
  async property(window: number, property: number, mostBytes: number): Promise<Buffer> {
    const request = Buffer.alloc(24);
    request.writeUInt8(OPCODE.getProperty, 0);
    request.writeUInt32LE(window, 4);
    request.writeUInt32LE(property, 8);
    request.writeUInt32LE(padded(mostBytes) / 4, 20);
    const answer = await this.#ask(request);
    if (answer === undefined) return Buffer.alloc(0);
    const length = answer.readUInt32LE(16) * ((answer[1] ?? 0) / 8);
    return answer.subarray(ANSWER, ANSWER + Math.min(length, mostBytes));
  }

  /** Where a window is on the screen, without its frame. */
  async geometry(window: number): Promise<{ x: number; y: number; width: number; height: number } | undefined> {
    const size = await this.#ask(about(OPCODE.getGeometry, window));
    const request = Buffer.alloc(16);
    request.writeUInt8(OPCODE.translateCoordinates, 0);
    request.writeUInt32LE(window, 4);
    request.writeUInt32LE(this.#root, 8);
    const place = await this.#ask(request);
    if (size === undefined || place === undefined) return undefined;
    return { x: place.readInt16LE(12), y: place.readInt16LE(14), width: size.readUInt16LE(16), height: size.readUInt16LE(18) };
  }

  async pointer(): Promise<{ x: number; y: number }> {
    const answer = await this.#ask(about(OPCODE.queryPointer, this.#root));
    return { x: answer?.readInt16LE(16) ?? 0, y: answer?.readInt16LE(18) ?? 0 };
  }

  async #greet(): Promise<void> {
    this.#socket.write(SETUP);
    const head = await this.#take(8);
    const rest = await this.#take(head.readUInt16LE(6) * 4);
    if (head[0] !== 1) throw nonsense("it refuses");
    // The first screen stands behind the name of the vendor and the formats of pictures.
    const screen = 32 + padded(rest.readUInt16LE(16)) + 8 * rest.readUInt8(21);
    if (screen + 4 > rest.length) throw nonsense("it has no screen");
    this.#root = rest.readUInt32LE(screen);
  }

  /** undefined where the screen refuses, as for a window that has gone. */
  async #ask(request: Buffer): Promise<Buffer | undefined> {
    request.writeUInt16LE(request.length / 4, 2);
    this.#socket.write(request);
    for (;;) {
      const answer = await this.#take(ANSWER);
      if (answer[0] === ERROR) return undefined;
      if (answer[0] === REPLY) return Buffer.concat([answer, await this.#take(answer.readUInt32LE(4) * 4)]);
    }
  }

  async #take(length: number): Promise<Buffer> {
    if (length > LIMITS.maxDesktopTextBytes) throw nonsense("its answer is too long");
    return this.#reader.take(length, this.#signal);
  }
}

function about(opcode: number, window: number): Buffer {
  const request = Buffer.alloc(8);
  request.writeUInt8(opcode, 0);
  request.writeUInt32LE(window, 4);
  return request;
}

function nonsense(what: string): VivError {
  return new VivError("desktop_failed", `The windows of the sandbox's desktop can't be listed: ${what}.`);
}
