/** Stops a server and waits until it has ended, so that the next one finds the state folder free. */
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "../client/client.ts";
import { isListening } from "../client/listening.ts";
import { isRunning } from "../host/processes.ts";
import { VivError } from "../schema/errors.ts";
import { LIMITS } from "../schema/limits.ts";

export interface Stopped {
  readonly pid: number;
  /** Whether sandboxes outlive it. */
  readonly leaves: boolean;
}

export async function shutDown(client: Client, socket: string): Promise<Stopped> {
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
