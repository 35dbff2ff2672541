/** Making a sandbox: row, volume, walls, in an order that a crash at any point can be cleaned up after. */
import { filterEnvironment } from "../../machine/capture/environment.ts";
import { callersHome } from "../../machine/capture/people.ts";
import type { MaskRequest, Walls } from "../../machine/drivers/drivers.ts";
import { errorText } from "../../base/host/log.ts";
import type { ProjectConfig } from "../../base/schema/config.ts";
import type { CreateInput } from "../../base/schema/contracts.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { networkRules } from "../../base/schema/network.ts";
import type { Change } from "../../base/store/store.ts";
import type { Base, SandboxRow } from "../../base/store/rows.ts";
import type { VolumeSource } from "../../machine/volumes/disks.ts";
import { Admission, effectiveLimits } from "./admission.ts";
import { chosenLimits } from "../permissions/limit-changes.ts";
import { changedAutonomy } from "../permissions/autonomy.ts";
import { openBase } from "../projects/bases.ts";
import { unmappedNotes } from "./owners.ts";
import { narrowedFork } from "../permissions/narrowing.ts";
import { chosenNetwork } from "../permissions/network-narrowing.ts";
import { refuseWider } from "../permissions/networks.ts";
import type { Parts } from "../shared/parts.ts";
import type { Backend } from "../../machine/backends.ts";
import { hiddenPaths, openProject, type ProjectView, shownPaths } from "../projects/projects.ts";
import type { Registry, Reservation } from "../shared/registry.ts";
import { captureBase } from "../projects/service-data.ts";
import { Spares, type Spare } from "./spares.ts";
import type { Processes, StartedSandbox, SandboxStart } from "./sandbox-start.ts";
import type { SandboxEnd } from "../ending/sandbox-end.ts";
import { nextState } from "../shared/state.ts";
import { forgetUnused } from "../projects/fresh-base.ts";

type UnnamedRow = Omit<SandboxRow, keyof Reservation>;

/** What a request and the configs come to, before the project is looked at. */
interface CreateSettings {
  readonly limits: SandboxRow["limits"];
  readonly environment: ReturnType<typeof filterEnvironment>;
  readonly hiding: MaskRequest;
}

