/**
 * Launches for sandboxes whose files are not there yet, such as the fork in which an attempt is to be judged: namespaces and process 1
 * need no disk, and are made while the attempt still runs. A launch that waits has no row, like a spare: after a crash nothing of it is
 * left, because it ends with the helper. One that is not taken for a while is given up, since it holds the mounts of this machine.
 */
import { mountTable } from "../../base/host/mounts.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { Base } from "../../base/store/rows.ts";
import type { Walls } from "../../machine/drivers/drivers.ts";
import type { VolumePaths } from "../../machine/volumes/disks.ts";
import type { Registry, Reservation } from "../shared/registry.ts";
import type { LaunchSettings, SandboxStart } from "./sandbox-start.ts";
import { keyOf } from "./spare-key.ts";

const UNUSED_MS = 60_000;

export class LaunchAhead {
  readonly reservation: Reservation;
  readonly #key: string;
  /** The launcher has its own copy of the mounts from the beginning on: of an old one, no sandbox is made. */
  readonly #mounts = mountTable();
  readonly #asked = Promise.withResolvers<void>();
  readonly #volume = Promise.withResolvers<VolumePaths>();
  readonly #walls: Promise<Walls>;
  readonly #expires: NodeJS.Timeout;
  #state: "waits" | "taken" | "over" = "waits";

  constructor(sandboxStart: SandboxStart, kind: LaunchSettings, base: Base, reservation: Reservation) {
    this.reservation = reservation;
    this.#key = keyOf(kind);
    this.#asked.promise.catch(() => undefined);
    const disk = { base, asked: this.#asked.promise, volume: () => this.#volume.promise };
    this.#walls = sandboxStart.startAhead({ ...kind, ...reservation }, disk);
    this.#walls.catch(() => this.drop());
    this.#expires = setTimeout(() => this.drop(), UNUSED_MS).unref();
  }

  /** For a sandbox of its kind, which then has it for itself. */
  take(kind: LaunchSettings): Reservation | undefined {
    if (this.#state !== "waits" || this.#key !== keyOf(kind) || this.#mounts !== mountTable()) return undefined;
    clearTimeout(this.#expires);
    this.#state = "taken";
    return this.reservation;
  }

  /** The rest of a launch that was taken. */
  finish(volume: () => Promise<VolumePaths>): Promise<Walls> {
    volume().then(this.#volume.resolve, this.#volume.reject);
    this.#asked.resolve();
    return this.#walls;
  }

  /** Gives it up, unless a sandbox has it. */
  drop(): void {
    if (this.#state !== "waits") return;
    clearTimeout(this.#expires);
    this.#state = "over";
    const none = new VivError("cancelled", "No sandbox needs this launch.");
    this.#volume.promise.catch(() => undefined);
    this.#volume.reject(none);
    this.#asked.reject(none);
  }

  /** Resolves when nothing of it is left but what a sandbox has. */
  async settled(): Promise<"taken" | "over"> {
    await this.#walls.catch(() => undefined);
    return this.#state === "taken" ? "taken" : "over";
  }
}

export class LaunchesAhead {
  readonly #registry: Registry;
  readonly #sandboxStart: SandboxStart;
  /** Ids without a row, which the reconciler leaves alone. */
  readonly #ids: Set<string>;
  readonly #waiting = new Map<LaunchAhead, Promise<void>>();

  constructor(registry: Registry, sandboxStart: SandboxStart, ids: Set<string>) {
    this.#registry = registry;
    this.#sandboxStart = sandboxStart;
    this.#ids = ids;
  }

  begin(kind: LaunchSettings, base: Base): LaunchAhead {
    const reservation = this.#registry.reserve();
    this.#ids.add(reservation.id);
    const release = this.#registry.hold(base.id);
    const launch = new LaunchAhead(this.#sandboxStart, kind, base, reservation);
    const over = launch.settled().then((state) => {
      release();
      this.#waiting.delete(launch);
      if (state === "taken") return;
      this.#ids.delete(reservation.id);
      this.#registry.release(reservation);
    });
    this.#waiting.set(launch, over);
    return launch;
  }

  /** The sandbox that took it has a row by now, or nothing is left of it. */
  known({ reservation }: LaunchAhead): void {
    this.#ids.delete(reservation.id);
  }

  /** Gives up all that wait. */
  async clear(): Promise<void> {
    for (const launch of this.#waiting.keys()) launch.drop();
    await Promise.all(this.#waiting.values());
  }
}
