/** Programs of the host, run by the helper: a server of a hundred megabytes takes ten milliseconds to fork, and stands still meanwhile. */
import { randomUUID } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { VivError, type ErrorCode } from "../schema/errors.ts";
import type { CellHost } from "./cell-host.ts";
import { CellError } from "./helper.ts";
import type { RunResult } from "./run.ts";

export interface ToolOptions {
  /** A folder of ours, for what the program writes. */
  readonly folder: string;
  readonly cwd: string;
  /** Exactly these variables. */
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  /** File with its standard input; nothing if left out. */
  readonly input?: string | undefined;
}

/** Runs a program to its end. */
export type Tool = (program: string, args: readonly string[], options: ToolOptions) => Promise<RunResult>;

export function toolWith(host: CellHost): Tool {
  return async (program, args, { folder, cwd, env, timeoutMs, maxOutputBytes, input }) => {
    const output = join(folder, `output-${randomUUID()}`);
    const request = host.request("run", [
      ["program", program],
      ...args.map((arg) => ["arg", arg] as const),
      ...Object.entries(env).map(([name, value]) => ["env", `${name}=${value}`] as const),
      ["cwd", cwd],
      ...(input === undefined ? [] : [["stdin", input] as const]),
      ["stdout", output],
      ["timeout", String(timeoutMs)],
      ["most", String(maxOutputBytes)],
    ]);
    try {
      const reply = await request;
      if (reply.get("ended") === "output") throw new VivError("internal", `${program} wrote more than ${maxOutputBytes} bytes`);
      return { code: reply.number("exit") ?? null, stdout: await readFile(output), stderr: (reply.get("stderr") ?? "").trim() };
    } catch (cause) {
      throw cause instanceof CellError ? refusal(program, cause) : cause;
    } finally {
      rm(output, { force: true }).catch(() => undefined);
    }
  };
}

function refusal(program: string, cause: CellError): VivError {
  const codes: Readonly<Record<string, ErrorCode>> = { "no-space": "disk_full", "too-many": "busy" };
  return new VivError(codes[cause.code] ?? "unsupported", `${program} can't be run: ${cause.message}`, { cause });
}
