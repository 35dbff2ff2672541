/** The face of this folder: every change of a sandbox's state goes through here, one at a time per sandbox. */
import { isDeepStrictEqual } from "node:util";
import { errorText } from "../base/host/log.ts";
import type { Audit } from "../rules/audit/audit.ts";
import type { CommandResult, CommandSpec } from "../base/schema/command.ts";
import type { CreateInput } from "../base/schema/contracts.ts";
import { VivError } from "../base/schema/errors.ts";
import type { Autonomy } from "../base/schema/policy.ts";
import type { NetworkReport } from "../base/schema/network.ts";
import { Sandbox, type SandboxDetail, type Snapshot } from "../base/schema/sandbox.ts";
import { projectInside } from "../base/schema/workspace.ts";
import type { SandboxRow } from "../base/store/rows.ts";
import { setAutonomy, changedAutonomy, type AutonomyChange } from "./permissions/autonomy.ts";
import { comparedBase } from "./projects/bases.ts";
import { Commands } from "./commands/commands.ts";
import { Damage } from "./commands/damage.ts";
import { Desktops } from "./desktop/desktop.ts";
import { Notebooks } from "./notebook/notebook.ts";
import { Creation } from "./start/creation.ts";
import type { LaunchAhead } from "./start/launches-ahead.ts";
import { SandboxEnd } from "./ending/sandbox-end.ts";
import { CallerSandboxes } from "./ending/caller-sandboxes.ts";
import { LimitChanges, type LimitChange } from "./permissions/limit-changes.ts";
import { Networks, type NetworkChange } from "./permissions/networks.ts";
import type { Parts } from "./shared/parts.ts";
import { SandboxRestart } from "./snapshots/sandbox-restart.ts";
import { RepositoryClone } from "./start/repository-clone.ts";
import { Services } from "./start/services.ts";
import { SandboxStart, type FirstUse } from "./start/sandbox-start.ts";
import type { Registry } from "./shared/registry.ts";
import { Snapshots } from "./snapshots/snapshots.ts";
import { nextState, isFinal, notRunning, requireTransition } from "./shared/state.ts";

export interface BranchOptions {
  readonly name?: string;
  /** Whether nothing in it can be written but temporary files, and it reaches no network. */
  readonly sealed?: boolean;
  /** Whether it goes without services; as a sealed one does. */
  readonly idle?: boolean;
  /** Begun for it by `branchAhead`. */
  readonly ahead?: LaunchAhead | undefined;
}

export class Sandboxes {
  readonly #parts: Parts;
  readonly damage: Damage;
  readonly commands: Commands;
  readonly desktops: Desktops;
  readonly notebooks: Notebooks;
  readonly holds: CallerSandboxes;
  readonly networks: Networks;
  readonly limitChanges: LimitChanges;
  readonly sandboxEnd: SandboxEnd;
  readonly sandboxStart: SandboxStart;
  readonly creation: Creation;
  readonly #repositoryClone: RepositoryClone;
  readonly snapshots: Snapshots;
  readonly sandboxRestart: SandboxRestart;

  constructor(parts: Parts, registry: Registry) {
    this.#parts = parts;
    this.damage = new Damage(parts);
    this.commands = new Commands(parts, this.damage);
    this.desktops = new Desktops(parts, this.commands);
    this.notebooks = new Notebooks(parts, this.commands);
    this.holds = new CallerSandboxes(parts.log, (id) => this.remove(id));
    this.networks = new Networks(parts);
    this.limitChanges = new LimitChanges(parts);
    this.sandboxEnd = new SandboxEnd(parts, registry, this.commands, this.networks);
    this.sandboxStart = new SandboxStart(parts, this.networks, new Services(parts, this.commands));
    this.creation = new Creation(parts, registry, this.sandboxStart, this.sandboxEnd);
    this.#repositoryClone = new RepositoryClone(parts, this.creation, this.commands, this.sandboxEnd);
    this.snapshots = new Snapshots(parts, registry, this.creation, this.sandboxStart, this.sandboxEnd);
    this.sandboxRestart = new SandboxRestart(parts, this.creation, this.snapshots, this.sandboxEnd);
  }

