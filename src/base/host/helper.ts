/** One process of the native helper, from its start to its end, and the channel to it. Requests are answered out of order. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import { LIMITS } from "../schema/limits.ts";
import { encodeFields, encodeFrame, type FieldList, Fields, type Frame, FrameDecoder, KIND } from "./frames.ts";
import { startUnprotected } from "./oom.ts";
import { isWaitingForDisk } from "./processes.ts";

/** An ERROR frame of the cell: `code` is one of the protocol's words, `step` names where it failed. */
export class CellError extends Error {
  override readonly name = "CellError";
  readonly code: string;
  readonly errno: number;
  readonly step: string;

  constructor(code: string, errno: number, step: string, message: string) {
    super(message);
    this.code = code;
    this.errno = errno;
    this.step = step;
  }

  static from(fields: Fields): CellError {
    const code = fields.get("code") ?? "failed";
    return new CellError(code, fields.number("errno") ?? 0, fields.get("step") ?? "", fields.get("message") ?? code);
  }
}

/** The helper ended, or was given up, during the request: it is not known how much of it was done. */
export class HelperLost extends Error {
  override readonly name = "HelperLost";
}

interface WaitingCall {
  resolve(fields: Fields): void;
  reject(reason: Error): void;
}

export type CellEvent = (name: string, fields: Fields) => void;

interface HelperOptions {
  /** The file that is run, and what it is called. */
  readonly file: string;
  readonly name: string;
  readonly onEvent: CellEvent | undefined;
  /** Called once when the helper has ended without close(). */
  readonly onLost: (reason: HelperLost) => void;
}

const stderrMaxBytes = 8192;
const SILENT_LOOKS = 4;

export class Helper {
  readonly #child: ChildProcess;
  readonly #channel: Socket;
  readonly #decoder = new FrameDecoder();
  readonly #waiting = new Map<string, WaitingCall>();
  readonly #onEvent: CellEvent | undefined;
  readonly #onLost: (reason: HelperLost) => void;
  readonly #ended: Promise<void>;
  #nextId = 1;
  #stderr = "";
  #lost: HelperLost | undefined;
  #closing = false;
  /** Looks in a row at which a request waited and no answer had come. */
  #silentLooks = 0;
  readonly #looks: NodeJS.Timeout;

  constructor(options: HelperOptions) {
    this.#onEvent = options.onEvent;
    this.#onLost = options.onLost;
    // Node makes a "pipe" beyond stderr a Unix socket pair, which is what the protocol asks for.
    // A process group of its own keeps a Ctrl-C at the server's terminal away from the helper.
    // It protects itself from the OOM killer, and gives its children back what it was started with.
    this.#child = startUnprotected(() =>
      spawn(options.file, ["host"], { argv0: options.name, stdio: ["ignore", "ignore", "pipe", "pipe"], detached: true, env: {} }),
    );
    this.#channel = this.#child.stdio[3] as Socket;
    this.#ended = once(this.#child, "close").then(
      () => undefined,
      (reason: unknown) => this.#lose(`could not be started: ${String(reason)}`),
    );
    this.#child.once("exit", (code, signal) => this.#lose(`ended with ${signal ?? `exit code ${code}`}`));
    this.#child.stderr?.on("data", (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString("utf8")).slice(-stderrMaxBytes);
    });
    this.#channel.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.#looks = setInterval(() => this.#look(), LIMITS.cellSilenceMs / SILENT_LOOKS);
    this.#looks.unref();
    // The end of the process says more than the end of its channel, and comes right after it.
    const channelEnded = (how: string): void => void this.#ended.then(() => this.#lose(how));
    this.#channel.once("error", (reason) => channelEnded(reason.message));
    this.#channel.once("close", () => channelEnded("closed its channel"));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  request(operation: string, fields: FieldList = []): Promise<Fields> {
    const { promise, resolve, reject } = Promise.withResolvers<Fields>();
    if (this.#lost !== undefined || this.#closing) {
      reject(this.#lost ?? new HelperLost("was closed"));
      return promise;
    }
    const id = String(this.#nextId++);
    const frame = encodeFrame(KIND.request, encodeFields([["id", id], ["op", operation], ...fields]));
    this.#waiting.set(id, { resolve, reject });
    this.#channel.write(frame);
    return promise;
  }

  /** Ends the helper and waits for its end. Launches and removals under way go on without it. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#channel.destroy();
    const patience = setTimeout(() => this.#child.kill("SIGKILL"), LIMITS.cellSilenceMs);
    await this.#ended;
    clearTimeout(patience);
    clearInterval(this.#looks);
  }

  /**
   * Requests may take minutes, but each long one has a process of its own, so the helper's loop goes on: a helper that is silent hangs.
   * One that waits for a disk does not hang, and could not be ended anyway.
   */
  #look(): void {
    if (this.#waiting.size === 0 || isWaitingForDisk(this.#child.pid)) this.#silentLooks = 0;
    else if (this.#silentLooks >= SILENT_LOOKS) {
      this.#lose(`did not answer for ${LIMITS.cellSilenceMs / 1000} seconds`);
      this.#child.kill("SIGKILL");
    } else {
      this.#silentLooks += 1;
      // Any answer will do, a refusal too.
      this.#channel.write(
        encodeFrame(
          KIND.request,
          encodeFields([
            ["id", "0"],
            ["op", "ping"],
          ]),
        ),
      );
    }
  }

  #receive(chunk: Buffer): void {
    this.#silentLooks = 0;
    try {
      for (const frame of this.#decoder.push(chunk)) this.#dispatch(frame);
    } catch (reason) {
      this.#lose(`broke the protocol: ${String(reason)}`);
    }
  }

  #dispatch(frame: Frame): void {
    const fields = new Fields(frame.payload);
    if (frame.kind === KIND.event) {
      this.#onEvent?.(fields.get("event") ?? "", fields);
      return;
    }
    const id = fields.get("id") ?? "";
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    if (frame.kind === KIND.reply) waiting.resolve(fields);
    else waiting.reject(CellError.from(fields));
  }

  #lose(how: string): void {
    if (this.#lost !== undefined) return;
    clearInterval(this.#looks);
    const said = this.#stderr.trim();
    this.#lost = new HelperLost(`${how}${said === "" ? "" : `: ${said}`}`);
    this.#channel.destroy();
    for (const waiting of this.#waiting.values()) waiting.reject(this.#lost);
    this.#waiting.clear();
    if (!this.#closing) this.#onLost(this.#lost);
  }
}
