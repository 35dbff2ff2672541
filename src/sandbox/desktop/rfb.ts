/**
 * A connection to the screen of a sandbox, by RFB 3.8 (RFC 6143). The other side is in the sandbox: what it sends is bounded, and read
 * only while an answer is awaited.
 */
import type { Duplex } from "node:stream";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { ByteReader } from "./byte-reader.ts";
import type { Picture } from "./png.ts";

export interface Area {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

const VERSION = "RFB 003.008\n";
const NO_SECURITY = 1;
const SHARED = 1;
const RAW = 0;
/** How many pixels there are now, and which screens make them up. It comes without a picture, and ends all requests that wait. */
const SCREENS = -308;
const SCREEN_BYTES = 16;
/** Why the screens are told: this connection asked for another size. */
const ASKED_FOR = 1;
const TO_SERVER = { pixelFormat: 0, encodings: 2, updateRequest: 3, key: 4, pointer: 5, desktopSize: 251 } as const;
const TO_CLIENT = { update: 0, colours: 1, bell: 2, cutText: 3 } as const;
/** 32 bits a pixel, depth 24, little endian, true colour; red in the first byte, then green, then blue. */
const PIXEL_FORMAT = Buffer.from([TO_SERVER.pixelFormat, 0, 0, 0, 32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 0, 8, 16, 0, 0, 0]);

function nonsense(what: string): VivError {
  return new VivError("desktop_failed", `The screen of the sandbox does not follow the protocol: ${what}.`);
}

function encodings(kinds: readonly number[]): Buffer {
  const message = Buffer.alloc(4 + 4 * kinds.length);
  message.writeUInt8(TO_SERVER.encodings, 0);
  message.writeUInt16BE(kinds.length, 2);
  for (const [at, kind] of kinds.entries()) message.writeInt32BE(kind, 4 + 4 * at);
  return message;
}

/** What an update brought. */
interface Update {
  readonly pixels: number;
  /** Whether it told the size, as before each picture that is asked for whole: then what was asked for is to be asked for again. */
  readonly toldSize: boolean;
}

export class Rfb {
  readonly #socket: Duplex;
  readonly #reader: ByteReader;
  #width = 0;
  #height = 0;
  #pixels = Buffer.alloc(0);
  /** Whether the size was changed as this connection asked: 0 is yes. */
  #resized: number | undefined;
  /** Answers are read one after the other. */
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(socket: Duplex) {
    this.#socket = socket;
    this.#reader = new ByteReader(socket);
  }

