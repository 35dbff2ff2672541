/** Commands of a sandbox, and all processes inside. */
import { LIMITS } from "../../base/schema/limits.ts";
import type { Process } from "../../base/schema/process.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import { notRunning } from "../../sandbox/shared/state.ts";
import type { Handlers } from "./operations.ts";

type Own = "runCommand" | "listCommands" | "inspectCommand" | "killCommand" | "listProcesses";

/** By the kernel's letter. */
const STATES: Readonly<Record<string, Process["state"]>> = {
  R: "running",
  S: "sleeping",
  I: "sleeping",
  D: "waiting",
  T: "stopped",
  t: "stopped",
  Z: "ended",
  X: "ended",
};

export function commandHandlers(parts: Pick<Parts, "live">, sandboxes: Sandboxes): Pick<Handlers, Own> {
  return {
    runCommand: async ({ sandbox, stdin, background, ...spec }, signal) => {
      const row = await sandboxes.find(sandbox);
      if (background !== true) return sandboxes.commands.run(row, spec, stdin, signal);
      const stream = await sandboxes.commands.start(row, spec);
      stream.close();
      return { ...stream.command, stdout: "", stderr: "", truncated: false };
    },
    listCommands: async ({ sandbox, all }) => ({
      commands: await sandboxes.commands.list(await sandboxes.find(sandbox), all ? undefined : true),
    }),
    inspectCommand: async ({ sandbox, command }) => sandboxes.commands.result(await sandboxes.find(sandbox), command),
    killCommand: async ({ sandbox, command, signal }) => (
      await sandboxes.commands.kill(await sandboxes.find(sandbox), command, signal),
      { ok: true }
    ),
    // A page that looks at processes does not count as a use of the sandbox.
    listProcesses: async ({ sandbox }) => {
      const row = await sandboxes.find(sandbox);
      // A paused one has processes, too: the host looks, not a program inside.
      const live = parts.live.get(row.id);
      if (live === undefined) throw notRunning(row);
      const found = await live.walls.processes(LIMITS.shownProcesses + 1);
      const processes = found.slice(0, LIMITS.shownProcesses).map((one): Process => ({
        ...one,
        command: [...one.command],
        state: STATES[one.state] ?? "unknown",
        startedAt: one.startedAt.toISOString(),
      }));
      return { processes, more: found.length > LIMITS.shownProcesses };
    },
  };
}
