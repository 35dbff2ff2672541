/** Services of the project's config, started inside each clone on their own ports (CLONE-7). */
import { setTimeout as wait } from "node:timers/promises";
import type { Service } from "../schema/config.ts";
import type { SandboxRow } from "../store/store.ts";
import type { Commands } from "./commands.ts";
import type { Parts } from "./parts.ts";

const RETRY_MS = 25;

export async function startServices(parts: Parts, commands: Commands, row: SandboxRow): Promise<void> {
  if (row.driver !== "native") return;
  await Promise.all(Object.entries(row.services).map(([name, service]) => startService(parts, commands, row, name, service)));
}

async function startService(parts: Parts, commands: Commands, row: SandboxRow, name: string, service: Service): Promise<void> {
  const command = typeof service.command === "string" ? ["/bin/sh", "-c", service.command] : service.command;
  const stream = await commands.start(row, { command, user: service.user ?? "0", ...(service.cwd === undefined ? {} : { cwd: service.cwd }), foreground: false });
  stream.close();
  const deadline = performance.now() + service.readyTimeout;
  for (const port of service.ports) {
    if (!(await answers(parts, row, port, deadline))) parts.log.warn("service does not answer", { sandbox: row.id, service: name, port });
  }
}

async function answers(parts: Parts, row: SandboxRow, port: number, deadline: number): Promise<boolean> {
  while (performance.now() < deadline) {
    try {
      const socket = await parts.live.get(row.id)?.walls.dial(port);
      socket?.destroy();
      if (socket !== undefined) return true;
    } catch {
      // Nothing listens yet.
    }
    await wait(RETRY_MS);
  }
  return false;
}
