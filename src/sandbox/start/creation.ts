/** Making a sandbox: row, volume, walls, in an order that a crash at any point can be cleaned up after. */
import type { BroughtBase, VolumeAhead } from "../../machine/capture/capture.ts";
import type { Walls } from "../../machine/drivers/drivers.ts";
import { errorText } from "../../base/host/log.ts";
import type { CreateInput } from "../../base/schema/contracts.ts";
import { VivError } from "../../base/schema/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import type { Base, SandboxRow } from "../../base/store/rows.ts";
import type { VolumePaths, VolumeSource } from "../../machine/volumes/disks.ts";
import { Admission } from "./admission.ts";
import { openBase } from "../projects/bases.ts";
import { Composition, type CreateSettings, type UnnamedRow } from "./composition.ts";
import { isAlike, originOf, type Captured, type Origin } from "./origin.ts";
import { narrowedFork } from "../permissions/narrowing.ts";
import { refuseWider } from "../permissions/networks.ts";
import type { Parts } from "../shared/parts.ts";
import type { Backend } from "../../machine/backends.ts";
import type { Registry, Reservation } from "../shared/registry.ts";
import { beginning, recordCreating, recordFrozen, recordRunning } from "./first-rows.ts";
import { atOnce, type BringOptions, type ForkOptions, type StandingStill } from "./creation-options.ts";
import { launchKindOf, type LaunchAhead } from "./launches-ahead.ts";
import { Spares, type Spare, type SpareClaim } from "./spares.ts";
import { chooseBackend, refuseUnheldLimits, refuseUnheldSystem } from "./unheld.ts";
import type { Disk, FirstUse, LaunchSettings, Processes, StartedSandbox, SandboxStart } from "./sandbox-start.ts";
import type { SandboxEnd } from "../ending/sandbox-end.ts";
import { forgetUnused } from "../projects/fresh-base.ts";

interface Prepared extends BroughtBase {
  readonly row: UnnamedRow;
}

/** A request with what was found out for it. */
interface Order {
  readonly input: CreateInput;
  readonly origin: Origin;
  readonly backend: Backend;
  readonly asked: CreateSettings;
  readonly own: Reservation;
  readonly first: FirstUse | undefined;
}

type CreationParts = Pick<Parts, "store" | "backends" | "user" | "uid" | "home" | "state" | "locks" | "log" | "reserve" | "reach">;

export class Creation {
  readonly spares: Spares;
  /** Ids that may have processes before they have a row. */
  readonly making = new Set<string>();
  readonly #parts: CreationParts;
  readonly #registry: Registry;
  readonly #admission: Admission;
  readonly #composition: Composition;
  readonly #sandboxStart: SandboxStart;
  readonly #sandboxEnd: SandboxEnd;

  constructor(parts: CreationParts, registry: Registry, sandboxStart: SandboxStart, sandboxEnd: SandboxEnd) {
    this.#parts = parts;
    this.#registry = registry;
    this.#sandboxStart = sandboxStart;
    this.#sandboxEnd = sandboxEnd;
    this.#admission = new Admission(parts.user);
    this.#composition = new Composition(parts);
    this.spares = new Spares(parts, registry, sandboxStart);
  }

