/** A command that runs inside a sandbox, as its caller holds it. */
import type { CommandStream } from "../client/command-stream.ts";
import type { CallOptions } from "./connection.ts";
import "./dispose.ts";
import { cancelled } from "./error.ts";
import type { Command, CommandEnd } from "./types/sandboxes.ts";

/** A line for the shell, or a program and its arguments. */
export type CommandLine = string | readonly string[];

/** Output of a command; a gap is output that the server no longer has. */
export type Output =
  | { readonly stream: "stdout" | "stderr"; readonly data: Uint8Array }
  | { readonly stream: "gap"; readonly bytes: number };

/** How a command is run. */
export interface CommandOptions extends CallOptions {
  /** Folder inside, absolute or relative to the project, which it is if left out. */
  readonly cwd?: string | undefined;
  /** Variables added to the sandbox's own. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** User inside, by name or number. */
  readonly user?: string | undefined;
  /** Ends the command after this time. */
  readonly timeoutMs?: number | undefined;
}

export interface RunOptions extends CommandOptions {
  /** Its standard input; empty if left out. */
  readonly stdin?: string | Uint8Array | undefined;
  /** Gets standard output as it comes. */
  readonly onStdout?: ((text: string) => void) | undefined;
  /** Gets standard error as it comes. */
  readonly onStderr?: ((text: string) => void) | undefined;
}

export interface ExecOptions extends CommandOptions {
  /** Gives it a terminal of this size. */
  readonly terminal?: { readonly rows: number; readonly cols: number } | undefined;
  /** Whether `write` will be used; if not, its input is empty. Like this with a terminal. */
  readonly stdin?: boolean | undefined;
  /** Whether it goes on when the caller goes away; else it is killed. */
  readonly keep?: boolean | undefined;
}

/** What came of a command. An exit code other than 0 is a value, not an error. */
export interface RunResult {
  /** As a shell says it: 128 + signal, 124 for a timeout. */
  readonly exitCode: number;
  /** The last 16 MiB. */
  readonly stdout: string;
  /** The last 16 MiB. */
  readonly stderr: string;
  /** Whether output is missing above. */
  readonly truncated: boolean;
  /** Why it ended. */
  readonly cause: CommandEnd["cause"];
  /** One sentence, where the cause is no ordinary exit. */
  readonly message: string | null;
  readonly wallMs: number;
  readonly cpuMs: number;
}

export const COMMAND_OPTIONS = ["cwd", "env", "user", "timeoutMs", "signal"] as const;

/** The words that are run. */
export function wordsOf(command: CommandLine): string[] {
  return typeof command === "string" ? ["/bin/sh", "-c", command] : [...command];
}

/** A command and its streams. Iterating over it gives its output; output that is not read makes the command wait. */
export class Execution implements AsyncIterable<Output> {
  readonly #stream: CommandStream;
  readonly #signal: AbortSignal | undefined;

  /** @internal */
  constructor(stream: CommandStream, signal: AbortSignal | undefined) {
    this.#stream = stream;
    this.#signal = signal;
    signal?.addEventListener("abort", () => stream.close(), { once: true });
    if (signal?.aborted === true) stream.close();
  }

  /** The command: its id, words, user and folder. */
  get command(): Command {
    return this.#stream.command;
  }

  /** Resolves when the command has ended. */
  get end(): Promise<CommandEnd> {
    return this.#stream.end.catch((error: unknown) => Promise.reject(this.#reason(error)));
  }

  /** Writes to its standard input; resolves when the command keeps up. */
  write(data: string | Uint8Array): Promise<void> {
    return this.#stream.write(typeof data === "string" ? new TextEncoder().encode(data) : data);
  }

  /** Ends its standard input. */
  endInput(): void {
    this.#stream.endInput();
  }

  /** Changes the size of its terminal. */
  resize(size: { readonly rows: number; readonly cols: number }): void {
    this.#stream.resize(size.rows, size.cols);
  }

  /** Sends a signal to its process group. */
  kill(signal = "TERM"): void {
    this.#stream.signal(signal.replace(/^SIG/, ""));
  }

  /** Goes away: the command is killed, or kept with `keep`. */
  close(): void {
    this.#stream.close();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Output, void, void> {
    try {
      yield* this.#stream.output;
    } catch (error) {
      throw this.#reason(error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  /** A connection that its caller broke off was cancelled. */
  #reason(error: unknown): unknown {
    return this.#signal?.aborted === true ? cancelled(this.#signal) : error;
  }
}

/** Output as text of which the last part is kept. */
class Tail {
  static readonly BYTES = 16 * 1024 ** 2;
  truncated = false;
  readonly #decoder = new TextDecoder();
  readonly #chunks: Uint8Array[] = [];
  readonly #hear: ((text: string) => void) | undefined;
  #size = 0;

  constructor(hear: ((text: string) => void) | undefined) {
    this.#hear = hear;
  }

  add(data: Uint8Array): void {
    if (this.#hear !== undefined) this.#tell(this.#decoder.decode(data, { stream: true }));
    this.#chunks.push(data);
    this.#size += data.length;
    while (this.#size > Tail.BYTES) {
      const first = this.#chunks[0] ?? data;
      const over = this.#size - Tail.BYTES;
      if (first.length <= over) this.#chunks.shift();
      else this.#chunks[0] = first.subarray(over);
      this.#size -= Math.min(first.length, over);
      this.truncated = true;
    }
  }

  text(): string {
    if (this.#hear !== undefined) this.#tell(this.#decoder.decode());
    const decoder = new TextDecoder();
    return this.#chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join("") + decoder.decode();
  }

  #tell(text: string): void {
    if (text !== "") this.#hear?.(text);
  }
}

/** Reads a command to its end. */
export async function collect(stream: CommandStream, { stdin, signal, onStdout, onStderr }: RunOptions): Promise<RunResult> {
  const tails = { stdout: new Tail(onStdout), stderr: new Tail(onStderr) };
  let lost = false;
  const abort = (): void => stream.close();
  signal?.addEventListener("abort", abort, { once: true });
  try {
    if (signal?.aborted === true) throw cancelled(signal);
    if (stdin !== undefined) void feed(stream, stdin);
    for await (const output of stream.output) {
      if (output.stream === "gap") lost = true;
      else tails[output.stream].add(output.data);
    }
    const { exitCode, cause, message, wallMs, cpuMs } = await stream.end;
    const [stdout, stderr] = [tails.stdout.text(), tails.stderr.text()];
    return { exitCode, stdout, stderr, truncated: lost || tails.stdout.truncated || tails.stderr.truncated, cause, message, wallMs, cpuMs };
  } catch (error) {
    throw signal?.aborted === true ? cancelled(signal) : error;
  } finally {
    signal?.removeEventListener("abort", abort);
    stream.close();
  }
}

async function feed(stream: CommandStream, stdin: string | Uint8Array): Promise<void> {
  try {
    await stream.write(typeof stdin === "string" ? new TextEncoder().encode(stdin) : stdin);
    stream.endInput();
  } catch {
    // A command that ended without reading its input is no failure; that of the connection meets the reader of its output.
  }
}
