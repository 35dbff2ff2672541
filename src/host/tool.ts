/** Programs of the host, run by the helper: a server of a hundred megabytes takes ten milliseconds to fork, and stands still meanwhile. */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { VivError } from "../schema/errors.ts";
import { CellError, type CellHost } from "./cell-host.ts";
import type { RunResult } from "./run.ts";

export interface ToolOptions {
  /** A folder of ours, for as long as somebody may look at what the program wrote. */
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
    const reply = await request.catch((cause: unknown) => {
      if (!(cause instanceof CellError) || cause.code === "closed") throw cause;
      throw new VivError("unsupported", `${program} can't be run: ${cause.message}`, { cause });
    });
    if (reply.get("ended") === "output") throw new VivError("internal", `${program} wrote more than ${maxOutputBytes} bytes`);
    return { code: reply.number("exit") ?? null, stdout: await readFile(output), stderr: (reply.get("stderr") ?? "").trim() };
  };
}
