/** Programs of the host in process groups of their own, so that a command ends with everything it started. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";
import { startUnprotected } from "./oom.ts";
import { run } from "./run.ts";

export interface GroupRequest {
  readonly command: readonly string[];
  readonly cwd: string;
  /** Exactly these variables. */
  readonly env: Readonly<Record<string, string>>;
  /** A pipe; otherwise there is nothing to read. */
  readonly stdin: boolean;
}

export interface GroupExit {
  readonly code: number | null;
  readonly signal: number | null;
}

export interface ProcessGroup {
  /** Of the first process, and of the group. */
  readonly id: number;
  readonly stdin: Writable | null;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** When the first process has ended; others of the group may go on. */
  readonly exited: Promise<GroupExit>;
}

/** Resolves when the program runs; rejects with the system's error when it can't. */
export async function startGroup(request: GroupRequest): Promise<ProcessGroup> {
  const [program = "", ...args] = request.command;
  const child = startUnprotected(() =>
    spawn(program, args, {
      cwd: request.cwd,
      env: request.env,
      detached: true,
      stdio: [request.stdin ? "pipe" : "ignore", "pipe", "pipe"],
    }),
  );
  const exited = new Promise<GroupExit>((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal: signal === null ? null : constants.signals[signal] }));
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
  child.on("error", () => undefined); // A signal that comes too late is no failure.
  const { pid, stdin, stdout, stderr } = child;
  if (pid === undefined || stdout === null || stderr === null) throw new Error("the process has no pipes");
  return { id: pid, stdin, stdout, stderr, exited };
}

/** Signals every process of a group; false when there is none. Signal 0 only asks. */
export function signalGroup(id: number, signal: number): boolean {
  if (!Number.isInteger(id) || id <= 1) return false;
  try {
    process.kill(-id, signal);
    return true;
  } catch (error) {
    // macOS answers EPERM for a group whose last process waits to be reaped.
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ESRCH" || code === "EPERM") return false;
    throw error;
  }
}

/** What tells a process from a later one with the same id: the time it started, as the system says it. */
export async function startOf(pid: number): Promise<string | undefined> {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name may hold anything; the fields after its bracket are numbers, the 20th of them the start.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    const { code, stdout } = await run("ps", ["-o", "lstart=", "-p", String(pid)]).catch(() => ({ code: 1, stdout: Buffer.alloc(0) }));
    const text = stdout.toString().trim();
    return code === 0 && text !== "" ? text : undefined;
  }
}