type CreationParts = Pick<Parts, "store" | "backends" | "user" | "uid" | "home" | "state" | "locks" | "log" | "reach">;

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

  async create(input: CreateInput): Promise<StartedSandbox> {
    const view = await openProject(this.#parts.store, input.project, this.#parts.state);
    const backend = this.#backend(input, view.config);
    refuseUnheldLimits(input, backend);
    refuseWider(input.network, this.#parts.user.network);
    const asked = this.#asked(input, view);
    const own = await this.#reserve(backend, input.name);
    const fresh = input.name === undefined ? this.spares.hidingAsNow(backend.driver, asked.hiding) : Promise.resolve(undefined);
    const { base, row } = await this.#prepare(input, view, backend, asked).catch((error: unknown) => {
      this.#registry.release(own);
      throw error;
    });
    const release = this.#registry.hold(base.id);
    try {
      const spare = input.name === undefined ? await this.spares.take(row, fresh) : undefined;
      if (spare === undefined) return await this.#bring({ ...row, ...own }, base, { base: base.id, project: view.row.id });
      this.#registry.release(own);
      return await this.#claim(row, base, spare);
    } catch (error) {
      await forgetUnused(this.#parts, this.#registry, base, backend);
      throw error;
    } finally {
      release();
    }
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

  async #prepare(input: CreateInput, view: ProjectView, backend: Backend, asked: CreateSettings): Promise<{ base: Base; row: UnnamedRow }> {
    const base = await captureBase(this.#parts, view, backend, "fresh");
    return { base, row: this.#compose(input, view, backend, base, asked) };
  }

  #asked(input: CreateInput, view: ProjectView): CreateSettings {
    const { user, home } = this.#parts;
    const environment = filterEnvironment(input.env ?? {}, view.config.env);
    return {
      limits: effectiveLimits(input.limits, view.config, user),
      environment,
      hiding: {
        // Whose toolchains are shown.
        home: callersHome(environment.env["HOME"], home),
        project: view.row.path,
        mask: [...user.mask, ...hiddenPaths(view)],
        expose: [...user.expose, ...shownPaths(view)],
      },
    };
  }

  #compose(
    input: CreateInput,
    view: ProjectView,
    backend: Backend,
    base: Base,
    { limits, environment, hiding }: CreateSettings,
  ): UnnamedRow {
    const { driver, storage } = backend;
    const { env, leftOut } = environment;
    const { home } = hiding;
    const idleMs = input.idleMs ?? view.config.idle ?? LIMITS.defaultIdleMs;
    const user = input.user ?? String(this.#parts.uid);
    return {
      ...beginning(idleMs),
      driver: driver.name,
      walled: driver.capabilities.walled,
      project: view.row.path,
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
      notes: driver.capabilities.allUsers ? unmappedNotes({ user, home }, base) : [],
      untrusted: [...view.untrusted],
      masked: [...hiding.mask],
      exposed: [...hiding.expose],
      sudo: view.config.sudo,
      network: networkRules(view.config.network, this.#parts.user.network, { mode: input.network, variables: input.networkVariables }),
      networkChosen: chosenNetwork({}, { mode: input.network }),
      services: view.config.services,
      home,
      idempotencyKey: input.idempotencyKey ?? null,
      held: input.held,
    };
  }

  /** A sandbox like another one, from a snapshot of it, and never wider than a new one would be. */
  async fork(from: SandboxRow, snapshot: string, name: string | undefined, labels = from.labels): Promise<StartedSandbox> {
    const base = await openBase(this.#parts.store, from, from.base);
    // A snapshot that only lives as long as the fork takes has no row: it has the state of its sandbox.
    const { refreshedTo } = (await this.#parts.store.snapshots.get(snapshot)) ?? from;
    const like = await narrowedFork(this.#parts, from);
    const own = await this.#reserve(this.#parts.backends.of(from), name);
    const row: SandboxRow = {
      ...like,
      ...beginning(from.idleMs),
      refreshedTo,
      labels,
      parent: from.id,
      idempotencyKey: null,
      held: undefined,
      ...own,
    };
    return this.#bring(row, base, { snapshot });
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
  #bring(row: SandboxRow, base: Base, source: VolumeSource): Promise<StartedSandbox> {
    return this.#parts.locks.run(row.id, () => this.#bringLocked(row, base, source));
  }

  async #bringLocked(row: SandboxRow, base: Base, source: VolumeSource): Promise<StartedSandbox> {
    const { store, reach, backends } = this.#parts;
    const { storage } = backends.of(row);
    // Under way while the row is written: a volume without a row is removed by the reconciler.
    const volume = storage.disks.create(row.id, source, row.limits.diskBytes);
    volume.catch(() => undefined);
    try {
      await store.change((change) => recordCreating(change, row, base));
      reach("create.row");
      const made = volume.finally(() => reach("create.volume"));
      // The launch may look at it late or never; a rejection without a handler would end the server.
      made.catch(() => undefined);
      const record = (processes: Processes): Promise<SandboxRow> => {
        reach("create.launch");
        return store.change((change) => recordRunning(change, row, processes));
      };
      const started = await this.#sandboxStart.start({ row, on: { base, volume: made }, record });
      reach("create.running");
      if ("base" in source && this.#parts.user.spares) this.spares.prepare(started.row, base);
      return started;
    } catch (error) {
      await volume.catch(() => undefined);
      await this.#undo(row, error);
      throw error;
    }
  }

  /** Nothing of a failed creation stays but the event that says why. */
  async #undo(row: SandboxRow, error: unknown): Promise<void> {
    const { store, backends, log } = this.#parts;
    try {
      await this.#sandboxEnd.endProcesses({ ...row, removing: true }, 0, "cancelled");
      await backends.of(row).storage.disks.remove(row.id);
      await store.change(async (change) => {
        if ((await change.sandboxes.get(row.id)) === undefined) return;
        await change.sandboxes.remove(row.id);
        await change.event("sandbox.failed", row.id, { name: row.name, reason: errorText(error) });
      });
      // Only now: what could not be cleaned up may still have processes with the ids of this range.
      this.#registry.release(row);
    } catch (second) {
      log.warn("cleaning up after a failed creation failed; the reconciler will", { sandbox: row.id, error: errorText(second) });
    }
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

/** What every new life of a sandbox starts with. */
function beginning(
  idleMs: number,
): Pick<
  SandboxRow,
  "state" | "outcome" | "reason" | "createdAt" | "endedAt" | "expiresAt" | "launched" | "currentSnapshot" | "restoring" | "removing"
> {
  const now = Date.now();
  return {
    state: "creating",
    outcome: null,
    reason: null,
    createdAt: new Date(now).toISOString(),
    endedAt: null,
    expiresAt: idleMs === 0 ? null : new Date(now + idleMs).toISOString(),
    launched: null,
    currentSnapshot: null,
    restoring: null,
    removing: false,
  };
}

async function recordCreating(change: Change, row: SandboxRow, base: Base): Promise<void> {
  await change.bases.put(base);
  await change.sandboxes.put(row);
  await change.event("sandbox.creating", row.id, { name: row.name, project: row.project });
}

async function recordRunning(change: Change, created: SandboxRow, processes: Processes): Promise<SandboxRow> {
  const row: SandboxRow = { ...nextState(created, "running", new Date()), ...processes };
  await change.sandboxes.put(row);
  await change.event("sandbox.running", row.id, { name: row.name });
  return row;
}

/** Which limits a driver can't hold: a watcher bounds memory, rlimits bound processes, but nothing bounds CPU. */
const UNHELD = { hard: [], watched: ["cpus"], none: ["cpus", "memoryBytes", "diskBytes", "processes"] } as const;

/** An explicit limit that can't be held is refused rather than promised. */
function refuseUnheldLimits(input: CreateInput, { driver }: Backend): void {
  const unheld = UNHELD[driver.capabilities.limits].find((name) => input.limits?.[name] !== undefined);
  if (unheld === undefined) return;
  throw new VivError("limit_unsupported", `The limit ${unheld} can't be held by the driver ${driver.name} on this machine.`);
}
