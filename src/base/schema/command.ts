import { z } from "zod";
import { CommandId, SandboxId } from "./ids.ts";
import { LIMITS } from "./limits.ts";

export const Cause = z
  .enum(["exit", "signal", "timeout", "out-of-memory", "disk-full", "too-many-processes", "storage-damaged", "cancelled", "lost"])
  .describe("Why the command ended.");
export type Cause = z.infer<typeof Cause>;

export const CommandSpec = z
  .strictObject({
    command: z.array(z.string()).min(1).max(10_000).describe("Program and arguments."),
    cwd: z
      .string()
      .max(4096)
      .optional()
      .describe("Working folder inside, absolute or relative to the project's folder, which it is if left out."),
    env: z
      .record(z.string().regex(/^[^=\0]+$/), z.string())
      .optional()
      .describe("Environment variables added to the sandbox's own."),
    user: z.string().max(256).optional().describe("User inside, by name or number; the caller's if left out."),
    timeoutMs: z
      .number()
      .int()
      .min(1)
      .max(7 * 86_400_000)
      .optional()
      .describe("Ends the command after this time."),
  })
  .describe("A command to run inside.");
export type CommandSpec = z.infer<typeof CommandSpec>;

export const TerminalSize = z.strictObject({
  rows: z.number().int().min(1).max(10_000).describe("Rows."),
  cols: z.number().int().min(1).max(10_000).describe("Columns."),
});
export type TerminalSize = z.infer<typeof TerminalSize>;

export const CommandEnd = z
  .object({
    cause: Cause,
    exitCode: z.number().int().describe("Exit code as a shell would say it: 128 + signal, 124 for a timeout."),
    signal: z.string().nullable().describe("Name of the signal that ended it."),
    message: z.string().nullable().describe("One sentence, when the cause is not an ordinary exit."),
    wallMs: z.number().describe("Milliseconds from start to end."),
    cpuMs: z.number().describe("CPU milliseconds of the command and the children it waited for."),
    outputBytes: z.number().int().describe("Bytes written to stdout and stderr."),
    droppedBytes: z.number().int().describe("Bytes of output no longer in the log."),
  })
  .describe("How a command ended.")
  .meta({ id: "CommandEnd" });
export type CommandEnd = z.infer<typeof CommandEnd>;

export const Command = z
  .object({
    id: CommandId,
    sandbox: SandboxId,
    command: z.array(z.string()).describe("Program and arguments."),
    user: z.string().describe("User inside."),
    cwd: z.string().describe("Working folder."),
    terminal: z.boolean().describe("Whether it has a terminal."),
    pid: z.number().int().nullable().describe("Process id inside."),
    startedAt: z.string().describe("ISO time."),
    running: z.boolean().describe("Whether it still runs."),
    end: CommandEnd.nullable().describe("How it ended."),
    service: z.string().optional().describe("The service of the config that it belongs to; left out where a caller asked for it."),
  })
  .describe("A command that runs or ran inside a sandbox.")
  .meta({ id: "Command" });
export type Command = z.infer<typeof Command>;

/** Where a program of this machine, of the server's own user, reads the rest of a command's output: process 1 gives it for the token, once. */
export interface HandedOutput {
  /** Path of the sandbox's socket. */
  readonly socket: string;
  readonly exec: string;
  readonly token: string;
}

export const CommandResult = Command.extend({
  stdout: z.string().describe(`Standard output, the last ${LIMITS.capturedOutputBytes} bytes at most.`),
  stderr: z.string().describe("Standard error, bounded the same."),
  truncated: z.boolean().describe("True if output was cut."),
}).meta({ id: "CommandResult" });
export type CommandResult = z.infer<typeof CommandResult>;
