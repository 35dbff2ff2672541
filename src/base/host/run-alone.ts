/**
 * Runs a program of the host that starts others, such as git with ssh: in a session of its own, so that none of them finds a
 * terminal to ask questions on, and all of them end when its time is over.
 */
import { spawn } from "node:child_process";
import { VivError } from "../schema/errors.ts";
import { startUnprotected } from "./oom.ts";
import { signalGroup } from "./process-group.ts";
import type { RunOptions, RunResult } from "./run.ts";

type AloneOptions = Required<Pick<RunOptions, "cwd" | "env" | "timeoutMs">> & Pick<RunOptions, "uid" | "gid" | "signal">;

const SIGKILL = 9;
/** A connection that ssh keeps for later, or a helper that remembers logins, may hold the pipes; they are no part of the answer. */
const LAST_WORDS_MS = 1_000;
/** What a program says is cut here; it goes on. */
const MOST_SAID_BYTES = 256 * 1024;

export async function runAlone(program: string, args: readonly string[], options: AloneOptions): Promise<RunResult> {
  const { timeoutMs, signal, ...settings } = options;
  const { promise, resolve, reject } = Promise.withResolvers<RunResult>();
  if (signal?.aborted === true) throw new VivError("cancelled", `${program} was cancelled.`);
  const child = startUnprotected(() => spawn(program, args, { ...settings, detached: true, stdio: ["ignore", "pipe", "pipe"] }));
  const end = (): void => void signalGroup(child.pid ?? 0, SIGKILL);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    end();
  }, timeoutMs);
  signal?.addEventListener("abort", end, { once: true });
  const said = { stdout: new Said(), stderr: new Said() };
  child.stdout.on("data", (chunk: Buffer) => said.stdout.take(chunk));
  child.stderr.on("data", (chunk: Buffer) => said.stderr.take(chunk));
  child.once("error", (cause) => reject(new VivError("unsupported", `${program} can't be run: ${cause.message}`, { cause })));
  child.once("exit", () => {
    const last = setTimeout(() => {
      child.stdout.destroy();
      child.stderr.destroy();
    }, LAST_WORDS_MS);
    child.once("close", () => clearTimeout(last));
  });
  child.once("close", (code) => {
    if (late) reject(new VivError("timeout", `${program} did not end in ${Math.round(timeoutMs / 1000)} s.`));
    else if (signal?.aborted === true) reject(new VivError("cancelled", `${program} was cancelled.`));
    else resolve({ code, stdout: said.stdout.bytes, stderr: said.stderr.bytes.toString().trim() });
  });
  return promise.finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
  });
}

class Said {
  readonly #chunks: Buffer[] = [];
  #left = MOST_SAID_BYTES;

  take(chunk: Buffer): void {
    const part = chunk.subarray(0, this.#left);
    this.#left -= part.length;
    if (part.length > 0) this.#chunks.push(part);
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}
