/** The front moves the bytes of a large file itself, between a file here and one that process 1 of the sandbox opens (native/front/carry.c). */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { findFront } from "../../base/config/machine.ts";
import { findPaths, type Environment } from "../../base/config/paths.ts";
import { VivError, type ErrorBody } from "../../base/schema/errors.ts";
import type { Carried, Carrier } from "../client/copy/carrier.ts";

const CARRIED = 0;
const REFUSED = 1;

export class FrontCarrier implements Carrier {
  readonly #front: string;
  readonly #socket: string;

  private constructor(front: string, socket: string) {
    this.#front = front;
    this.#socket = socket;
  }

  /** Undefined in a copy without a front. */
  static find(env: Environment): FrontCarrier | undefined {
    const front = findFront();
    return front === undefined ? undefined : new FrontCarrier(front, findPaths(env).socket);
  }

  async carry({ sandbox, path, user, mode, direction }: Carried, file: number): Promise<unknown> {
    const words = ["--carry", this.#socket, direction, sandbox, path];
    if (user !== undefined) words.push(`user=${user}`);
    if (mode !== undefined) words.push(`mode=${mode.toString(8)}`);
    if (!words.every((word) => word.isWellFormed())) return undefined;
    const child = spawn(this.#front, words, { stdio: ["ignore", "pipe", "ignore", file], env: {} });
    const ended = once(child, "close").catch(() => [undefined]);
    const [said, [code]] = await Promise.all([child.stdout === null ? "" : text(child.stdout), ended]);
    if (code === REFUSED) throw VivError.fromBody(JSON.parse(said) as ErrorBody);
    return code === CARRIED ? JSON.parse(said) : undefined;
  }
}
