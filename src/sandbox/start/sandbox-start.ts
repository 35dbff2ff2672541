/**
 * The one way in which a sandbox gets its processes, whether it is new, forked, rolled back, started again or taken from the
 * spares, or was left running by an earlier server. The order is always the same; a spare has 1 behind it already, and a
 * sandbox that was left running begins at 2, with its ways out:
 *
 * 1. The launch. The driver hides what must not be seen, and puts placeholders where imported logins stand. The ways out, the proxy and
 *    the gateway, are opened meanwhile.
 * 2. The live entry, by which the other parts of the server find the processes.
 * 3. The ways out are open, as the rules of now want them, and there is a row: what the caller has to do in it first begins, if there are
 *    no services. Meanwhile the caller writes down that it runs.
 * 4. The services of the project.
 */
import { errorText } from "../../base/host/log.ts";
import { projectInside } from "../../base/schema/workspace.ts";
import type { Base, SandboxRow } from "../../base/store/rows.ts";
import type { LaunchContent, Walls } from "../../machine/drivers/drivers.ts";
import type { VolumePaths } from "../../machine/volumes/disks.ts";
import type { Networks } from "../permissions/networks.ts";
import type { LiveSandbox } from "../shared/live.ts";
import type { Parts } from "../shared/parts.ts";
import type { Reservation } from "../shared/registry.ts";
import { launchKindOf, type LaunchKind } from "./launches-ahead.ts";
import type { Services } from "./services.ts";

/** What a row says of its processes: enough for a later server to find them, and to start the services that were not started. */
export type Processes = Pick<SandboxRow, "launched" | "serviceCommands">;

/** What processes are launched from. */
export interface Disk {
  readonly base: Base;
  /** As in a LaunchContent. */
  readonly volume: () => Promise<VolumePaths>;
}

/** What is done with the processes before the row says that they run. If the row can't be written, they end, and this with them. */
export type FirstUse = (row: SandboxRow) => void;

export interface StartInput {
  readonly row: SandboxRow;
  /** A disk to launch on, or the walls of a spare, which was launched ahead. */
  readonly on: Disk | Walls;
  /** What the sandbox was until its processes ended a moment ago. */
  readonly before?: LiveSandbox | undefined;
  /** Writes the row down with its processes. */
  readonly record: (processes: Processes) => Promise<SandboxRow>;
  readonly first?: { readonly use: FirstUse; /** Resolves when there is a row. */ readonly known: () => Promise<void> } | undefined;
}

export interface StartedSandbox {
  readonly row: SandboxRow;
  /** Resolves when the services answer, or an event says why one does not; never rejects. */
  readonly services: Promise<void>;
}

/** What decides how processes are launched; of the network, only how it is likely to be. */
export type LaunchSettings = Pick<
  SandboxRow,
  "driver" | "project" | "start" | "readOnly" | "sealed" | "base" | "user" | "home" | "masked" | "exposed" | "sudo" | "limits" | "network"
>;

/** The sandbox that a launch is for. */
export interface GivenSandbox {
  readonly row: Reservation & LaunchSettings;
  readonly disk: Disk;
  readonly isUsedAtOnce: boolean;
}

export class SandboxStart {
  readonly #parts: Pick<Parts, "backends" | "live" | "log" | "reach">;
  readonly #networks: Networks;
  readonly #services: Services;

  constructor(parts: Pick<Parts, "backends" | "live" | "log" | "reach">, networks: Networks, services: Services) {
    this.#parts = parts;
    this.#networks = networks;
    this.#services = services;
  }

  /** Whatever fails, processes that were launched are in the live entry: the caller ends them, and closes their ways out. */
  async start({ row, on, before, record, first }: StartInput): Promise<StartedSandbox> {
    const { driver } = this.#parts.backends.of(row);
    const { walls, opened } =
      "launched" in on
        ? { walls: on, opened: this.#networks.open(row) }
        : await this.#launchAndOpen(row, launchKindOf(row, on.base), { row, disk: on, isUsedAtOnce: first !== undefined });
    opened?.catch(() => undefined);
    this.#parts.live.add(row.id, walls, driver, before);
    const processes = { launched: walls.launched, serviceCommands: this.#services.commandsOf(row) };
    await opened;
    // Rules may have been taken back since.
    if (!("launched" in on)) await this.#networks.open(row);
    await first?.known();
    if (Object.keys(processes.serviceCommands).length === 0) first?.use({ ...row, state: "running" });
    const running = await record(processes);
    this.#parts.reach("start.recorded");
    return { row: running, services: this.#services.start(running) };
  }

  /** Processes of a spare: no row and no live entry until start() gets them. */
  startAhead(spare: Reservation & LaunchSettings, disk: Disk): Promise<Walls> {
    return this.launchAhead(spare, launchKindOf(spare, disk.base), { row: spare, disk, isUsedAtOnce: false });
  }

  /** The same for a sandbox that is given later. */
  async launchAhead(own: Reservation, kind: LaunchKind, given: GivenSandbox | Promise<GivenSandbox>): Promise<Walls> {
    const { walls, opened } = await this.#launchAndOpen(own, kind, given);
    try {
      await opened;
    } catch (error) {
      // Opened again by start().
      this.#parts.log.info("the way out of a sandbox made ahead was not opened", { error: errorText(error) });
    }
    return walls;
  }

  /** Closes what startAhead() opened, for a spare that no caller takes. Its processes are ended by the caller. */
  closeAhead(spare: string): void {
    this.#networks.close(spare);
  }

  /** Processes that an earlier server started; undefined when they are gone. `goesOn` is false for those that the server ends next. */
  async adopt(row: SandboxRow, goesOn: boolean): Promise<LiveSandbox | undefined> {
    if (row.launched === null) return undefined;
    const { driver } = this.#parts.backends.of(row);
    const walls = await driver.adopt(row.id, row.launched, row.limits);
    if (walls === undefined) return undefined;
    const live = this.#parts.live.add(row.id, walls, driver);
    if (goesOn) await this.#networks.open(row);
    return live;
  }

  /** The services that the earlier server did not come to start. The sandbox runs, and its commands were adopted. */
  finish(adopted: SandboxRow): Promise<void> {
    return this.#services.startMissing(adopted);
  }

  /** The ways out are opened as soon as there is a folder for their sockets; where the driver has none, there is nothing to open. */
  async #launchAndOpen(
    { id, range }: Reservation,
    { driver, limits, sudo, largeIds }: LaunchKind,
    given: GivenSandbox | Promise<GivenSandbox>,
  ): Promise<{ readonly walls: Walls; readonly opened: Promise<void> | undefined }> {
    let opened: Promise<void> | undefined;
    const contentOf = ({ row, disk, isUsedAtOnce }: GivenSandbox): LaunchContent => ({
      ...disk,
      name: row.name,
      project: projectInside(row),
      mask: row.masked,
      expose: row.exposed,
      readOnly: row.readOnly === true,
      sealed: row.sealed === true,
      home: row.home,
      isUsedAtOnce,
      meanwhile: () => {
        opened = this.#networks.open(row);
        opened.catch(() => undefined);
      },
    });
    const content = given instanceof Promise ? given.then(contentOf) : contentOf(given);
    if (content instanceof Promise) content.catch(() => undefined);
    try {
      const walls = await this.#parts.backends.of({ driver }).driver.launch({ sandbox: id, range, limits, sudo, largeIds, content });
      return { walls, opened };
    } catch (error) {
      await opened?.catch(() => undefined);
      this.#networks.close(id);
      throw error;
    }
  }
}
