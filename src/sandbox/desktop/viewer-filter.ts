/**
 * What a viewer sends to the screen, message by message: one that only looks has its keys, its pointer and its clipboard dropped here,
 * whatever its program believes. Messages whose length this filter can't tell end the connection; extensions that bring such messages
 * are taken out of what the viewer offers.
 */
import { Transform, type TransformCallback } from "node:stream";
import { LIMITS } from "../../base/schema/limits.ts";

const VERSIONS = ["RFB 003.007\n", "RFB 003.008\n"];
const NO_SECURITY = 1;
const SET_ENCODINGS = 2;
/** Extended mouse buttons, sound, remote shutdown, other input devices: they change or add messages of the viewer. */
const REFUSED_ENCODINGS = new Set([-316, -259, -309, -305]);
/** Keys, pointer, clipboard, size of the screen, keys as QEMU sends them. */
const INPUT = new Set([4, 5, 6, 251, 255]);

/** Length of the message that begins here; undefined as long as too little of it is there, NaN where it has none. */
function lengthOf(data: Buffer): number | undefined {
  const known = (needed: number, length: () => number): number | undefined => (data.length < needed ? undefined : length());
  switch (data[0]) {
    case 0:
      return 20;
    case SET_ENCODINGS:
      return known(4, () => 4 + 4 * data.readUInt16BE(2));
    case 3:
    case 150:
      return 10;
    case 4:
      return 8;
    case 5:
      return 6;
    case 6:
      return known(8, () => {
        // A negative length marks the extended clipboard.
        const length = Math.abs(data.readInt32BE(4));
        return length <= LIMITS.maxDesktopTextBytes ? 8 + length : Number.NaN;
      });
    case 248:
      return known(9, () => 9 + (data[8] ?? 0));
    case 251:
      return known(8, () => 8 + 16 * (data[6] ?? 0));
    case 255:
      return known(2, () => (data[1] === 0 ? 12 : Number.NaN));
    default:
      return Number.NaN;
  }
}

function withoutRefused(message: Buffer): Buffer {
  const kept: Buffer[] = [];
  for (let at = 4; at < message.length; at += 4)
    if (!REFUSED_ENCODINGS.has(message.readInt32BE(at))) kept.push(message.subarray(at, at + 4));
  const head = Buffer.from(message.subarray(0, 4));
  head.writeUInt16BE(kept.length, 2);
  return Buffer.concat([head, ...kept]);
}

export class ViewerFilter extends Transform {
  readonly #mayAct: () => boolean;
  #pending: Buffer = Buffer.alloc(0);
  #greeting: "version" | "security" | "shared" | "done" = "version";

  constructor(mayAct: () => boolean) {
    super();
    this.#mayAct = mayAct;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    try {
      while (this.#next());
      done();
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** Whether there was enough for one more piece. */
  #next(): boolean {
    if (this.#greeting !== "done") return this.#greet();
    if (this.#pending.length === 0) return false;
    const length = lengthOf(this.#pending);
    if (Number.isNaN(length)) throw new Error(`a viewer sent message ${this.#pending[0]}, which is not let through`);
    if (length === undefined || this.#pending.length < length) return false;
    const message = this.#take(length);
    const kind = message[0] ?? 0;
    if (kind === SET_ENCODINGS) this.push(withoutRefused(message));
    else if (!INPUT.has(kind) || this.#mayAct()) this.push(message);
    return true;
  }

  #greet(): boolean {
    const wanted = this.#greeting === "version" ? 12 : 1;
    if (this.#pending.length < wanted) return false;
    const piece = this.#take(wanted);
    if (this.#greeting === "version") {
      if (!VERSIONS.includes(piece.toString("latin1"))) throw new Error("a viewer speaks another version");
      this.#greeting = "security";
    } else if (this.#greeting === "security") {
      if (piece[0] !== NO_SECURITY) throw new Error("a viewer chose a security type that was not offered");
      this.#greeting = "shared";
    } else {
      this.#greeting = "done";
      // Always shared: one viewer does not turn the others away.
      piece[0] = 1;
    }
    this.push(piece);
    return true;
  }

  #take(length: number): Buffer {
    const piece = Buffer.from(this.#pending.subarray(0, length));
    this.#pending = this.#pending.subarray(length);
    return piece;
  }
}