  /** From what the input names, unless the caller has an origin. `first` is called where no service has to be awaited. */
  async create(input: CreateInput, given?: Origin, first?: FirstUse): Promise<StartedSandbox> {
    const origin = given ?? (await originOf(this.#parts, this.#composition, input));
    const { view } = origin;
    const backend = chooseBackend(this.#parts.backends, input, view.config);
    refuseUnheldLimits(input, backend);
    refuseUnheldSystem(input, backend);
    refuseWider(input.network, this.#parts.user.network);
    const asked = this.#composition.asked(input, origin);
    const own = await this.#reserve(backend, input.name);
    const order = { input, origin, backend, asked, own, first };
    const claim = input.name === undefined && isAlike(origin) ? this.spares.claim(backend.driver, view.row.path, asked.hiding) : undefined;
    const over = this.spares.begin(view.row.path);
    try {
      const guess = claim === undefined ? this.#guess(order) : undefined;
      return guess === undefined ? await this.#fromOrigin(order, claim) : await this.#fromGuess(order, guess);
    } finally {
      over();
    }
  }

  async #fromOrigin(order: Order, claim?: SpareClaim, captured?: Captured): Promise<StartedSandbox> {
    const { origin, backend, own, first } = order;
    const isNamed = order.input.name !== undefined;
    const ahead = claim === undefined ? undefined : (): Promise<VolumeAhead | undefined> => this.spares.volumeOf(claim);
    const { base, row, volume } = await this.#prepare(order, ahead, captured).catch((error: unknown) => {
      if (claim !== undefined) this.spares.drop(claim);
      this.#registry.release(own);
      throw error;
    });
    return this.#held(base, backend, async () => {
      if (volume === "brought") this.#parts.reach("create.brought");
      const spare = claim === undefined ? undefined : await this.spares.use(claim, row, volume);
      if (spare === undefined)
        return this.#bring({ ...row, ...own }, base, { base: base.id, project: origin.view.row.id }, { first, isNamed });
      this.#registry.release(own);
      return this.#claim(row, base, spare);
    });
  }

  /**
   * The base that a capture will most likely give: usually nothing has changed since the last one. With services there is another base each
   * time; without walls a volume is a copy of the whole project.
   */
  #guess({ origin, backend }: Order): Base | undefined {
    const { view, start } = origin;
    const isLikely = backend.driver.capabilities.walled && start === undefined && Object.keys(view.config.services).length === 0;
    return isLikely ? backend.capture.last(view.row.id) : undefined;
  }

  /** Volume and processes are begun while the project is compared with reality. If it is another base, what was begun goes. */
  async #fromGuess(order: Order, guess: Base): Promise<StartedSandbox> {
    const { input, origin, backend, asked, first } = order;
    const isNamed = input.name !== undefined;
    const source = { base: guess.id, project: origin.view.row.id };
    const { row, own, ahead } = this.#orReleased(order.own, () => {
      const composed = this.#composition.compose(input, { ...origin, base: guess }, backend, asked);
      return { row: composed, ...this.#takeAhead(order.own, composed, guess) };
    });
    // First, because the disk takes longest.
    const volume = backend.storage.disks.create(own.id, source, asked.limits.diskBytes);
    const capturing = origin.capture(backend);
    const isRight = capturing.then(({ base }) => {
      if (base.id !== guess.id) throw new VivError("internal", "The project has changed.");
    });
    for (const begun of [volume, isRight]) begun.catch(() => undefined);
    try {
      return await this.#held(guess, backend, () =>
        this.#bring({ ...row, ...own }, guess, source, { first, ahead, isNamed, guessed: { volume, isRight } }),
      );
    } catch (error) {
      const captured = await capturing;
      if (captured.base.id === guess.id) throw error;
      return this.#held(captured.base, backend, async () => {
        const again = { ...order, own: await this.#reserve(backend, input.name) };
        return this.#fromOrigin(again, undefined, captured);
      });
    }
  }

  #orReleased<T>(own: Reservation, work: () => T): T {
    try {
      return work();
    } catch (error) {
      this.#registry.release(own);
      throw error;
    }
  }

  /** Works with a base that must not be forgotten meanwhile. */
  async #held<T>(base: Base, backend: Backend, work: () => Promise<T>): Promise<T> {
    const release = this.#registry.hold(base.id);
    try {
      return await work();
    } catch (error) {
      await forgetUnused(this.#parts, this.#registry, base, backend);
      throw error;
    } finally {
      release();
    }
  }

  /** A sandbox that never runs: what the input names as it is now, as one snapshot to fork from. No launch is paid for it. */
  async freeze(input: CreateInput): Promise<{ readonly sandbox: string; readonly snapshot: string }> {
    const origin = await originOf(this.#parts, this.#composition, input);
    const backend = chooseBackend(this.#parts.backends, input, origin.view.config);
    refuseUnheldLimits(input, backend);
    refuseUnheldSystem(input, backend);
    const own = await this.#reserve(backend, input.name);
    const { base, row } = await this.#prepare({ input, origin, backend, asked: this.#composition.asked(input, origin) }).catch(
      (error: unknown) => {
        this.#registry.release(own);
        throw error;
      },
    );
    const release = this.#registry.hold(base.id);
    const created: SandboxRow = { ...row, ...own };
    try {
      return await this.#parts.locks.run(created.id, () => this.#freezeLocked(created, base, origin.view.row.id));
    } catch (error) {
      await this.#undo(created, error);
      await forgetUnused(this.#parts, this.#registry, base, backend);
      throw error;
    } finally {
      release();
    }
  }

  async #freezeLocked(row: SandboxRow, base: Base, project: string): Promise<{ readonly sandbox: string; readonly snapshot: string }> {
    const { store, reach, backends } = this.#parts;
    const { disks, snapshots } = backends.of(row).storage;
    const volume = disks.create(row.id, { base: base.id, project }, row.limits.diskBytes);
    const id = newId("snapshot");
    try {
      await Promise.all([volume, store.change((change) => recordCreating(change, row, base)).then(() => reach("freeze.row"))]);
      await snapshots.take(row.id, id);
      reach("freeze.snapshot");
      const seal = await snapshots.seal(id);
      await store.change((change) => recordFrozen(change, row, { id, seal }));
    } catch (error) {
      // The volume may still be under way. Without a row no caller could find the snapshot, and its space would stay taken.
      await volume.catch(() => undefined);
      await snapshots.remove(id);
      throw error;
    }
    reach("freeze.frozen");
    // What a snapshot can be forked from needs no volume beside it.
    await disks.remove(row.id);
    return { sandbox: row.id, snapshot: id };
  }

  /** Throws when the machine has no room for the processes of a sandbox that is there already. */
  async admit(row: SandboxRow): Promise<void> {
    await this.#admission.admit(this.#parts.backends.of(row).storage.health);
  }

  /** A place among the sandboxes of this machine; spares have theirs outside. */
  async #reserve({ storage }: Backend, name: string | undefined): Promise<Reservation> {
    await this.#admission.admit(storage.health);
    this.#admission.refuseAbove(this.#registry.count - this.spares.ids().size);
    return this.#registry.reserve(name);
  }

  async #prepare(
    { input, origin, backend, asked }: Omit<Order, "own" | "first">,
    ahead?: () => Promise<VolumeAhead | undefined>,
    known?: Captured,
  ): Promise<Prepared> {
    const captured = known ?? (await origin.capture(backend, ahead));
    const { base, volume = "untouched" } = captured;
    return { base, volume, row: this.#composition.compose(input, { ...origin, ...captured }, backend, asked) };
  }

  #launchesAhead(row: Pick<SandboxRow, "driver">): boolean {
    return this.#parts.user.spares && this.#parts.backends.of(row).driver.capabilities.limits === "hard";
  }

  /** A launch ahead for a sandbox like this, and what that is then called: the name stays. */
  #takeAhead(
    named: Reservation,
    like: LaunchSettings,
    base: Base,
    begun?: LaunchAhead,
  ): { readonly own: Reservation; readonly ahead: LaunchAhead | undefined } {
    const ahead = this.spares.ahead.take(launchKindOf(like, base), begun);
    return { own: ahead === undefined ? named : this.#registry.join(named, ahead.reservation), ahead };
  }

  /** A launch for a fork of this sandbox that will be asked for soon; undefined where nothing is launched ahead. */
  async launchAhead(from: SandboxRow): Promise<LaunchAhead | undefined> {
    if (!this.#launchesAhead(from)) return undefined;
    const like = await narrowedFork(this.#parts, from);
    return this.spares.ahead.begin(launchKindOf(like, await openBase(this.#parts.store, from, from.base)));
  }

  /** A sandbox like another one, from a snapshot of it, and never wider than a new one would be. */
  async fork(from: SandboxRow, snapshot: string, { name, labels = from.labels, ahead }: ForkOptions = {}): Promise<StartedSandbox> {
    // A snapshot that only lives as long as the fork takes has no row: it has the state of its sandbox.
    const { refreshedTo } = (await this.#parts.store.snapshots.get(snapshot)) ?? from;
    return this.#fork({ ...from, refreshedTo, labels }, name, { snapshot }, { ahead });
  }

  /** The same from the sandbox as it is now. Called with its lock held. */
  forkNow(from: SandboxRow, still: StandingStill, name: string | undefined): Promise<StartedSandbox> {
    return this.#fork(from, name, { volume: from.id }, { still });
  }

  async #fork(from: SandboxRow, name: string | undefined, source: VolumeSource, how: BringOptions = {}): Promise<StartedSandbox> {
    const base = await openBase(this.#parts.store, from, from.base);
    const like = await narrowedFork(this.#parts, from);
    const named = await this.#reserve(this.#parts.backends.of(from), name);
    const { own, ahead } = this.#orReleased(named, () => this.#takeAhead(named, like, base, how.ahead));
    const row: SandboxRow = {
      ...like,
      ...beginning(from.idleMs),
      refreshedTo: from.refreshedTo,
      labels: from.labels,
      parent: from.id,
      idempotencyKey: null,
      held: undefined,
      ...own,
    };
    return this.#bring(row, base, source, { ...how, ahead });
  }

  /** A spare becomes a sandbox by getting a row. An operation that finds the row before that waits. */
  #claim(row: UnnamedRow, base: Base, { id, name, range, walls }: Spare): Promise<StartedSandbox> {
    return this.#parts.locks.run(id, () => this.#claimLocked({ ...row, id, name, range }, base, walls));
  }

  async #claimLocked(created: SandboxRow, base: Base, walls: Walls): Promise<StartedSandbox> {
    const record = (processes: Processes): Promise<SandboxRow> =>
      this.#parts.store.change(async (change) => {
        await recordCreating(change, created, base);
        return recordRunning(change, created, processes);
      });
    try {
      const started = await this.#sandboxStart.start({ row: created, on: walls, record });
      this.#parts.reach("create.claimed");
      if (this.#parts.user.spares) this.spares.prepare(started.row, base);
      return started;
    } catch (error) {
      await this.#undo(created, error);
      throw error;
    }
  }

  /** From a reserved row to a running sandbox. An operation that finds the row before that waits. */
  #bring(row: SandboxRow, base: Base, source: VolumeSource, how: BringOptions = {}): Promise<StartedSandbox> {
    return this.#parts.locks.run(row.id, () => this.#bringLocked(row, base, source, how));
  }

  async #bringLocked(row: SandboxRow, base: Base, source: VolumeSource, options: BringOptions): Promise<StartedSandbox> {
    const { still = atOnce, ahead, first, guessed, isNamed } = options;
    const { store, reach, backends } = this.#parts;
    const { storage } = backends.of(row);
    // Volume and processes are made while the row is written: the reconciler ends and removes those that have no row.
    let making: Promise<VolumePaths> | undefined;
    const create = (): Promise<VolumePaths> => still(() => storage.disks.create(row.id, source, row.limits.diskBytes));
    const volume = async (): Promise<VolumePaths> => {
      making ??= (guessed?.volume ?? create()).finally(() => reach("create.volume"));
      return (await Promise.all([making, guessed?.isRight]))[0];
    };
    let written: Promise<void> | undefined;
    this.making.add(row.id);
    try {
      const record = async (processes: Processes): Promise<SandboxRow> => {
        await written;
        reach("create.launch");
        return store.change((change) => recordRunning(change, row, processes));
      };
      const start = (on: Disk | Walls): Promise<StartedSandbox> =>
        this.#sandboxStart.start({
          row,
          on,
          record,
          ...(first === undefined ? {} : { first: { use: first, known: async () => written } }),
        });
      const disk = { base, volume };
      // One that waited may have ended a moment ago; its groups and folders are gone by now.
      const anew = (error: unknown): Promise<StartedSandbox> => {
        if (error instanceof VivError && error.code === "cell_failed") return start(disk);
        throw error;
      };
      const starting = ahead === undefined ? start(disk) : ahead.finish({ row, disk, isUsedAtOnce: first !== undefined }).then(start, anew);
      const write = (): Promise<void> => store.change((change) => recordCreating(change, row, base));
      written = (guessed === undefined ? write() : guessed.isRight.then(write)).then(() => reach("create.row"));
      // It is looked at late or never; a rejection without a handler would end the server.
      written.catch(() => undefined);
      const started = await starting;
      reach("create.running");
      if ("base" in source && isAlike(row) && this.#parts.user.spares) this.spares.prepare(started.row, base);
      // What no spare fits is likely to be asked for again.
      const isUnlike = isNamed === true || !("base" in source);
      if (isUnlike && this.#launchesAhead(row)) this.spares.ahead.prepare(launchKindOf(started.row, base));
      return started;
    } catch (error) {
      await Promise.allSettled([guessed?.volume, making, written]);
      await this.#undo(row, error);
      throw error;
    } finally {
      if (ahead !== undefined) this.spares.ahead.known(ahead);
      this.making.delete(row.id);
    }
  }

  /** Nothing of a failed creation stays but the event that says why. A full disk is a common reason, so this gets the space kept back. */
  async #undo(row: SandboxRow, error: unknown): Promise<void> {
    const { store, reserve, log } = this.#parts;
    try {
      await reserve.during(() => this.#clear(row, error));
      // Only now: what could not be cleaned up may still have processes with the ids of this range.
      this.#registry.release(row);
    } catch (second) {
      log.warn("cleaning up after a failed creation failed; it is tried again", { sandbox: row.id, error: errorText(second) });
      if ((await store.sandboxes.get(row.id)) !== undefined) this.#sandboxEnd.unfinished.add(row.id);
    }
  }

  async #clear(row: SandboxRow, error: unknown): Promise<void> {
    const { store, backends } = this.#parts;
    await this.#sandboxEnd.endProcesses({ ...row, removing: true }, 0, "cancelled");
    await backends.of(row).storage.disks.remove(row.id);
    await store.change(async (change) => {
      if ((await change.sandboxes.get(row.id)) === undefined) return;
      await change.sandboxes.remove(row.id);
      await change.event("sandbox.failed", row.id, { name: row.name, reason: errorText(error) });
    });
  }
}
