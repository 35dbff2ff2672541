/**
 * Sandboxes made ahead: after a create, one more of the same kind is launched in the background, or as many as were lately
 * asked for at once. The next create of that kind only has to write its row. A spare is a snapshot of a base like any other,
 * so it is taken only while the project's base is still that one, or when the little that changed since was brought into its
 * volume, in which no program has run; it goes when the base moves on otherwise, when it is not used for a while, and with the
 * server. It has no row: after a crash the reconciler clears it like any leftover.
 */
import type { Base } from "../../base/store/rows.ts";
import type { Driver, MaskRequest, Walls } from "../../machine/drivers/drivers.ts";
import type { BroughtBase, VolumeAhead } from "../../machine/capture/capture.ts";
import type { VolumePaths } from "../../machine/volumes/disks.ts";
import { errorText } from "../../base/host/log.ts";
import type { Parts } from "../shared/parts.ts";
import type { Registry, Reservation } from "../shared/registry.ts";
import type { LaunchSettings, SandboxStart } from "./sandbox-start.ts";
import { LaunchesAhead } from "./launches-ahead.ts";
import { SpareDemand } from "./spare-demand.ts";
import { keyOf } from "./spare-key.ts";

export interface Spare extends Reservation {
  readonly walls: Walls;
  /** Where its volume is. */
  readonly folder: string;
}

interface WaitingSpare {
  readonly key: string;
  /** The base that it was made from. */
  readonly base: string;
  readonly spare: Promise<Spare | undefined>;
  expires: NodeJS.Timeout | undefined;
  isThere: boolean;
}

/** A spare that one create has for itself. */
export interface SpareClaim {
  readonly waiting: WaitingSpare;
  /** What became secret on this machine since the spare was made would be there to read. */
  readonly hidesAsNow: Promise<boolean>;
}

const UNUSED_MS = 60_000;
/** Of a project whose last sandbox is gone: long enough for a caller that makes one after the other, and changes files in between. */
const DESERTED_MS = 10_000;
/** Gives the request that was just answered, and its caller, the machine first. */
const QUIET_MS = 5;

type SpareParts = Pick<Parts, "backends" | "log">;

export class Spares {
  /** For forks of which the files are not there yet. */
  readonly ahead: LaunchesAhead;
  readonly #parts: SpareParts;
  readonly #registry: Registry;
  readonly #sandboxStart: SandboxStart;
  readonly #demand = new SpareDemand();
  /** Of each project, the oldest first. */
  readonly #byProject = new Map<string, WaitingSpare[]>();
  readonly #ids = new Set<string>();
  readonly #discards = new Set<Promise<void>>();
  #closed = false;