  static async open(socket: Duplex, signal: AbortSignal): Promise<Rfb> {
    const rfb = new Rfb(socket);
    try {
      await rfb.#greet(signal);
      return rfb;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  get size(): { width: number; height: number } {
    return { width: this.#width, height: this.#height };
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed && this.#socket.writable;
  }

  close(): void {
    this.#socket.destroy();
  }

  async #greet(signal: AbortSignal): Promise<void> {
    const version = (await this.#reader.take(VERSION.length, signal)).toString("latin1");
    if (version !== VERSION) throw nonsense("its version is another");
    this.#socket.write(VERSION, "latin1");
    const [kinds = 0] = await this.#reader.take(1, signal);
    if (!(await this.#reader.take(kinds, signal)).includes(NO_SECURITY)) throw nonsense("it asks for a password");
    this.#socket.write(Buffer.from([NO_SECURITY]));
    if ((await this.#reader.take(4, signal)).readUInt32BE() !== 0) throw nonsense("it refuses");
    this.#socket.write(Buffer.from([SHARED]));
    const initial = await this.#reader.take(24, signal);
    await this.#skip(initial.readUInt32BE(20), signal);
    this.#resize(initial.readUInt16BE(0), initial.readUInt16BE(2));
    this.#socket.write(PIXEL_FORMAT);
    this.#socket.write(encodings([RAW, SCREENS]));
  }

  #resize(width: number, height: number): void {
    if (width < 1 || height < 1 || width * height > LIMITS.maxDesktopPixels) throw nonsense(`it is ${width} by ${height} pixels`);
    this.#width = width;
    this.#height = height;
    this.#pixels = Buffer.alloc(width * height * 4);
  }

  /** The whole screen as it is now. */
  async picture(signal: AbortSignal): Promise<Picture> {
    return this.#inTurn(async () => {
      while (!(await this.#drawn(signal)));
      return { ...this.size, pixels: Buffer.from(this.#pixels) };
    });
  }

  /** Learns the size that the screen has now. */
  async look(signal: AbortSignal): Promise<void> {
    return this.#inTurn(async () => {
      this.#request(false, { x: 0, y: 0, width: 1, height: 1 });
      while (!(await this.#update(signal)).toldSize);
    });
  }

  /** Gives the screen another size. */
  async resize(width: number, height: number, signal: AbortSignal): Promise<void> {
    return this.#inTurn(async () => {
      this.#resized = undefined;
      const message = Buffer.alloc(8 + SCREEN_BYTES);
      message.writeUInt8(TO_SERVER.desktopSize, 0);
      message.writeUInt8(1, 6);
      for (const at of [2, 16]) {
        message.writeUInt16BE(width, at);
        message.writeUInt16BE(height, at + 2);
      }
      this.#socket.write(message);
      while (this.#resized === undefined) {
        this.#request(true, { x: 0, y: 0, width: this.#width, height: this.#height });
        await this.#update(signal);
      }
      if (this.#resized !== 0) throw new VivError("desktop_failed", `The screen can't have ${width} by ${height} pixels.`);
    });
  }

  /** Asks for the whole screen as it is; false where it has another size by now. */
  async #drawn(signal: AbortSignal): Promise<boolean> {
    const { width, height } = this;
    const area = { x: 0, y: 0, width, height };
    this.#request(false, area);
    for (;;) {
      // What an earlier wait asked for may come first.
      const { pixels, toldSize } = await this.#update(signal);
      if (this.width !== width || this.height !== height) return false;
      if (pixels >= width * height) return true;
      // It counts as changed now: what changed is all of it.
      if (toldSize) this.#request(true, area);
    }
  }

  /** Whether something in this part of the screen changes in time, or has since the last look. */
  async change(area: Area, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    return this.#inTurn(async () => {
      const patience = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      this.#request(true, area);
      while (await this.#reader.arrives(patience)) {
        const { pixels, toldSize } = await this.#update(signal);
        if (pixels > 0) return true;
        if (toldSize) this.#request(true, area);
      }
      signal.throwIfAborted();
      return false;
    });
  }

  key(keysym: number, isDown: boolean): void {
    const message = Buffer.alloc(8);
    message.writeUInt8(TO_SERVER.key, 0);
    message.writeUInt8(isDown ? 1 : 0, 1);
    message.writeUInt32BE(keysym, 4);
    this.#socket.write(message);
  }

  /** One bit for each button that is down. */
  pointer(x: number, y: number, buttons: number): void {
    const message = Buffer.alloc(6);
    message.writeUInt8(TO_SERVER.pointer, 0);
    message.writeUInt8(buttons, 1);
    message.writeUInt16BE(Math.min(x, this.#width - 1), 2);
    message.writeUInt16BE(Math.min(y, this.#height - 1), 4);
    this.#socket.write(message);
  }

  get width(): number {
    return this.#width;
  }

  get height(): number {
    return this.#height;
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#turn.then(work).catch((error: unknown) => {
      // Half an answer may be unread: nothing that follows could be understood.
      this.close();
      throw error;
    });
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  #request(isIncremental: boolean, { x, y, width, height }: Area): void {
    const message = Buffer.alloc(10);
    message.writeUInt8(TO_SERVER.updateRequest, 0);
    message.writeUInt8(isIncremental ? 1 : 0, 1);
    for (const [at, value] of [x, y, width, height].entries()) message.writeUInt16BE(value, 2 + 2 * at);
    this.#socket.write(message);
  }

  /** Reads to the end of the next update. */
  async #update(signal: AbortSignal): Promise<Update> {
    for (;;) {
      const [kind] = await this.#reader.take(1, signal);
      if (kind === TO_CLIENT.update) return this.#rectangles(signal);
      if (kind === TO_CLIENT.bell) continue;
      if (kind === TO_CLIENT.cutText) await this.#skip((await this.#reader.take(7, signal)).readUInt32BE(3), signal);
      else if (kind === TO_CLIENT.colours) await this.#skip((await this.#reader.take(5, signal)).readUInt16BE(3) * 6, signal);
      else throw nonsense(`it sent message ${kind ?? "none"}`);
    }
  }

  async #rectangles(signal: AbortSignal): Promise<Update> {
    const count = (await this.#reader.take(3, signal)).readUInt16BE(1);
    let pixels = 0;
    let toldSize = false;
    for (let at = 0; at < count; at++) {
      const header = await this.#reader.take(12, signal);
      const [x, y, width, height] = [0, 2, 4, 6].map((offset) => header.readUInt16BE(offset)) as [number, number, number, number];
      const encoding = header.readInt32BE(8);
      if (encoding === SCREENS) {
        toldSize = true;
        await this.#screens({ why: x, status: y, width, height }, signal);
      } else if (encoding === RAW) pixels += await this.#paint({ x, y, width, height }, signal);
      else throw nonsense(`it sent encoding ${encoding}`);
    }
    return { pixels, toldSize };
  }

  async #screens(told: { why: number; status: number; width: number; height: number }, signal: AbortSignal): Promise<void> {
    const [screens = 0] = await this.#reader.take(4, signal);
    await this.#reader.take(screens * SCREEN_BYTES, signal);
    if (told.why === ASKED_FOR) this.#resized = told.status;
    if (told.width !== this.#width || told.height !== this.#height) this.#resize(told.width, told.height);
  }

  async #paint({ x, y, width, height }: Area, signal: AbortSignal): Promise<number> {
    if (x + width > this.#width || y + height > this.#height) throw nonsense("it painted outside");
    const data = await this.#reader.take(width * height * 4, signal);
    for (let row = 0; row < height; row++) {
      data.copy(this.#pixels, ((y + row) * this.#width + x) * 4, row * width * 4, (row + 1) * width * 4);
    }
    return width * height;
  }

  async #skip(length: number, signal: AbortSignal): Promise<void> {
    if (length > LIMITS.maxDesktopTextBytes) throw nonsense("it sent a text that is too long");
    await this.#reader.take(length, signal);
  }
}
