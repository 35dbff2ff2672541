/** Runs a program of the host to its end, with bounded output and time. Never through a shell. */
import { spawn } from "node:child_process";
import { VivError } from "../schema/errors.ts";

export interface RunOptions {
  readonly cwd?: string;
  /** Exactly these variables; PATH alone if left out. */
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  readonly maxOutputBytes?: number;
  readonly uid?: number;
  readonly gid?: number;
  readonly signal?: AbortSignal;
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

export async function run(program: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const { promise, resolve, reject } = Promise.withResolvers<RunResult>();
  const child = spawn(program, args, {
    env: options.env ?? { PATH: TOOL_PATH, LC_ALL: "C" },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    killSignal: "SIGKILL",
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.uid === undefined ? {} : { uid: options.uid }),
    ...(options.gid === undefined ? {} : { gid: options.gid }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const most = options.maxOutputBytes ?? DEFAULT_OUTPUT_BYTES;
  const output: Buffer[] = [];
  const errors: Buffer[] = [];
  let bytes = 0;
  const collect = (into: Buffer[]) => (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > most) child.kill("SIGKILL");
    else into.push(chunk);
  };
  child.stdout.on("data", collect(output));
  child.stderr.on("data", collect(errors));
  child.once("error", (cause) => reject(new VivError("unsupported", `${program} can't be run: ${cause.message}`, { cause })));
  child.once("close", (code) => {
    if (bytes > most) reject(new VivError("internal", `${program} wrote more than ${most} bytes`));
    else resolve({ code, stdout: Buffer.concat(output), stderr: Buffer.concat(errors).toString().trim() });
  });
  return promise;
}

/** As run, and any exit code that is not expected is an error. */
export async function runChecked(
  program: string,
  args: readonly string[],
  options: RunOptions & { okCodes?: readonly number[] } = {},
): Promise<RunResult> {
  const result = await run(program, args, options);
  if (result.code !== null && (options.okCodes ?? [0]).includes(result.code)) return result;
  const ending = result.code === null ? "was killed or ran out of time" : `ended with ${result.code}`;
  throw new VivError("internal", `${program} ${args[0] ?? ""} ${ending}: ${result.stderr.split("\n").at(-1) ?? ""}`);
}
