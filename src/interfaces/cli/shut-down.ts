/** Stops a server and waits until it has ended, so that the next one finds the state folder free. */
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "../client/client.ts";
import { isListening } from "../client/listening.ts";
import { isRunning } from "../../base/host/processes.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";

export interface StoppedServer {
  /** Null if the server could not report it, as with a damaged database. */
  readonly pid: number | null;
  /** Whether sandboxes outlive it. */
  readonly leaves: boolean;
}

export async function shutDown(client: Client, socket: string): Promise<StoppedServer> {
  const status = await client.call("status", {}).catch(() => undefined);
  const pid = status?.pid ?? null;
  await client.call("shutdown", {});
  client.close();
  const deadline = performance.now() + LIMITS.shutdownMs;
  while ((await isListening(socket)) || hasProcess(pid)) {
    if (performance.now() > deadline)
      throw new VivError("timeout", `The server${pid === null ? "" : ` (process ${pid})`} has not ended yet.`);
    await delay(10);
  }
  return { pid, leaves: status === undefined || (status.sandboxes["running"] ?? 0) + (status.sandboxes["paused"] ?? 0) > 0 };
}

function hasProcess(pid: number | null): boolean {
  return pid !== null && isRunning(pid);
}
