/** Making a sandbox: row, volume, walls, in an order that a crash at any point can be cleaned up after. */
import { filterEnvironment } from "../../machine/capture/environment.ts";
import type { BroughtBase, VolumeAhead } from "../../machine/capture/capture.ts";
import { callersHome } from "../../machine/capture/people.ts";
import type { MaskRequest, Walls } from "../../machine/drivers/drivers.ts";
import { errorText } from "../../base/host/log.ts";
import type { ProjectConfig } from "../../base/schema/config.ts";
import type { CreateInput } from "../../base/schema/contracts.ts";
import { VivError } from "../../base/schema/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { networkRules } from "../../base/schema/network.ts";
import { projectInside, WORKSPACE_USER } from "../../base/schema/workspace.ts";
import type { Base, SandboxRow } from "../../base/store/rows.ts";
import type { VolumePaths, VolumeSource } from "../../machine/volumes/disks.ts";
import { Admission, effectiveLimits } from "./admission.ts";
import { chosenLimits } from "../permissions/limit-changes.ts";
import { changedAutonomy } from "../permissions/autonomy.ts";
import { openBase } from "../projects/bases.ts";
import { isAlike, type Captured, type Origin } from "./origin.ts";
import { unmappedNotes } from "./owners.ts";
import { narrowedFork } from "../permissions/narrowing.ts";
import { chosenNetwork } from "../permissions/network-narrowing.ts";
import { refuseWider } from "../permissions/networks.ts";
import type { Parts } from "../shared/parts.ts";
import type { Backend } from "../../machine/backends.ts";
import { hiddenPaths, openProject, shownPaths } from "../projects/projects.ts";
import type { Registry, Reservation } from "../shared/registry.ts";
import { bringBase, captureBase } from "../projects/service-data.ts";
import { emptyBase, openWorkspace, withoutPerson } from "../projects/workspaces.ts";
import { beginning, recordCreating, recordFrozen, recordRunning } from "./first-rows.ts";
import { atOnce, type BringOptions, type ForkOptions, type StandingStill } from "./creation-options.ts";
import type { LaunchAhead } from "./launches-ahead.ts";
import { Spares, type Spare } from "./spares.ts";
import { refuseUnheldLimits, refuseUnheldSystem } from "./unheld.ts";
import type { Disk, Processes, StartedSandbox, SandboxStart } from "./sandbox-start.ts";
import type { SandboxEnd } from "../ending/sandbox-end.ts";
import { forgetUnused } from "../projects/fresh-base.ts";

type UnnamedRow = Omit<SandboxRow, keyof Reservation>;

interface Prepared extends BroughtBase {
  readonly row: UnnamedRow;
}

/** What a request and the configs come to, before the project is looked at. */
interface CreateSettings {
  readonly limits: SandboxRow["limits"];
  readonly environment: ReturnType<typeof filterEnvironment>;
  readonly hiding: MaskRequest;
}

const OWN_USER = "Its commands run with the id of the server's own user, because a server of root alone can give them another one.";

type CreationParts = Pick<Parts, "store" | "backends" | "user" | "uid" | "home" | "state" | "locks" | "log" | "reserve" | "reach">;

export class Creation {
  readonly spares: Spares;
  readonly #parts: CreationParts;
  readonly #registry: Registry;
  readonly #admission: Admission;
  readonly #sandboxStart: SandboxStart;
  readonly #sandboxEnd: SandboxEnd;

  constructor(parts: CreationParts, registry: Registry, sandboxStart: SandboxStart, sandboxEnd: SandboxEnd) {
    this.#parts = parts;
    this.#registry = registry;
    this.#sandboxStart = sandboxStart;
    this.#sandboxEnd = sandboxEnd;
    this.#admission = new Admission(parts.user);
    this.spares = new Spares(parts, registry, sandboxStart);
  }

