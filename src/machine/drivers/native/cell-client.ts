/** What the server can ask of a sandbox: the sandbox channel of native/PROTOCOL.md. */
import type { Duplex } from "node:stream";
import { type FieldList, type FieldValue, FrameDecoder, KIND } from "../../../base/host/frames.ts";
import type { DialTarget, ExecRequest, FileOperations } from "../drivers.ts";
import { CellCommand } from "./cell-command.ts";
import { ask, askList, errorOf, lost, openSocket, request, silent } from "./cell-connection.ts";
import { CellFiles } from "./cell-files.ts";
import { ReadyConnection } from "./ready-connection.ts";
import { decodePath, encodePath } from "../../../base/schema/path-bytes.ts";
import { VivError } from "../../../base/schema/errors.ts";
import { LIMITS } from "../../../base/schema/limits.ts";
import { withTimeout } from "../../../base/host/with-timeout.ts";

export interface CellExec extends ExecRequest {
  /** Bound of the log on the host; 0 keeps none. */
  readonly logBytes: number;
}

export interface ListedCommand {
  readonly id: string;
  readonly pid: number;
  /** The first kilobyte of its arguments. */
  readonly arguments: readonly string[];
  readonly user: string;
  readonly startedMs: number;
  /** False: it has ended, and a background child holds its output open. */
  readonly running: boolean;
}

/** Text stays text: the fields of a request are then encoded together. */
function pathValue(path: string): FieldValue {
  return path.isWellFormed() ? path : encodePath(path);
}

function execFields(exec: CellExec): FieldList {
  const fields: [string, FieldValue][] = [
    ["exec", exec.id],
    ["cwd", pathValue(exec.cwd)],
    ["user", exec.user],
  ];
  for (const argument of exec.command) fields.push(["arg", pathValue(argument)]);
  for (const [name, value] of Object.entries(exec.env)) fields.push(["env", pathValue(`${name}=${value}`)]);
  if (exec.brief === true) fields.push(["brief", "1"]);
  if (exec.terminal !== undefined) fields.push(["tty", "1"], ["rows", String(exec.terminal.rows)], ["cols", String(exec.terminal.cols)]);
  if (exec.stdin) fields.push(["stdin", "1"]);
  if (exec.timeoutMs !== undefined) fields.push(["timeout_ms", String(Math.ceil(exec.timeoutMs))]);
  fields.push(["log_bytes", String(exec.logBytes)]);
  return fields;
}

export class CellClient {
  readonly #path: string;
  readonly #ready: ReadyConnection;
  readonly #answerMs: number;
  readonly files: FileOperations;

  /** `answerMs` is how long process 1 may take to answer what it answers at once. */
  constructor(socketPath: string, answerMs: number = LIMITS.cellAnswerMs) {
    this.#path = socketPath;
    this.#answerMs = answerMs;
    this.#ready = new ReadyConnection(socketPath);
    this.files = new CellFiles(socketPath);
  }

  /** A connection for the first command, also before process 1 has begun to answer. */
  prepare(): void {
    this.#ready.prepare();
  }

