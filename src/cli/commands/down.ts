import { setTimeout as delay } from "node:timers/promises";
import { findPaths } from "../../config/paths.ts";
import { isRunning } from "../../host/processes.ts";
import { LIMITS } from "../../schema/limits.ts";
import { VivError } from "../../schema/errors.ts";
import type { Client } from "../../client/client.ts";
import { command } from "../command.ts";
import { connectIfRunning } from "../connect.ts";
import { isListening } from "../../client/listening.ts";

interface Stopped {
  readonly pid: number;
  /** Whether sandboxes outlive it. */
  readonly leaves: boolean;
}

async function shutDown(client: Client, socket: string): Promise<Stopped> {
  const { pid, sandboxes } = await client.call("status", {});
  await client.call("shutdown", {});
  client.close();
  const deadline = performance.now() + LIMITS.shutdownMs;
  while ((await isListening(socket)) || isRunning(pid)) {
    if (performance.now() > deadline) throw new VivError("timeout", `The server (process ${pid}) has not ended yet.`);
    await delay(10);
  }
  return { pid, leaves: (sandboxes["running"] ?? 0) + (sandboxes["paused"] ?? 0) > 0 };
}

export default command({
  name: "down",
  summary: "Stop the server; sandboxes go on",
  details: "The next command that needs the server starts it again, and it finds its sandboxes. `viv rm --all` ends those.",
  examples: [["viv down", "stop it"]],
  options: {},
  positionals: [],
  async run({ json, screen, env }) {
    const client = await connectIfRunning(env);
    const stopped = client === undefined ? null : await screen.during("Stopping the server", shutDown(client, findPaths(env).socket));
    if (json) screen.json({ stopped: stopped !== null, pid: stopped?.pid ?? null });
    else if (stopped === null) screen.print("No server runs.");
    else screen.print(`The server (process ${stopped.pid}) has stopped.${stopped.leaves ? " Sandboxes go on." : ""}`);
  },
});
