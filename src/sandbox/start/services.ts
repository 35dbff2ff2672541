/** Services of the project's config, started inside each clone on their own ports (CLONE-7). */
import { isDeepStrictEqual } from "node:util";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import type { FileOperations } from "../../machine/drivers/drivers.ts";
import { errorText } from "../../base/host/log.ts";
import type { CommandResult } from "../../base/schema/command.ts";
import type { Service } from "../../base/schema/config.ts";
import { VivError } from "../../base/schema/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { Commands } from "../commands/commands.ts";
import type { StartOptions } from "../commands/exec-request.ts";
import { OutputTail } from "../commands/output-tail.ts";
import type { Parts } from "../shared/parts.ts";
import type { CommandStream } from "../commands/stream.ts";

const RETRY_MS = 25;
const LOADED = ".viv-loaded";
const MOST_SAID = 500;

type ServiceParts = Pick<Parts, "store" | "backends" | "live" | "log">;

export class Services {
  readonly #parts: ServiceParts;
  readonly #commands: Commands;

  constructor(parts: ServiceParts, commands: Commands) {
    this.#parts = parts;
    this.#commands = commands;
  }

  /** Resolves when they answer, and never rejects. An event reports a service that does not start: the sandbox is useful without it. */
  async start(row: SandboxRow): Promise<void> {
    await Promise.all(Object.keys(row.serviceCommands ?? {}).map((name) => this.#startOne(row, name)));
  }

  /** The commands that the services of a sandbox will be, by their names. A kill leaves each of them started or not, and its id says which. */
  commandsOf(row: SandboxRow): Record<string, string> {
    if (row.untrusted.length > 0 || !row.walled) return {};
    // Those of the config the sandbox was made with: the project may have changed or be gone by now.
    return Object.fromEntries(Object.keys(row.services).map((name) => [name, newId("command")]));
  }

  /** As start(), of those that the server before this one did not come to. */
  async startMissing(row: SandboxRow): Promise<void> {
    // What a sandbox with so many commands began with is not known any more.
    if ((await this.#parts.store.commands.count({ sandbox: row.id })) >= LIMITS.keptCommands) return;
    const all = Object.entries(row.serviceCommands ?? {});
    const known = await Promise.all(all.map(([, command]) => this.#wasStarted(row, command)));
    const now = await this.#parts.store.sandboxes.get(row.id);
    // A rollback meanwhile has started its own.
    if (!isDeepStrictEqual(now?.serviceCommands, row.serviceCommands)) return;
    await Promise.all(all.filter((_, index) => known[index] === false).map(([name]) => this.#startOne(row, name)));
  }

  /** One that runs has a record, or was started so shortly before the server was killed that process 1 alone knows it. */
  async #wasStarted(row: SandboxRow, command: string): Promise<boolean> {
    const { store, backends, live } = this.#parts;
    if ((await store.commands.get(command)) !== undefined) return true;
    const running = await live.require(row).walls.commands.attach(command, false);
    running?.detach();
    return running !== undefined || (await backends.of(row).driver.logs.read(row.id, command)).exit !== null;
  }

  async #startOne(row: SandboxRow, name: string): Promise<void> {
    const { store, log } = this.#parts;
    const service = row.services[name];
    if (service === undefined) return;
    try {
      await new ServiceStart(this.#parts, this.#commands, row, name, service).start();
    } catch (failure) {
      // A sandbox that is removed meanwhile needs no report.
      if ((await store.sandboxes.get(row.id))?.removing !== false) return;
      const reason = errorText(failure);
      const reported = store.change((change) => change.event("service.failed", row.id, { service: name, reason }));
      await reported.catch((error: unknown) => log.warn("a service failed", { sandbox: row.id, name, reason, error: errorText(error) }));
    }
  }
}

/** One service on its way to be of use. */
class ServiceStart {
  readonly #parts: ServiceParts;
  readonly #commands: Commands;
  readonly #row: SandboxRow;
  readonly #id: string | undefined;
  readonly #service: Service;
  /** User inside that may do everything that can be done. */
  readonly #owner: string;
  /** How its lines are run. */
  readonly #how: Omit<StartOptions, "command">;

  constructor(parts: ServiceParts, commands: Commands, row: SandboxRow, name: string, service: Service) {
    this.#parts = parts;
    this.#commands = commands;
    this.#row = row;
    this.#id = row.serviceCommands?.[name];
    this.#service = service;
    this.#owner = parts.backends.of(row).driver.capabilities.allUsers ? "0" : row.user;
    this.#how = {
      user: service.user ?? this.#owner,
      ...(service.cwd === undefined ? {} : { cwd: service.cwd }),
      ...(service.take === undefined ? {} : { env: { VIV_DATA: service.data[0] ?? "" } }),
      service: name,
    };
  }

  async start(): Promise<void> {
    const { command } = this.#service;
    const line = typeof command === "string" ? ["/bin/sh", "-c", command] : command;
    const stream = await this.#commands.start(this.#row, { ...this.#how, id: this.#id, command: line });
    stream.close();
    const over = new AbortController();
    try {
      await Promise.race([this.#becomeReady(over.signal), this.#failure(stream)]);
    } finally {
      over.abort();
    }
    if (this.#service.load !== undefined) await this.#loadOnce(this.#service.load);
  }

  /** Rejects if it breaks off; one that ends well has put itself into the background. */
  async #failure(stream: CommandStream): Promise<never> {
    const { exitCode } = await stream.end;
    if (exitCode !== 0) {
      // The log has it at once, the store's record of a command that ends soon comes later.
      const log = await this.#parts.backends.of(this.#row).driver.logs.read(this.#row.id, stream.command.id);
      const tail = new OutputTail(MOST_SAID);
      for (const chunk of log.chunks) tail.add(chunk);
      throw failed("It", tail.result(), exitCode);
    }
    return Promise.withResolvers<never>().promise;
  }

  async #becomeReady(signal: AbortSignal): Promise<void> {
    const { ports, ready, readyTimeout } = this.#service;
    const deadline = performance.now() + readyTimeout;
    for (const port of ports) {
      if (!(await this.#answers(port, deadline, signal)))
        throw new VivError("timeout", `Nothing answered on port ${port} within ${readyTimeout} ms.`);
    }
    if (ready === undefined) return;
    // One command that asks until the answer is yes: many would fill the sandbox's list of commands.
    const command = ["/bin/sh", "-c", `until (\n${ready}\n) >/dev/null 2>&1; do sleep 0.05; done`];
    const timeoutMs = Math.max(1, Math.round(deadline - performance.now()));
    const { end } = await this.#commands.run(this.#row, { ...this.#how, command, timeoutMs }, undefined, signal);
    if (end?.exitCode !== 0) throw new VivError("timeout", `It was not ready within ${readyTimeout} ms.`);
  }

  async #answers(port: number, deadline: number, signal: AbortSignal): Promise<boolean> {
    while (performance.now() < deadline && !signal.aborted) {
      try {
        const socket = await this.#parts.live.get(this.#row.id)?.walls.dial(port);
        socket?.destroy();
        return socket !== undefined;
      } catch (error) {
        if (!(error instanceof VivError) || error.code !== "port_unreachable") throw error;
      }
      await wait(RETRY_MS);
    }
    return false;
  }

  /** That it was done stands beside the copy, so that a snapshot, a rollback and a fork know it as they know the data. */
  async #loadOnce(load: string): Promise<void> {
    const files = this.#parts.live.get(this.#row.id)?.walls.files;
    const mark = join(this.#service.data[0] ?? "/", LOADED);
    if (files === undefined || (await exists(files, mark, this.#owner))) return;
    const options = { ...this.#how, command: ["/bin/sh", "-c", load], timeoutMs: LIMITS.serviceDataMs };
    const result = await this.#commands.run(this.#row, options, undefined);
    if (result.end?.exitCode !== 0) throw failed("Its load line", result, result.end?.exitCode);
    await files.write(mark, this.#owner, Readable.from([]), { mode: 0o644 });
  }
}

function failed(what: string, { stdout, stderr }: Pick<CommandResult, "stdout" | "stderr">, code: number | undefined): VivError {
  const said = `${stdout}\n${stderr}`.trim().slice(-MOST_SAID);
  return new VivError("internal", `${what} ended with ${code ?? "nothing"}${said === "" ? "." : `: ${said}`}`);
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
