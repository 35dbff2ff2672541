/** A launched sandbox of the native driver. */
import type { Duplex } from "node:stream";
import type { CellHost } from "../../../base/host/cell-host.ts";
import type { Cgroups } from "../../../base/host/cgroups.ts";
import { PROTOCOL_VERSION } from "../../../base/host/frames.ts";
import { startOf } from "../../../base/host/process-group.ts";
import { listProcesses, type ListedProcess } from "../../../base/host/process-list.ts";
import { isRunning, processesBelow } from "../../../base/host/processes.ts";
import { VivError } from "../../../base/schema/errors.ts";
import { LIMITS } from "../../../base/schema/limits.ts";
import type { Limits } from "../../../base/schema/sandbox.ts";
import type { CommandOperations, DialTarget, FileOperations, Usage, Walls } from "../drivers.ts";
import type { Launched } from "../../../base/store/rows.ts";
import { CellClient } from "./cell-client.ts";
import type { Process1 } from "./process1.ts";
import { visibleLimits } from "./visible-limits.ts";
import { WatchedLimits } from "./watched.ts";

interface WallsOptions {
  readonly sandbox: string;
  readonly process1: Process1;
  readonly cell: CellClient;
  readonly host: CellHost;
  readonly cgroups: Cgroups | undefined;
  readonly limits: Limits;
  /** Tells the driver that the end is wanted; resolves when process 1 has ended, and with it all others. */
  readonly ended: () => Promise<void>;
}

const SIGKILL = 9;
const NOTHING_KNOWN: Usage = { memoryBytes: null, cpuMs: null, processes: null, outOfMemory: 0, tooManyProcesses: 0 };
/** How much longer than its grace a stop may take before process 1 is killed from outside. */
const STOP_MARGIN_MS = 2_000;

/** A disk takes well below a millisecond to write this much back, which is less than it takes to ask for it. */
const UNNOTICED_BYTES = 1024 ** 2;

/** The child made ahead for the next command. */
const WAITING = 1;

export class NativeWalls implements Walls {
  readonly launched: Launched;
  readonly processId: number;
  readonly commands: CommandOperations;
  readonly files: FileOperations;
  readonly #options: WallsOptions;
  readonly #cell: CellClient;
  /** Holds the limits where no cgroup does. */
  readonly #watched: WatchedLimits | undefined;

  constructor(options: WallsOptions) {
    this.#options = options;
    this.launched = options.process1;
    this.processId = options.process1.pid;
    this.#cell = options.cell;
    this.commands = {
      exec: (request) => this.#cell.exec({ ...request, logBytes: LIMITS.commandLogBytes }),
      attach: (command, stdin) => this.#cell.attach(command, stdin),
    };
    this.files = this.#cell.files;
    this.#watched = options.cgroups === undefined ? new WatchedLimits(options.process1.pid, options.limits) : undefined;
  }

  /** Another process may have its number by now. */
  async isAlive(): Promise<boolean> {
    const { pid, start } = this.#options.process1;
    return isRunning(pid) && (await startOf(pid)) === start;
  }

  async greet(): Promise<void> {
    const { version } = await this.#cell.ping();
    if (version === PROTOCOL_VERSION) return;
    throw new VivError("cell_incompatible", `Its process 1 speaks version ${version} of the protocol, this server ${PROTOCOL_VERSION}.`);
  }

  /** Many servers listen on `localhost`, which may be either of the two. */
  async dial(target: DialTarget): Promise<Duplex> {
    try {
      return await this.#cell.dial(target);
    } catch (error) {
      if (typeof target !== "number" || !(error instanceof VivError) || error.code !== "port_unreachable") throw error;
      return this.#cell.dial(target, "::1");
    }
  }

  async usage(): Promise<Usage> {
    const { cgroups, sandbox } = this.#options;
    return cgroups?.use(sandbox) ?? this.#watched?.usage() ?? NOTHING_KNOWN;
  }

  async cpuMs(): Promise<number | null> {
    const { cgroups, sandbox } = this.#options;
    return cgroups === undefined ? ((await this.usage()).cpuMs ?? null) : cgroups.cpuMs(sandbox);
  }

  async processes(most: number): Promise<ListedProcess[]> {
    const { cgroups, sandbox, process1 } = this.#options;
    const first = process1.pid;
    const members = (): number[] => cgroups?.processes(sandbox) ?? processesBelow(first).map(({ pid }) => pid);
    return listProcesses({ first, members, most, argumentBytes: LIMITS.shownProcessBytes });
  }

  hasMuchUnwritten(): boolean {
    const { cgroups, sandbox } = this.#options;
    if ((cgroups?.count(sandbox) ?? Number.POSITIVE_INFINITY) <= WAITING) return false;
    return (cgroups?.unwrittenBytes(sandbox) ?? Number.POSITIVE_INFINITY) > UNNOTICED_BYTES;
  }

  async limit(limits: Limits): Promise<void> {
    const { cgroups, sandbox } = this.#options;
    cgroups?.limit(sandbox, limits);
    if (this.#watched !== undefined) this.#watched.limits = limits;
    await this.#tell(limits);
  }

  /** Programs inside see the new limits, and those that run get the processors. */
  async #tell(limits: Limits): Promise<void> {
    const { cgroups, sandbox, host } = this.#options;
    const cpus = await this.#cell.limits(visibleLimits(limits, cgroups !== undefined));
    if (cgroups === undefined || cpus === undefined) return;
    await host.request("cpus", [
      ["cgroup", cgroups.memoryFolder(sandbox)],
      ["from", cpus.from],
      ["to", cpus.to],
    ]);
  }

  async freeze(): Promise<void> {
    await this.#options.cgroups?.freeze(this.#options.sandbox);
  }

  async thaw(): Promise<void> {
    await this.#options.cgroups?.thaw(this.#options.sandbox);
  }

  /** Killing process 1 makes the kernel end everything in its pid namespace. */
  async stop(graceMs: number): Promise<void> {
    const ended = this.#options.ended();
    this.#watched?.stop();
    if (graceMs > 0) {
      const patience = AbortSignal.timeout(graceMs + STOP_MARGIN_MS);
      const tired = new Promise<void>((resolve) => patience.addEventListener("abort", () => resolve(), { once: true }));
      await Promise.race([this.#cell.stop(graceMs).catch(() => undefined), tired]);
    }
    const { host, process1 } = this.#options;
    const reply = await host.request("kill", [
      ["pid", String(process1.pid)],
      ["start", process1.start],
      ["signal", String(SIGKILL)],
    ]);
    if (!reply.flag("gone")) await ended;
  }
}