  /** Resolves when the program runs. */
  exec(exec: CellExec): Promise<CellCommand> {
    const subject = { name: exec.command[0] ?? "", user: exec.user, cwd: exec.cwd };
    const ready = this.#ready.take();
    const fields = execFields(exec);
    const socket = ready === undefined ? openSocket(this.#path, "exec", fields) : request(ready, "exec", fields);
    const command = new CellCommand(socket, subject, (signal) => this.#signal(exec.id, signal), {
      place: { socket: this.#path, exec: exec.id },
      release: (kept) => this.#ready.keep(kept),
    });
    // Not before the caller of this request has been answered.
    const prepare = (): void => void setImmediate(() => this.#ready.prepare());
    command.exit.then(prepare, () => undefined);
    // A command of which its caller was told that it does not run must not run later.
    return this.#inTime(command.started(), subject.name, () => command.abandon());
  }

  /** An answer that is there at once, unless the sandbox stands still. */
  #inTime<T>(answer: Promise<T>, subject: string, giveUp: () => void = () => undefined): Promise<T> {
    return withTimeout(answer, this.#answerMs, () => {
      giveUp();
      return silent(subject, this.#answerMs);
    });
  }

  /** Listens to a command that runs already; undefined when it has ended. */
  async attach(command: string, stdin: boolean): Promise<CellCommand | undefined> {
    const socket = openSocket(this.#path, "attach", [
      ["exec", command],
      ["stdin", stdin ? "1" : "0"],
    ]);
    const attached = new CellCommand(socket, command, (signal) => this.#signal(command, signal));
    try {
      return await this.#inTime(attached.started(), command, () => attached.detach());
    } catch (error) {
      if (error instanceof VivError && error.code === "not_found") return undefined;
      throw error;
    }
  }

  async list(): Promise<ListedCommand[]> {
    const rows = await this.#inTime(askList(this.#path, "list", [], "list"), "list");
    return rows.map((row) => ({
      id: row.get("exec") ?? "",
      pid: row.number("pid") ?? 0,
      arguments: row.rawAll("arg").map(decodePath),
      user: row.get("user") ?? "",
      startedMs: row.number("started_ms") ?? 0,
      running: row.flag("running"),
    }));
  }

  /** Signals a command's process group; false when there is no such command any more. */
  async kill(command: string, signal: number): Promise<boolean> {
    try {
      const fields: FieldList = [
        ["exec", command],
        ["signal", String(signal)],
      ];
      await this.#inTime(ask(this.#path, "kill", fields, command), command);
      return true;
    } catch (error) {
      if (error instanceof VivError && error.code === "not_found") return false;
      throw error;
    }
  }

  /** A sandbox that is lost ends its commands by itself, and the connection of each tells of that. */
  #signal(command: string, signal: number): void {
    this.kill(command, signal).catch(() => undefined);
  }

  /** Resolves when process 1 has ended. */
  async stop(graceMs: number): Promise<void> {
    const socket = openSocket(this.#path, "stop", [["grace_ms", String(Math.ceil(graceMs))]]);
    const decoder = new FrameDecoder();
    try {
      for await (const chunk of socket) {
        for (const frame of decoder.push(chunk as Buffer)) {
          if (frame.kind === KIND.error) throw errorOf(frame, "stop");
        }
      }
    } catch (error) {
      if (error instanceof VivError) throw error; // any other end is the one asked for
    } finally {
      socket.destroy(); // it is half-open by design: the end of the other side leaves it open
    }
  }

  async ping(): Promise<{ version: number; commands: number }> {
    const reply = await this.#inTime(ask(this.#path, "ping", [], "ping"), "ping");
    return { version: reply.number("version") ?? 0, commands: reply.number("commands") ?? 0 };
  }

  /** Tells new limits inside; answers the processors of commands before and after. Undefined: an older process 1 tells none. */
  async limits(told: FieldList): Promise<{ from: string; to: string } | undefined> {
    try {
      const reply = await ask(this.#path, "limits", told, "limits");
      return { from: reply.get("from") ?? "", to: reply.get("to") ?? "" };
    } catch (error) {
      if (error instanceof VivError && error.code === "unsupported") return undefined;
      throw error;
    }
  }

  /** A connection to a port of the sandbox's loopback, or to a Unix socket inside, half-close kept. */
  dial(target: DialTarget, host: "127.0.0.1" | "::1" = "127.0.0.1"): Promise<Duplex> {
    const isPort = typeof target === "number";
    const subject = isPort ? `port ${target}` : `socket ${target}`;
    const fields: FieldList = isPort
      ? [
          ["port", String(target)],
          ["host", host],
        ]
      : [["path", target]];
    const socket = openSocket(this.#path, "dial", fields);
    const decoder = new FrameDecoder();
    const { promise, resolve, reject } = Promise.withResolvers<Duplex>();
    const fail = (error: Error) => {
      reject(error);
      socket.destroy();
    };
    const onError = (cause: Error) => fail(lost(subject, cause));
    const onEnd = () => fail(lost(subject));
    const onData = (chunk: Buffer) => {
      decoder.feed(chunk);
      const frame = decoder.next();
      if (frame === undefined) return;
      socket.off("data", onData).off("error", onError).off("end", onEnd).pause();
      if (frame.kind !== KIND.reply) return fail(errorOf(frame, subject));
      const early = decoder.takePending();
      if (early.length > 0) socket.unshift(early);
      resolve(socket);
    };
    socket.on("data", onData).on("error", onError).on("end", onEnd);
    return this.#inTime(promise, subject, () => socket.destroy());
  }
}
