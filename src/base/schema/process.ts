/** Processes inside a sandbox, whether or not viv started them. */
import { z } from "zod";
import { contract } from "./contract.ts";
import { SandboxRef } from "./ids.ts";
import { LIMITS } from "./limits.ts";
import { ROUTES } from "./routes.ts";

export const Process = z
  .object({
    pid: z.number().int().describe("Process id inside."),
    parent: z.number().int().describe("Process id of its parent inside; 1 for one whose parent has ended, 0 where it is not known."),
    name: z.string().describe("The kernel's short name of it. Like its arguments, it is what the process says of itself."),
    command: z
      .array(z.string())
      .describe(`Program and arguments, the first ${LIMITS.shownProcessBytes} bytes of them; empty for one that has ended.`),
    state: z
      .enum(["running", "sleeping", "waiting", "stopped", "ended", "unknown"])
      .describe("waiting: for a disk. stopped: by a signal or a debugger. ended: its parent has not asked how."),
    startedAt: z.string().describe("ISO time."),
    cpuMs: z.number().describe("CPU milliseconds."),
    memoryBytes: z.number().describe("Memory that it holds; what it shares with others counts for each."),
    threads: z.number().int(),
  })
  .describe("A process inside a sandbox.")
  .meta({ id: "Process" });
export type Process = z.infer<typeof Process>;

export const PROCESS_CONTRACTS = {
  listProcesses: contract(
    ROUTES.listProcesses,
    "Processes that run inside, also those that commands left behind",
    z.strictObject({ sandbox: SandboxRef }),
    z.object({
      processes: z.array(Process).describe(`In the order of their ids, ${LIMITS.shownProcesses} at most.`),
      more: z.boolean().describe("True if there are more."),
    }),
  ),
} as const;
