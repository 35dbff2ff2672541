/**
 * Launches of which the sandbox is not known yet: groups, namespaces and process 1 need neither project nor disk. One is begun for the fork
 * in which an attempt will be judged, while the attempt still runs. Another one waits for whatever is made next, once a sandbox was made
 * without a spare. A launch that waits has no row, like a spare: after a crash nothing of it is left, because it ends with the helper. One
 * that is not taken for a while is given up, since it holds the mounts of this machine.
 */
import { errorText, type Logger } from "../../base/host/log.ts";
import { mountTable } from "../../base/host/mounts.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { Base, LargeIds } from "../../base/store/rows.ts";
import type { Walls } from "../../machine/drivers/drivers.ts";
import type { Registry, Reservation } from "../shared/registry.ts";
import { mappedIds } from "./owners.ts";
import type { GivenSandbox, LaunchSettings, SandboxStart } from "./sandbox-start.ts";

/** An attempt may work for long. */
const UNUSED_MS = 60_000;
/** Of the one that waits for whatever is made next: long enough for a caller that makes one after the other. */
const NEXT_UNUSED_MS = 10_000;
/** The request that was just answered, its caller and the next spare have the machine first. */
const QUIET_MS = 15;

/** What sandboxes have in common that can have the same launch. */
export interface LaunchKind extends Pick<LaunchSettings, "driver" | "limits" | "sudo"> {
  readonly largeIds: LargeIds;
}

export function launchKindOf(row: LaunchSettings, base: Base): LaunchKind {
  const { driver, sudo } = row;
  const { cpus, memoryBytes, diskBytes, processes } = row.limits;
  return { driver, limits: { cpus, memoryBytes, diskBytes, processes }, sudo, largeIds: mappedIds(row, base) };
}

export class LaunchAhead {
  readonly reservation: Reservation;
  readonly #key: string;
  /** The launcher has its own copy of the mounts from the beginning on: of an old one, no sandbox is made. */
  readonly #mounts = mountTable();
  readonly #given = Promise.withResolvers<GivenSandbox>();
  readonly #walls: Promise<Walls>;
  readonly #expires: NodeJS.Timeout;
  #state: "waits" | "taken" | "over" = "waits";

  constructor(sandboxStart: SandboxStart, kind: LaunchKind, reservation: Reservation, unusedMs: number) {
    this.reservation = reservation;
    this.#key = JSON.stringify(kind);
    this.#given.promise.catch(() => undefined);
    this.#walls = sandboxStart.launchAhead(reservation, kind, this.#given.promise);
    this.#walls.catch(() => this.drop());
    this.#expires = setTimeout(() => this.drop(), unusedMs).unref();
  }

  get waits(): boolean {
    return this.#state === "waits";
  }

  isOf(kind: LaunchKind): boolean {
    return this.waits && this.#key === JSON.stringify(kind) && this.#mounts === mountTable();
  }

  /** For a sandbox of its kind, which then has it for itself. False where it can't be. */
  take(kind: LaunchKind): boolean {
    if (!this.isOf(kind)) return false;
    clearTimeout(this.#expires);
    this.#state = "taken";
    return true;
  }

  /** The rest of a launch that was taken. */
  finish(given: GivenSandbox): Promise<Walls> {
    this.#given.resolve(given);
    return this.#walls;
  }

  /** Gives it up, unless a sandbox has it. */
  drop(): void {
    if (!this.waits) return;
    clearTimeout(this.#expires);
    this.#state = "over";
    this.#given.reject(new VivError("cancelled", "No sandbox needs this launch."));
  }

  /** Resolves when nothing of it is left but what a sandbox has. */
  async settled(): Promise<"taken" | "over"> {
    await this.#walls.catch(() => undefined);
    return this.#state === "taken" ? "taken" : "over";
  }
}

interface LaunchesAheadOptions {
  /** Ids without a row, which the reconciler leaves alone. */
  readonly ids: Set<string>;
  /** Whether sandboxes are being made. */
  readonly isBusy: () => boolean;
  readonly log: Logger;
}

export class LaunchesAhead {
  readonly #registry: Registry;
  readonly #sandboxStart: SandboxStart;
  readonly #ids: Set<string>;
  readonly #isBusy: () => boolean;
  readonly #log: Logger;
  readonly #waiting = new Map<LaunchAhead, Promise<void>>();
  /** The one that waits for whatever is made next. */
  #next: LaunchAhead | undefined;
  #later: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(registry: Registry, sandboxStart: SandboxStart, { ids, isBusy, log }: LaunchesAheadOptions) {
    this.#registry = registry;
    this.#sandboxStart = sandboxStart;
    this.#ids = ids;
    this.#isBusy = isBusy;
    this.#log = log;
  }

  begin(kind: LaunchKind, unusedMs = UNUSED_MS): LaunchAhead {
    const reservation = this.#registry.reserve();
    try {
      this.#ids.add(reservation.id);
      const launch = new LaunchAhead(this.#sandboxStart, kind, reservation, unusedMs);
      const over = launch.settled().then((state) => {
        this.#waiting.delete(launch);
        if (state === "over") this.#forget(reservation);
      });
      this.#waiting.set(launch, over);
      return launch;
    } catch (error) {
      this.#forget(reservation);
      throw error;
    }
  }

  #forget(reservation: Reservation): void {
    this.#ids.delete(reservation.id);
    try {
      this.#registry.release(reservation);
    } catch (error) {
      this.#log.warn("the id range of a launch was not given back", { error: errorText(error) });
    }
  }

  /** `own`, a launch that was begun for the caller, or the one that waits for what is made next: taken, if one is of this kind. */
  take(kind: LaunchKind, own?: LaunchAhead): LaunchAhead | undefined {
    return [own, this.#next].find((launch) => launch?.take(kind) === true);
  }

  /** One of this kind waits in a moment, unless sandboxes are being made then: those would wait for the same locks of the kernel. */
  prepare(kind: LaunchKind): void {
    clearTimeout(this.#later);
    if (!this.#closed) this.#later = setTimeout(() => this.#replaceNext(kind), QUIET_MS).unref();
  }

  #replaceNext(kind: LaunchKind): void {
    try {
      if (this.#isBusy() || this.#next?.isOf(kind) === true) return;
      this.#next?.drop();
      this.#next = this.begin(kind, NEXT_UNUSED_MS);
    } catch (error) {
      this.#log.info("no launch could be made ahead", { error: errorText(error) });
    }
  }

  /** The sandbox that took it has a row by now, or nothing is left of it. */
  known({ reservation }: LaunchAhead): void {
    this.#ids.delete(reservation.id);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.clear();
  }

  /** Gives up all that wait. Those that a sandbox has are that sandbox's. */
  async clear(): Promise<void> {
    clearTimeout(this.#later);
    const waiting = [...this.#waiting].filter(([launch]) => launch.waits);
    for (const [launch] of waiting) launch.drop();
    await Promise.all(waiting.map(([, over]) => over));
  }
}