  constructor(parts: SpareParts, registry: Registry, sandboxStart: SandboxStart) {
    this.#parts = parts;
    this.#registry = registry;
    this.#sandboxStart = sandboxStart;
    this.ahead = new LaunchesAhead(registry, sandboxStart, { ids: this.#ids, isBusy: () => this.#demand.isBusy(0), log: parts.log });
  }

  /** Ids of spares and of launches ahead, for the reconciler. */
  ids(): ReadonlySet<string> {
    return this.#ids;
  }

  /** Notes that a create of this project is under way until it calls what this returns. */
  begin(project: string): () => void {
    return this.#demand.begin(project);
  }

  /**
   * Takes a spare of the project for one create, before that create knows its kind: whether the spare still hides what a launch
   * would hide now is asked meanwhile, because the kernel's answer takes a moment. Of several it is the newest that is there, so
   * that those that are not needed grow old.
   */
  claim(driver: Driver, project: string, hiding: MaskRequest): SpareClaim | undefined {
    const all = this.#byProject.get(project) ?? [];
    const waiting = all.findLast(({ isThere }) => isThere) ?? all.at(-1);
    if (waiting === undefined) return undefined;
    this.#take(project, waiting);
    const hidesAsNow = waiting.spare.then(async (spare) => spare !== undefined && (await driver.hidesAsNow(spare.id, hiding)));
    // Where that is not known, a launch says why.
    return { waiting, hidesAsNow: hidesAsNow.catch(() => false) };
  }

  /** The volume of a claimed spare, also of one that is nearly there: what changed in the project since can be brought into it. */
  async volumeOf({ waiting }: SpareClaim): Promise<VolumeAhead | undefined> {
    const spare = await waiting.spare;
    return spare === undefined ? undefined : { volume: spare.id, from: waiting.base, folder: spare.folder };
  }

  /**
   * The claimed spare if it is of this kind, also one that is nearly there; else it goes, and those like it. Its volume may have been
   * brought to the base that is wanted; those like it were not.
   */
  async use({ waiting, hidesAsNow }: SpareClaim, kind: LaunchSettings, volume: BroughtBase["volume"]): Promise<Spare | undefined> {
    const isBrought = volume === "brought";
    const isLike = volume !== "spoiled" && waiting.key === keyOf(isBrought ? { ...kind, base: waiting.base } : kind) && (await hidesAsNow);
    const spare = isLike ? await waiting.spare : undefined;
    if (!isLike || isBrought) this.#dropAll(kind.project, (other) => other.key === waiting.key);
    // One that died while it waited is no longer known, or will not be in a moment.
    if (spare !== undefined && (await spare.walls.isAlive()) && this.#ids.delete(spare.id)) return spare;
    this.drop({ waiting });
    return undefined;
  }

  /** Ends a claimed spare that no create will use, in the background. */
  drop({ waiting }: Pick<SpareClaim, "waiting">): void {
    this.#discard(JSON.parse(waiting.key) as LaunchSettings, waiting);
  }

  /** Makes spares of this kind in a moment, as many as are wanted; called by a create that is under way still. */
  prepare(kind: LaunchSettings, base: Base): void {
    if (this.#byProject.has(kind.project) && this.#demand.isBusy(1)) return;
    this.#fill(kind, base, QUIET_MS, 1);
  }

  /** One after the other, and not while creates are under way: those would wait for the same locks of the kernel. */
  #fill(kind: LaunchSettings, base: Base, afterMs: number, own: number): void {
    if (this.#closed || this.#parts.backends.of(kind).driver.capabilities.limits !== "hard") return;
    const there = this.#byProject.get(kind.project) ?? [];
    if (there.length > 0 && (this.#demand.isBusy(own) || there.length >= this.#demand.wanted(kind.project, this.#ids.size))) return;
    const release = this.#registry.hold(base.id);
    const spare = new Promise<Spare | undefined>((resolve) => {
      setTimeout(() => resolve(this.#launch(kind, base).finally(release)), afterMs);
    });
    const waiting: WaitingSpare = { key: keyOf(kind), base: base.id, spare, expires: undefined, isThere: false };
    this.#expireLater(kind.project, waiting, UNUSED_MS);
    this.#byProject.set(kind.project, [...there, waiting]);
    void spare.then((made) => {
      waiting.isThere = made !== undefined;
      // One that was taken or ended meanwhile leads to no further one: the create that took it does.
      if (made !== undefined && this.#byProject.get(kind.project)?.at(-1) === waiting) this.#fill(kind, base, 0, 0);
    });
  }

  /** The project has no sandbox left: its spares go soon. */
  desert(project: string): void {
    for (const waiting of this.#byProject.get(project) ?? []) this.#expireLater(project, waiting, DESERTED_MS);
  }

  #expireLater(project: string, waiting: WaitingSpare, afterMs: number): void {
    clearTimeout(waiting.expires);
    waiting.expires = setTimeout(() => {
      this.#demand.unused(project);
      this.#dropAll(project, (other) => other === waiting);
    }, afterMs).unref();
  }

  async #launch(kind: LaunchSettings, base: Base): Promise<Spare | undefined> {
    if (this.#closed) return undefined;
    let reservation: Reservation | undefined;
    try {
      reservation = this.#registry.reserve();
      this.#ids.add(reservation.id);
      return { ...reservation, ...(await this.#start({ ...kind, ...reservation }, base)) };
    } catch (error) {
      this.#parts.log.info("no spare sandbox could be made", { error: errorText(error) });
      if (reservation !== undefined) this.#forget(reservation);
      return undefined;
    }
  }

  async #start(spare: Reservation & LaunchSettings, base: Base): Promise<Pick<Spare, "walls" | "folder">> {
    const { disks } = this.#parts.backends.of(spare).storage;
    let making: Promise<VolumePaths> | undefined;
    const volume = (): Promise<VolumePaths> =>
      (making = disks.create(spare.id, { base: base.id, project: base.project }, spare.limits.diskBytes));
    try {
      const walls = await this.#sandboxStart.startAhead(spare, { base, volume });
      return { walls, folder: (await disks.paths(spare.id)).folder };
    } catch (error) {
      await making?.catch(() => undefined);
      await disks.remove(spare.id);
      throw error;
    }
  }

  /** Process 1 of a spare ended by itself. Returns whether it was one. */
  lost(id: string): boolean {
    if (!this.#ids.delete(id)) return false;
    this.#sandboxStart.closeAhead(id);
    return true;
  }

  /** Ends the spares of a project that `isMeant`, in the background. */
  #dropAll(project: string, isMeant: (waiting: WaitingSpare) => boolean): void {
    for (const waiting of (this.#byProject.get(project) ?? []).filter(isMeant)) {
      this.#take(project, waiting);
      this.drop({ waiting });
    }
  }

  #take(project: string, waiting: WaitingSpare): void {
    clearTimeout(waiting.expires);
    const left = (this.#byProject.get(project) ?? []).filter((other) => other !== waiting);
    if (left.length === 0) this.#byProject.delete(project);
    else this.#byProject.set(project, left);
  }

  /** Ends a spare that no create will take, in the background. */
  #discard(kind: LaunchSettings, waiting: WaitingSpare): void {
    const work = waiting.spare
      .then(async (spare) => {
        if (spare === undefined) return;
        const { driver, storage } = this.#parts.backends.of(kind);
        try {
          await spare.walls.stop(0);
          this.#sandboxStart.closeAhead(spare.id);
          await driver.clear(spare.id, "remove");
          await storage.disks.remove(spare.id);
        } catch (error) {
          // No longer kept, and its range not given away: its processes may still be there.
          this.#ids.delete(spare.id);
          throw error;
        }
        this.#forget(spare);
      })
      .catch((error: unknown) =>
        this.#parts.log.info("a spare sandbox could not be cleared; the reconciler will", { error: errorText(error) }),
      )
      .finally(() => this.#discards.delete(work));
    this.#discards.add(work);
  }

  #forget(reservation: Reservation): void {
    this.#ids.delete(reservation.id);
    this.#registry.release(reservation);
  }

  /** Ends all spares. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.clear(), this.ahead.close()]);
  }

  /** Ends all spares there are now. */
  async clear(): Promise<void> {
    for (const project of this.#byProject.keys()) this.#dropAll(project, () => true);
    await Promise.all([...this.#discards, this.ahead.clear()]);
  }
}