  /** From what the input names, unless the caller has an origin. */
  async create(input: CreateInput, given?: Origin): Promise<StartedSandbox> {
    const origin = given ?? (await this.#origin(input));
    const { view } = origin;
    const backend = this.#backend(input, view.config);
    refuseUnheldLimits(input, backend);
    refuseUnheldSystem(input, backend);
    refuseWider(input.network, this.#parts.user.network);
    const asked = this.#asked(input, origin);
    const own = await this.#reserve(backend, input.name);
    const claim = input.name === undefined && isAlike(origin) ? this.spares.claim(backend.driver, view.row.path, asked.hiding) : undefined;
    const over = this.spares.begin(view.row.path);
    const ahead = claim === undefined ? undefined : (): Promise<VolumeAhead | undefined> => this.spares.volumeOf(claim);
    const { base, row, volume } = await this.#prepare(input, origin, backend, asked, ahead).catch((error: unknown) => {
      over();
      if (claim !== undefined) this.spares.drop(claim);
      this.#registry.release(own);
      throw error;
    });
    const release = this.#registry.hold(base.id);
    try {
      if (volume === "brought") this.#parts.reach("create.brought");
      const spare = claim === undefined ? undefined : await this.spares.use(claim, row, volume);
      if (spare === undefined) return await this.#bring({ ...row, ...own }, base, { base: base.id, project: view.row.id });
      this.#registry.release(own);
      return await this.#claim(row, base, spare);
    } catch (error) {
      await forgetUnused(this.#parts, this.#registry, base, backend);
      throw error;
    } finally {
      over();
      release();
    }
  }

  /** A sandbox that never runs: what the input names as it is now, as one snapshot to fork from. No launch is paid for it. */
  async freeze(input: CreateInput): Promise<{ readonly sandbox: string; readonly snapshot: string }> {
    const origin = await this.#origin(input);
    const backend = this.#backend(input, origin.view.config);
    refuseUnheldLimits(input, backend);
    refuseUnheldSystem(input, backend);
    const own = await this.#reserve(backend, input.name);
    const { base, row } = await this.#prepare(input, origin, backend, this.#asked(input, origin)).catch((error: unknown) => {
      this.#registry.release(own);
      throw error;
    });
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
  async #reserve({ storage }: Backend, name: string | undefined, ahead?: () => Reservation | undefined): Promise<Reservation> {
    await this.#admission.admit(storage.health);
    this.#admission.refuseAbove(this.#registry.count - this.spares.ids().size);
    return ahead?.() ?? this.#registry.reserve(name);
  }

  async #origin({ project, empty }: CreateInput): Promise<Origin> {
    if (empty === true) {
      const view = await openWorkspace(this.#parts, "empty");
      const capture = async (backend: Backend): Promise<Captured> => ({
        base: await emptyBase(this.#parts, view, backend, this.#emptyUser(backend), "lasting"),
        notes: backend.driver.capabilities.allUsers ? [] : [OWN_USER],
      });
      return { view, start: { from: "empty" }, capture };
    }
    if (project === undefined) throw new VivError("internal", "A sandbox is made from nothing.");
    const view = await openProject(this.#parts.store, project, this.#parts.state);
    return {
      view,
      capture: async (backend, ahead) =>
        ahead === undefined
          ? { base: await captureBase(this.#parts, view, backend, "fresh") }
          : bringBase(this.#parts, view, backend, ahead),
    };
  }

  /** Where only one user exists inside, it is that one. */
  #emptyUser({ driver }: Backend): string {
    return driver.capabilities.allUsers ? WORKSPACE_USER : String(this.#parts.uid);
  }

  async #prepare(
    input: CreateInput,
    origin: Origin,
    backend: Backend,
    asked: CreateSettings,
    ahead?: () => Promise<VolumeAhead | undefined>,
  ): Promise<Prepared> {
    const captured = await origin.capture(backend, ahead);
    const { base, volume = "untouched" } = captured;
    return { base, volume, row: this.#compose(input, { ...origin, ...captured }, backend, asked) };
  }

  #asked(input: CreateInput, { view, start }: Origin): CreateSettings {
    const { user, home } = this.#parts;
    const environment = filterEnvironment(input.env ?? {}, view.config.env);
    return {
      limits: effectiveLimits(input.limits, view.config, user),
      environment,
      hiding: {
        // Whose toolchains are shown.
        home: callersHome(environment.env["HOME"], home),
        project: projectInside({ project: view.row.path, start }),
        mask: [...user.mask, ...hiddenPaths(view)],
        expose: [...user.expose, ...shownPaths(view)],
      },
    };
  }

  #compose(
    input: CreateInput,
    { view, base, start, notes = [], opens = [] }: Origin & Captured,
    backend: Backend,
    { limits, environment, hiding }: CreateSettings,
  ): UnnamedRow {
    const { driver, storage } = backend;
    const { leftOut } = environment;
    const { home } = hiding;
    const idleMs = input.idleMs ?? view.config.idle ?? LIMITS.defaultIdleMs;
    const empty = start?.from === "empty";
    const user = empty ? this.#emptyUser(backend) : (input.user ?? String(this.#parts.uid));
    const env = empty ? withoutPerson(environment.env) : environment.env;
    const rules = networkRules(view.config.network, this.#parts.user.network, { mode: input.network, variables: input.networkVariables });
    return {
      ...beginning(idleMs),
      driver: driver.name,
      walled: driver.capabilities.walled,
      project: view.row.path,
      start,
      readOnly: input.readOnly === true || empty,
      parent: null,
      limits,
      givenLimits: chosenLimits(input.limits),
      limitsHeld:
        driver.capabilities.limits === "hard" && storage.capabilities.quota === "watched" ? "watched" : driver.capabilities.limits,
      storage: storage.name,
      idleMs,
      labels: input.labels ?? {},
      autonomy: changedAutonomy(undefined, input),
      base: base.id,
      user,
      env,
      environmentLeftOut: leftOut,
      environmentSet: Object.keys(view.config.env.set),
      notes: [...notes, ...(driver.capabilities.allUsers ? unmappedNotes({ user, home }, base) : [])],
      untrusted: [...view.untrusted],
      masked: [...hiding.mask],
      exposed: [...hiding.expose],
      sudo: view.config.sudo,
      network: { ...rules, allow: [...rules.allow, ...opens] },
      networkChosen: chosenNetwork({}, { mode: input.network, allow: opens }),
      services: view.config.services,
      home,
      idempotencyKey: input.idempotencyKey ?? null,
      held: input.held,
    };
  }

  /** A launch for a fork of this sandbox that will be asked for soon; undefined where nothing is launched ahead. */
  async launchAhead(from: SandboxRow): Promise<LaunchAhead | undefined> {
    if (!this.#parts.user.spares || this.#parts.backends.of(from).driver.capabilities.limits !== "hard") return undefined;
    return this.spares.ahead.begin(await narrowedFork(this.#parts, from), await openBase(this.#parts.store, from, from.base));
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
    const own = await this.#reserve(this.#parts.backends.of(from), name, () => how.ahead?.take(like));
    const ahead = own === how.ahead?.reservation ? how.ahead : undefined;
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

  async #bringLocked(row: SandboxRow, base: Base, source: VolumeSource, { still = atOnce, ahead }: BringOptions): Promise<StartedSandbox> {
    const { store, reach, backends } = this.#parts;
    const { storage } = backends.of(row);
    // Volume and processes are made while the row is written: the reconciler ends and removes those that have no row.
    let making: Promise<VolumePaths> | undefined;
    const volume = (): Promise<VolumePaths> =>
      (making = still(() => storage.disks.create(row.id, source, row.limits.diskBytes)).finally(() => reach("create.volume")));
    let written: Promise<void> | undefined;
    try {
      const record = async (processes: Processes): Promise<SandboxRow> => {
        await written;
        reach("create.launch");
        return store.change((change) => recordRunning(change, row, processes));
      };
      const start = (on: Disk | Walls): Promise<StartedSandbox> => this.#sandboxStart.start({ row, on, record });
      const starting = ahead === undefined ? start({ base, volume }) : ahead.finish(volume).then(start);
      written = store.change((change) => recordCreating(change, row, base)).then(() => reach("create.row"));
      // It is looked at late or never; a rejection without a handler would end the server.
      written.catch(() => undefined);
      const started = await starting;
      reach("create.running");
      if ("base" in source && isAlike(row) && this.#parts.user.spares) this.spares.prepare(started.row, base);
      return started;
    } catch (error) {
      await Promise.allSettled([making, written]);
      await this.#undo(row, error);
      throw error;
    } finally {
      if (ahead !== undefined) this.spares.ahead.known(ahead);
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

  /** Walls, unless the caller or a trusted config accepts to go without. */
  #backend(input: CreateInput, config: ProjectConfig): Backend {
    const { backends } = this.#parts;
    const walled = backends.walled();
    const accepted = input.unwalled === true && walled === undefined ? backends.unwalled() : undefined;
    const chosen = accepted ?? (config.driver === undefined ? walled : backends.find(config.driver));
    if (chosen === undefined) throw new VivError("no_walls", "This machine can't put walls around a sandbox.");
    return chosen;
  }
}
