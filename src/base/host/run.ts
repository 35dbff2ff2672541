/** Runs a program of the host to its end, with bounded output and time. Never through a shell. */
import { type ChildProcess, spawn } from "node:child_process";
import { pipeline, Readable } from "node:stream";
import { VivError } from "../schema/errors.ts";
import { startUnprotected } from "./oom.ts";
import { whenAsleep } from "./processes.ts";

export interface RunOptions {
  readonly cwd?: string;
  /** Exactly these variables; PATH alone if left out. */
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  /** It is killed when it has slept for so long without using the processor. For programs that wait for nothing but a disk. */
  readonly asleepMs?: number;
  readonly maxOutputBytes?: number;
  readonly uid?: number;
  readonly gid?: number;
  readonly signal?: AbortSignal;
  /** Its standard input; nothing if left out. */
  readonly input?: Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
}

export interface RunResult {
  readonly code: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
}

/** Where the tools of system administrators lie, which a user's PATH may lack. */
export const TOOL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_OUTPUT_BYTES = 16 * 1024 ** 2;
/** For what a program wrote before it ended. */
const DRAIN_MS = 2_000;

export async function run(program: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const { promise, resolve, reject } = Promise.withResolvers<RunResult>();
  const { child, fed, stdout, stderr } = start(program, args, options);
  const most = options.maxOutputBytes ?? DEFAULT_OUTPUT_BYTES;
  const output: Buffer[] = [];
  const errors: Buffer[] = [];
  let bytes = 0;
  // A process that the program started may hold its output open, and even go on writing, after its end.
  const letGo = (): void => void (stdout.destroy(), stderr.destroy());
  const collect = (into: Buffer[]) => (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= most) into.push(chunk);
    else {
      child.kill("SIGKILL");
      letGo();
    }
  };
  const awake = options.asleepMs === undefined ? undefined : whenAsleep(child.pid, options.asleepMs, () => child.kill("SIGKILL"));
  child.once("exit", () => {
    awake?.();
    const patience = setTimeout(letGo, DRAIN_MS);
    child.once("close", () => clearTimeout(patience));
  });
  stdout.on("data", collect(output));
  stderr.on("data", collect(errors));
  child.once("error", (cause) => reject(new VivError("unsupported", `${program} can't be run: ${cause.message}`, { cause })));
  child.once("close", (code) => {
    if (bytes > most) reject(new VivError("internal", `${program} wrote more than ${most} bytes`));
    else fed.then(() => resolve({ code, stdout: Buffer.concat(output), stderr: Buffer.concat(errors).toString().trim() }), reject);
  });
  return promise;
}

interface StartedChild {
  readonly child: ChildProcess;
  /** Rejected when the input itself failed. */
  readonly fed: Promise<void>;
  readonly stdout: Readable;
  readonly stderr: Readable;
}

function start(program: string, args: readonly string[], options: RunOptions): StartedChild {
  const settings = {
    env: options.env ?? { PATH: TOOL_PATH, LC_ALL: "C" },
    timeout: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    killSignal: "SIGKILL",
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.uid === undefined ? {} : { uid: options.uid }),
    ...(options.gid === undefined ? {} : { gid: options.gid }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  } as const;
  if (options.input === undefined) {
    const child = startUnprotected(() => spawn(program, args, { ...settings, stdio: ["ignore", "pipe", "pipe"] }));
    return { child, fed: Promise.resolve(), stdout: child.stdout, stderr: child.stderr };
  }
  const child = startUnprotected(() => spawn(program, args, { ...settings, stdio: ["pipe", "pipe", "pipe"] }));
  const { promise: fed, resolve, reject } = Promise.withResolvers<void>();
  fed.catch(() => undefined);
  // A program may end before it has read everything: its exit code says whether that is well.
  pipeline(Readable.from(options.input), child.stdin, (error) => {
    if (error == null || ["EPIPE", "ECONNRESET", "ERR_STREAM_PREMATURE_CLOSE"].includes(error.code ?? "")) resolve();
    else {
      child.kill("SIGKILL");
      reject(error);
    }
  });
  return { child, fed, stdout: child.stdout, stderr: child.stderr };
}

/** As runChecked, for output of any length: it comes as a stream, which fails if the program does. */
export function runToStream(program: string, args: readonly string[], options: RunOptions = {}): Readable {
  const { child, stdout, stderr } = start(program, args, options);
  const ended = Promise.withResolvers<void>();
  ended.promise.catch(() => undefined);
  let said = "";
  stderr.on("data", (chunk: Buffer) => (said = (said + chunk.toString()).slice(-4096)));
  child.once("error", (cause) => ended.reject(new VivError("unsupported", `${program} can't be run: ${cause.message}`, { cause })));
  child.once("close", (code) => {
    if (code === 0) ended.resolve();
    else ended.reject(new VivError("internal", `${program} ${args[0] ?? ""} did not end well: ${said.trim().split("\n").at(-1) ?? ""}`));
  });
  const output = Readable.from(
    (async function* () {
      yield* stdout as AsyncIterable<Buffer>;
      await ended.promise;
    })(),
    { objectMode: false },
  );
  output.once("close", () => child.kill("SIGKILL"));
  return output;
}

/** As run, and any exit code that is not expected is an error. */
export async function runChecked(
  program: string,
  args: readonly string[],
  options: RunOptions & { okCodes?: readonly number[] } = {},
): Promise<RunResult> {
  return requireExitCode(program, args, await run(program, args, options), options.okCodes);
}

/** The result, if its exit code is expected. */
export function requireExitCode(program: string, args: readonly string[], result: RunResult, okCodes: readonly number[] = [0]): RunResult {
  if (result.code !== null && okCodes.includes(result.code)) return result;
  const ending = result.code === null ? "was killed or ran out of time" : `ended with ${result.code}`;
  throw new VivError("internal", `${program} ${args[0] ?? ""} ${ending}: ${result.stderr.split("\n").at(-1) ?? ""}`);
}
