/** Services of the project's config, started inside each clone on their own ports (CLONE-7). */
import { setTimeout as wait } from "node:timers/promises";
import { describe } from "../host/log.ts";
import type { Service } from "../schema/config.ts";
import { VivError } from "../schema/errors.ts";
import type { SandboxRow } from "../store/store.ts";
import type { Commands } from "./commands.ts";
import type { Parts } from "./parts.ts";

const RETRY_MS = 25;

/** Resolves when they answer. One that can't be had is told by an event: the sandbox is of use without it. */
export async function startServices(parts: Parts, commands: Commands, row: SandboxRow): Promise<void> {
  if (row.untrusted.length > 0 || row.driver !== "native") return;
  // Those of the config the sandbox was made with: the project may have changed or be gone by now.
  await Promise.all(
    Object.entries(row.services).map(async ([name, service]) => {
      try {
        await startService(parts, commands, row, service);
      } catch (error) {
        await parts.store.change((change) => change.event("service.failed", row.id, { service: name, reason: describe(error) }));
      }
    }),
  );
}

async function startService(parts: Parts, commands: Commands, row: SandboxRow, service: Service): Promise<void> {
  const command = typeof service.command === "string" ? ["/bin/sh", "-c", service.command] : service.command;
  const usual = parts.backends.of(row).driver.capabilities.allUsers ? "0" : row.user;
  const stream = await commands.start(row, {
    command,
    user: service.user ?? usual,
    ...(service.cwd === undefined ? {} : { cwd: service.cwd }),
    foreground: false,
  });
  stream.close();
  const deadline = performance.now() + service.readyTimeout;
  for (const port of service.ports) {
    if (!(await answers(parts, row, port, deadline)))
      throw new VivError("timeout", `Nothing answered on port ${port} within ${service.readyTimeout} ms.`);
  }
}

async function answers(parts: Parts, row: SandboxRow, port: number, deadline: number): Promise<boolean> {
  while (performance.now() < deadline) {
    try {
      const socket = await parts.live.get(row.id)?.walls.dial(port);
      socket?.destroy();
      return socket !== undefined;
    } catch (error) {
      if (!(error instanceof VivError) || error.code !== "port_unreachable") throw error;
    }
    await wait(RETRY_MS);
  }
  return false;
}