  /** The row of an id or a name. */
  async find(reference: string): Promise<SandboxRow> {
    const row = (await this.#parts.store.sandboxes.get(reference)) ?? (await this.#parts.store.sandboxes.find({ name: reference }));
    if (row === undefined || row.removing) throw new VivError("not_found", `There is no sandbox ${reference}.`);
    return row;
  }

  async create(input: CreateInput, signal?: AbortSignal): Promise<Sandbox & { result?: CommandResult }> {
    const { run, idempotencyKey: key } = input;
    let running: Promise<CommandResult> | undefined;
    const begin = (row: SandboxRow, spec: CommandSpec): void => {
      running = this.commands.run(row, spec, undefined, signal);
      // Looked at when the sandbox has its row.
      running.catch(() => undefined);
    };
    const first = run === undefined ? undefined : (row: SandboxRow): void => begin(row, run);
    const row = key === undefined ? await this.#make(input, signal, first) : await this.#makeOnce(key, input, signal, first);
    if (run === undefined) return shown(row);
    try {
      // Behind its services, or where a call before this one made it.
      const result = await (running ?? this.commands.run(row, run, undefined, signal));
      return { ...shown(row), result };
    } catch (error) {
      // A caller that only gets the error does not know of the sandbox; with a key it can ask again.
      if (key === undefined) await this.#discard(row);
      throw error;
    }
  }

  async #discard(row: SandboxRow): Promise<void> {
    try {
      await this.remove(row.id);
    } catch (error) {
      this.#parts.log.warn("a sandbox whose command could not be run was not removed", { sandbox: row.id, error: errorText(error) });
    }
  }

