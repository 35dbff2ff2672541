/** Services of the project's config, started inside each clone on their own ports (CLONE-7). */
import { join } from "node:path";
import { Readable } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import type { FileOperations } from "../drivers/drivers.ts";
import { describe } from "../host/log.ts";
import type { Service } from "../schema/config.ts";
import { VivError } from "../schema/errors.ts";
import { LIMITS } from "../schema/limits.ts";
import type { SandboxRow } from "../store/store.ts";
import type { Commands, StartOptions } from "./commands.ts";
import type { Parts } from "./parts.ts";

const RETRY_MS = 25;
const LOADED = ".viv-loaded";
const MOST_SAID = 500;

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
  const how: Omit<StartOptions, "command"> = {
    user: service.user ?? usual,
    ...(service.cwd === undefined ? {} : { cwd: service.cwd }),
    ...(service.take === undefined ? {} : { env: { VIV_DATA: service.data[0] ?? "" } }),
    foreground: false,
  };
  const stream = await commands.start(row, { ...how, command });
  stream.close();
  const deadline = performance.now() + service.readyTimeout;
  for (const port of service.ports) {
    if (!(await answers(parts, row, port, deadline)))
      throw new VivError("timeout", `Nothing answered on port ${port} within ${service.readyTimeout} ms.`);
  }
  if (service.ready !== undefined) await becomeReady(commands, row, how, service, deadline);
  if (service.load !== undefined) await loadOnce(parts, commands, row, { how, service, owner: usual });
}

/** One command that asks until the answer is yes: many would fill the sandbox's list of commands. */
async function becomeReady(
  commands: Commands,
  row: SandboxRow,
  how: Omit<StartOptions, "command">,
  { ready = "", readyTimeout }: Service,
  deadline: number,
): Promise<void> {
  const command = ["/bin/sh", "-c", `until (\n${ready}\n) >/dev/null 2>&1; do sleep 0.05; done`];
  const timeoutMs = Math.max(1, Math.round(deadline - performance.now()));
  const { end } = await commands.run(row, { ...how, command, timeoutMs }, undefined);
  if (end?.exitCode !== 0) throw new VivError("timeout", `It was not ready within ${readyTimeout} ms.`);
}

interface Loading {
  readonly how: Omit<StartOptions, "command">;
  readonly service: Service;
  /** User inside that may write into the copy. */
  readonly owner: string;
}

/** That it was done stands beside the copy, so that a snapshot, a rollback and a fork know it as they know the data. */
async function loadOnce(parts: Parts, commands: Commands, row: SandboxRow, { how, service, owner }: Loading): Promise<void> {
  const files = parts.live.get(row.id)?.walls.files;
  if (files === undefined) return;
  const mark = join(service.data[0] ?? "/", LOADED);
  if (await exists(files, mark, owner)) return;
  const command = ["/bin/sh", "-c", service.load ?? ""];
  const { end, stderr, stdout } = await commands.run(row, { ...how, command, timeoutMs: LIMITS.serviceDataMs }, undefined);
  if (end?.exitCode !== 0) {
    const said = `${stdout}\n${stderr}`.trim().slice(-MOST_SAID);
    throw new VivError("internal", `The load line ended with ${end?.exitCode ?? "nothing"}${said === "" ? "." : `: ${said}`}`);
  }
  await files.write(mark, owner, Readable.from([]), { mode: 0o644 });
}

async function exists(files: FileOperations, path: string, user: string): Promise<boolean> {
  try {
    await files.stat(path, user);
    return true;
  } catch (error) {
    if (error instanceof VivError && error.code === "file_not_found") return false;
    throw error;
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
