/** A file that a front moves by itself (native/front/carry.c): it is judged and recorded here, and its bytes do not pass. */
import type { Duplex } from "node:stream";
import { encodeFields, encodeFrame, Fields, type Frame, FrameError, KIND, type FieldList } from "../../base/host/frames.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { CarryDirection } from "../../machine/drivers/drivers.ts";
import type { Engine } from "../operations/operations.ts";

export class CarriedFile {
  readonly #socket: Duplex;
  readonly #moved = Promise.withResolvers<Frame>();

  constructor(socket: Duplex) {
    this.#socket = socket;
    this.#moved.promise.catch(() => undefined);
  }

  /** Does all of it, and tells the front how it went. */
  async serve(request: Fields, { streams }: Engine): Promise<void> {
    const user = request.get("user");
    const how = { ...directionOf(request), ...(user === undefined ? {} : { user }) };
    try {
      const entry = await streams.carryFile(request.get("sandbox") ?? "", request.get("path") ?? "", how, (socket, asked) => {
        this.#say([
          ["cell", socket],
          ["most", String(LIMITS.maxUploadBytes)],
        ]);
        this.#socket.write(encodeFrame(KIND.request, asked));
        return this.#moved.promise;
      });
      this.#end(entry === undefined ? [["node", "1"]] : [["done", JSON.stringify(entry)]]);
    } catch (error) {
      this.#end([["refused", JSON.stringify(VivError.from(error).toBody())]]);
    }
  }

  /** What process 1 said to the front. */
  take(frame: Frame): void {
    if (frame.kind !== KIND.reply && frame.kind !== KIND.error && frame.kind !== KIND.end)
      throw new FrameError(`a frame of kind ${frame.kind} from a front`);
    this.#moved.resolve(frame);
  }

  leave(): void {
    this.#moved.reject(new VivError("cancelled", "The program that moved the file has ended."));
  }

  #say(fields: FieldList): void {
    if (this.#socket.writable) this.#socket.write(encodeFrame(KIND.reply, encodeFields(fields)));
  }

  #end(fields: FieldList): void {
    if (this.#socket.writable) this.#socket.end(encodeFrame(KIND.reply, encodeFields(fields)));
  }
}

function directionOf(request: Fields): CarryDirection {
  if (request.get("carry") === "read") return { op: "read" };
  const mode = request.get("mode");
  return mode === undefined ? { op: "write" } : { op: "write", mode: Number.parseInt(mode, 8) & 0o7777 };
}