  async #make(input: CreateInput, signal: AbortSignal | undefined, first: FirstUse | undefined): Promise<SandboxRow> {
    const origin = input.git === undefined ? undefined : await this.#repositoryClone.origin(input.git, input, signal);
    const { row, services } = await this.creation.create(input, origin, first);
    if (row.held === true) this.holds.expect(row.id);
    await services;
    return row;
  }

  async #makeOnce(key: string, input: CreateInput, signal: AbortSignal | undefined, first: FirstUse | undefined): Promise<SandboxRow> {
    return this.#parts.locks.run(
      `key:${key}`,
      async () => (await this.#parts.store.sandboxes.find({ idempotencyKey: key })) ?? this.#make(input, signal, first),
    );
  }

  async list(filter: { state?: string | undefined; project?: string | undefined }): Promise<Sandbox[]> {
    const rows = await this.#parts.store.sandboxes.list();
    return rows
      .filter(
        (row) =>
          !row.removing &&
          (filter.state === undefined || row.state === filter.state) &&
          (filter.project === undefined || row.project === filter.project),
      )
      .map((row) => this.#shownNow(row));
  }

  /** What a list shows of it. Nothing is measured: on plain storage, measuring walks the whole volume. */
  async summary(reference: string): Promise<Sandbox> {
    return this.#shownNow(await this.find(reference));
  }

  async inspect(reference: string): Promise<SandboxDetail> {
    const row = await this.find(reference);
    const base = await this.#parts.store.bases.get(comparedBase(row));
    const backend = this.#parts.backends.of(row);
    const live = this.#parts.live.get(row.id);
    const use = await live?.walls.usage();
    // Storage that is being opened again can't answer for a moment.
    const diskBytes = row.state === "completed" ? null : await backend.storage.disks.usage(row.id).catch(() => null);
    const masked = await backend.driver.masked({ home: row.home, project: projectInside(row), mask: row.masked, expose: row.exposed });
    return {
      ...this.#shownNow(row),
      baseTakenAt: base?.takenAt ?? row.createdAt,
      capture: base?.report ?? { files: 0, bytes: 0, changed: 0, removed: 0, live: [], readOnly: [], torn: [], notes: [] },
      limitsSeen: [...backend.driver.capabilities.limitsSeen],
      environmentLeftOut: row.environmentLeftOut,
      masked,
      use: { memoryBytes: use?.memoryBytes ?? null, cpuMs: use?.cpuMs ?? null, processes: use?.processes ?? null, diskBytes },
      processId: live?.walls.processId ?? null,
    };
  }

  async remove(reference: string): Promise<void> {
    const row = await this.find(reference);
    const { projectInUse } = await this.locked(row, (now) => this.sandboxEnd.remove(now));
    if (!projectInUse) this.creation.spares.desert(row.project);
  }

  async stop(reference: string, end: { outcome: "done" | "timeout" | "cancelled"; reason: string | null }): Promise<Sandbox> {
    const row = await this.find(reference);
    return this.locked(row, async (now) => {
      const keep = (kept: SandboxRow, expiresAt: string): Promise<Snapshot> => this.keep(kept, expiresAt);
      // No other operation is at work while the lock is held: an earlier stop was cut short, and this one goes on from there.
      if (now.state === "completing") return shown(await this.sandboxEnd.finishStop(now, keep, end));
      requireTransition(now, "completing");
      return shown(await this.sandboxEnd.stop(now, keep, end));
    });
  }

  /** The snapshot that a stopped sandbox leaves. */
  async keep(row: SandboxRow, expiresAt: string): Promise<Snapshot> {
    return this.snapshots.take(row, { expiresAt });
  }

  /** One that has ended runs again, from the files it left. */
  async start(reference: string): Promise<Sandbox> {
    const row = await this.find(reference);
    return this.locked(row, async (now) => {
      if (now.state === "running") return this.#shownNow(now);
      return this.#shownNow(await this.sandboxRestart.start(now));
    });
  }

  async pause(reference: string): Promise<Sandbox> {
    const row = await this.find(reference);
    return this.locked(row, async (now) => {
      requireTransition(now, "paused");
      const live = this.#parts.live.get(now.id);
      if (live?.driver.capabilities.pause !== true)
        throw new VivError("unsupported", `The driver ${now.driver} can't pause on this machine.`);
      await live.walls.freeze();
      this.#parts.reach("pause.frozen");
      try {
        return await this.#advance(now, "paused", "sandbox.paused");
      } catch (error) {
        // What is called running runs.
        await live.walls.thaw();
        throw error;
      }
    });
  }

  async resume(reference: string): Promise<Sandbox> {
    const row = await this.find(reference);
    return this.locked(row, async (now) => {
      if (now.state !== "paused") throw notPaused(now);
      await this.#parts.live.get(now.id)?.walls.thaw();
      this.#parts.live.touch(now.id);
      return this.#advance(now, "running", "sandbox.resumed");
    });
  }

  async extend(reference: string, byMs: number | undefined, idleMs: number | undefined): Promise<Sandbox> {
    const row = await this.find(reference);
    return this.locked(row, async (now) => {
      const live = this.#parts.live.get(now.id);
      if (live === undefined) throw notRunning(now);
      live.activeAt = performance.now();
      if (byMs !== undefined) live.keepUntil = performance.now() + byMs;
      const changed: SandboxRow = { ...now, idleMs: idleMs ?? now.idleMs };
      // Written down, so that the next server keeps the promise.
      const extended: SandboxRow = { ...changed, expiresAt: this.#shownNow(changed).expiresAt };
      await this.#parts.store.change(async (change) => {
        await change.sandboxes.put(extended);
        await change.event("sandbox.extended", now.id, { idleMs: extended.idleMs, byMs: byMs ?? 0 });
      });
      return this.#shownNow(extended);
    });
  }

  async changeNetwork(reference: string, change: NetworkChange): Promise<NetworkReport> {
    const row = await this.find(reference);
    return this.locked(row, (now) => this.networks.change(now, change));
  }

  /** Holds from the next action of its agents on. */
  async setAutonomy(reference: string, change: AutonomyChange, audit: Audit): Promise<Autonomy> {
    const row = await this.find(reference);
    const autonomy = await this.locked(row, (now) => setAutonomy(audit, now, change));
    this.#parts.reach("policy.set");
    return autonomy;
  }

  /** A person's limits. The kernel holds them from now on. */
  async limit(reference: string, change: LimitChange): Promise<Sandbox> {
    const row = await this.find(reference);
    return this.locked(row, async (now) => this.#shownNow(await this.limitChanges.change(now, change, "person")));
  }

  /** What a sandbox asked for; whether it may have it was decided by its row as it is given here. */
  async grant(row: SandboxRow, change: LimitChange): Promise<Sandbox> {
    return this.locked(row, async (now) => {
      if (!isDeepStrictEqual(now.givenLimits, row.givenLimits))
        throw new VivError("busy", `The limits of sandbox ${row.name} were changed meanwhile.`, { remedy: "Ask again." });
      return this.#shownNow(await this.limitChanges.change(now, change, "sandbox"));
    });
  }

  async snapshot(reference: string, name: string | undefined): Promise<Snapshot> {
    const row = await this.find(reference);
    return this.locked(row, async (now) => {
      if (now.state !== "running" && now.state !== "paused") throw notRunning(now);
      await this.snapshots.refuseBeyondMost(now);
      return this.snapshots.take(now, { name });
    });
  }

  async rollback(reference: string, snapshot: string): Promise<Sandbox> {
    const row = await this.find(reference);
    return this.locked(row, async (now) => shown(await this.snapshots.rollback(now, snapshot)));
  }

  async removeSnapshot(reference: string, snapshot: string): Promise<void> {
    const row = await this.find(reference);
    await this.locked(row, (now) => this.snapshots.remove(now, snapshot));
  }

  async fork(
    reference: string,
    snapshot: string | undefined,
    count: number,
    names: readonly string[],
    change: AutonomyChange = {},
  ): Promise<Sandbox[]> {
    const row = await this.find(reference);
    const forks = await this.locked(row, (now) => {
      const like: SandboxRow = { ...now, autonomy: changedAutonomy(now.autonomy, change) };
      return this.snapshots.fork(like, snapshot, count, names);
    });
    await Promise.all(forks.map(({ services }) => services));
    return forks.map((fork) => shown(fork.row));
  }

  /**
   * One more from a snapshot, with labels of its own, without waiting for what else is done with the sandbox it is of.
   */
  async branch(
    reference: string,
    snapshot: string,
    labels: Readonly<Record<string, string>>,
    { name, sealed = false, idle = sealed, ahead, ...autonomy }: AutonomyChange & BranchOptions = {},
  ): Promise<SandboxRow> {
    const from = await this.find(reference);
    const like: SandboxRow = {
      ...from,
      autonomy: changedAutonomy(from.autonomy, autonomy),
      ...(idle ? { services: {} } : {}),
      ...(sealed ? sealedLike(from) : {}),
    };
    const { row, services } = await this.creation.fork(like, snapshot, { name, labels, ahead });
    await services;
    return row;
  }

  /** A launch for a branch of this sandbox from a snapshot that is still to come; undefined where nothing is launched ahead. */
  async branchAhead(reference: string): Promise<LaunchAhead | undefined> {
    return this.creation.launchAhead(await this.find(reference));
  }

  /** Process 1 ended by itself or was killed from outside. */
  async exited(id: string): Promise<void> {
    await this.#parts.locks.run(id, async () => {
      if (this.creation.spares.lost(id)) return;
      const row = await this.#parts.store.sandboxes.get(id);
      const live = this.#parts.live.get(id);
      if (row === undefined || live === undefined) return;
      // A rollback that came first has launched another one.
      if (await live.walls.isAlive()) return;
      await this.sandboxEnd.fail(row, { outcome: "failed", reason: "Process 1 of the sandbox ended unexpectedly." });
    });
  }

  /** Runs with the sandbox's lock held and its row as it is then. */
  async locked<T>(row: Pick<SandboxRow, "id">, work: (now: SandboxRow) => Promise<T>): Promise<T> {
    return this.#parts.locks.run(row.id, async () => {
      this.#parts.live.touch(row.id);
      return work(await this.find(row.id));
    });
  }

  async #advance(row: SandboxRow, to: "paused" | "running", event: "sandbox.paused" | "sandbox.resumed"): Promise<Sandbox> {
    const next = nextState(row, to, new Date());
    await this.#parts.store.change(async (change) => {
      await change.sandboxes.put(next);
      await change.event(event, row.id, { name: row.name });
    });
    return shown(next);
  }

  /** With the time of its end as it is known now. */
  #shownNow(row: SandboxRow): Sandbox {
    const live = this.#parts.live.get(row.id);
    if (live === undefined) return shown(row);
    const uses = live.uses.list();
    if (row.idleMs === 0) return { ...shown(row), uses, expiresAt: null };
    const activeAt = uses.length > 0 ? performance.now() : live.activeAt;
    const endsIn = Math.max(activeAt + row.idleMs, live.keepUntil) - performance.now();
    return { ...shown(row), uses, expiresAt: new Date(Date.now() + endsIn).toISOString() };
  }
}

function sealedLike({ network, networkChosen }: SandboxRow): Partial<SandboxRow> {
  return {
    sealed: true,
    readOnly: true,
    ...(network === undefined ? {} : { network: { ...network, mode: "off" as const } }),
    networkChosen: { ...networkChosen, mode: "off" },
  };
}

function notPaused({ name, state }: SandboxRow): VivError {
  const hint = isFinal(state) ? { remedy: `Start it again: \`viv start ${name}\`.` } : {};
  return new VivError("illegal_transition", `Sandbox ${name} is ${state}, not paused.`, hint);
}

/** What the API shows of a row: the schema drops what is the server's own. */
function shown(row: SandboxRow): Sandbox {
  return Sandbox.parse(row);
}
