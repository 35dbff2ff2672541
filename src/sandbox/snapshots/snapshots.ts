/** Snapshots, rollback and fork (SNAP-1 to SNAP-4). */
import { errorText } from "../../base/host/log.ts";
import { VivError } from "../../base/schema/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { Snapshot } from "../../base/schema/sandbox.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { VolumePaths } from "../../machine/volumes/disks.ts";
import { basesOf, dropUnused, openBase } from "../projects/bases.ts";
import type { Creation } from "../start/creation.ts";
import type { StandingStill } from "../start/creation-options.ts";
import type { Processes, StartedSandbox, SandboxStart } from "../start/sandbox-start.ts";
import type { SandboxEnd } from "../ending/sandbox-end.ts";
import { narrowed } from "../permissions/narrowing.ts";
import type { Parts } from "../shared/parts.ts";
import type { Registry } from "../shared/registry.ts";
import { isFinal, requireLive } from "../shared/state.ts";

type SnapshotParts = Pick<Parts, "store" | "backends" | "live" | "user" | "reserve" | "reach">;

export class Snapshots {
  readonly #parts: SnapshotParts;
  readonly #registry: Registry;
  readonly #creation: Creation;
  readonly #sandboxStart: SandboxStart;
  readonly #sandboxEnd: SandboxEnd;

  constructor(parts: SnapshotParts, registry: Registry, creation: Creation, sandboxStart: SandboxStart, sandboxEnd: SandboxEnd) {
    this.#parts = parts;
    this.#registry = registry;
    this.#creation = creation;
    this.#sandboxStart = sandboxStart;
    this.#sandboxEnd = sandboxEnd;
  }

  /** Snapshots cost the pool and every list of them; without a bound a loop makes them without end. */
  async refuseBeyondMost(row: SandboxRow): Promise<void> {
    const count = await this.#parts.store.snapshots.count({ sandbox: row.id });
    if (count < LIMITS.maxSnapshots) return;
    throw new VivError("no_capacity", `Sandbox ${row.name} has ${count} snapshots, and ${LIMITS.maxSnapshots} are the most.`, {
      remedy: `Remove some with \`viv snapshots --remove SNAPSHOT ${row.name}\`.`,
    });
  }

  /** Called with the sandbox's lock held. */
  async take(row: SandboxRow, options: { name?: string | undefined; expiresAt?: string | null }): Promise<Snapshot> {
    const { store, reach } = this.#parts;
    const { snapshots } = this.#parts.backends.of(row).storage;
    const existing = await store.snapshots.list({ sandbox: row.id });
    if (options.name !== undefined && existing.some((snapshot) => snapshot.name === options.name)) {
      throw new VivError("name_taken", `Sandbox ${row.name} has a snapshot called ${options.name} already.`, {
        remedy: `Choose another name, or remove that one: \`viv snapshots --remove ${options.name} ${row.name}\`.`,
      });
    }
    const id = newId("snapshot");
    const { frozenMs } = await this.#freezeAround(row, () => snapshots.take(row.id, id));
    reach("snapshot.volume");
    const snapshot = {
      id,
      name: options.name ?? null,
      sandbox: row.id,
      parent: row.currentSnapshot,
      current: true,
      createdAt: new Date().toISOString(),
      expiresAt: options.expiresAt ?? null,
      frozenMs,
    };
    try {
      const seal = await snapshots.seal(id);
      await store.change(async (change) => {
        const now = (await change.sandboxes.get(row.id)) ?? row;
        await change.snapshots.put({ ...snapshot, seal, refreshedTo: now.refreshedTo });
        await change.sandboxes.put({ ...now, currentSnapshot: id });
        await change.event("snapshot.created", row.id, { id, name: snapshot.name, frozenMs });
      });
    } catch (error) {
      // Without a row no caller could find it, and the sandbox would be charged for it.
      await snapshots.remove(id);
      throw error;
    }
    return snapshot;
  }

  async list(row: SandboxRow): Promise<Snapshot[]> {
    const snapshots = await this.#parts.store.snapshots.list({ sandbox: row.id });
    // The schema drops what is the server's own.
    return snapshots.map((snapshot) => Snapshot.parse({ ...snapshot, current: snapshot.id === row.currentSnapshot }));
  }

  async find(row: SandboxRow, reference: string): Promise<Snapshot> {
    const found = (await this.list(row)).find((snapshot) => snapshot.id === reference || snapshot.name === reference);
    if (found !== undefined) return found;
    throw new VivError("not_found", `Sandbox ${row.name} has no snapshot ${reference}.`, {
      remedy: `Look at \`viv snapshots ${row.name}\`.`,
    });
  }

  /** Finds a snapshot and checks that it can be restored, before anything is given up for it. */
  async findWhole(row: SandboxRow, reference: string): Promise<Snapshot> {
    const { store, backends } = this.#parts;
    const snapshot = await this.find(row, reference);
    const seal = (await store.snapshots.get(snapshot.id))?.seal;
    try {
      await backends.of(row).storage.snapshots.verify(snapshot.id, seal);
    } catch (error) {
      const isDamaged = error instanceof VivError && error.code === "snapshot_damaged";
      const reason = errorText(error);
      if (isDamaged) await store.change((change) => change.event("snapshot.damaged", row.id, { id: snapshot.id, reason }));
      throw error;
    }
    return snapshot;
  }

  async remove(row: SandboxRow, reference: string): Promise<void> {
    await this.#parts.reserve.during(() => this.#remove(row, reference));
  }

  async #remove(row: SandboxRow, reference: string): Promise<void> {
    const snapshot = await this.find(row, reference);
    const unused = await this.#parts.store.change(async (change) => {
      const bases = basesOf((await change.snapshots.get(snapshot.id)) ?? {});
      const children = (await change.snapshots.list({ sandbox: row.id })).filter((other) => other.parent === snapshot.id);
      for (const child of children) await change.snapshots.put({ ...child, parent: snapshot.parent });
      const now = await change.sandboxes.get(row.id);
      if (now?.currentSnapshot === snapshot.id) await change.sandboxes.put({ ...now, currentSnapshot: snapshot.parent });
      await change.snapshots.remove(snapshot.id);
      await change.event("snapshot.removed", row.id, { id: snapshot.id });
      return dropUnused(change, this.#registry, bases);
    });
    const { storage, capture } = this.#parts.backends.of(row);
    await storage.snapshots.remove(snapshot.id);
    for (const base of unused) await capture.forget(base);
  }

  /** Called with the sandbox's lock held. Processes end; the volume is the snapshot's; a new process 1 starts, and the services with it. */
  async rollback(row: SandboxRow, reference: string): Promise<SandboxRow> {
    requireLive(row);
    const snapshot = await this.findWhole(row, reference);
    await this.#parts.store.change((change) => change.sandboxes.put({ ...row, restoring: snapshot.id }));
    this.#parts.reach("rollback.begun");
    try {
      const back = await this.finishRollback({ ...row, restoring: snapshot.id }, snapshot.id);
      await back.services;
      return back.row;
    } catch (error) {
      // Its processes have ended by now: it must not go on being called running.
      const reason = `It could not be rolled back (${errorText(error)}); its files and snapshots are kept and can be forked.`;
      // The row may tell of the snapshot by now, and then the base of the row before is gone.
      const now = (await this.#parts.store.sandboxes.get(row.id)) ?? row;
      await this.#sandboxEnd.fail({ ...now, restoring: null }, { outcome: "failed", reason });
      throw error;
    }
  }

  /** From any point of a rollback to its end; also of a start, for which there is neither a process nor, mostly, a volume. */
  async finishRollback(before: SandboxRow, snapshot: string): Promise<StartedSandbox> {
    const row = await narrowed(this.#parts, before);
    const { store, live, reach } = this.#parts;
    const { storage } = this.#parts.backends.of(row);
    const running = live.get(row.id);
    const ended = this.#sandboxEnd.endProcesses(row, 0, "cancelled").then(() => reach("rollback.stopped"));
    ended.catch(() => undefined);
    const restored = storage.snapshots.restore(row.id, snapshot, ended).then(() => reach("rollback.volume"));
    restored.catch(() => undefined);
    try {
      await ended;
      const base = await openBase(store, row, row.base);
      const volume = async (): Promise<VolumePaths> => {
        await restored;
        return storage.disks.paths(row.id);
      };
      const record = (processes: Processes): Promise<SandboxRow> => this.#recordRestored({ ...row, ...processes }, snapshot);
      return await this.#sandboxStart.start({ row, on: { base, volume }, before: running, record });
    } finally {
      // A rollback that can't be is told when nothing of it is under way.
      await restored.catch(() => undefined);
    }
  }

  async #recordRestored(row: SandboxRow, snapshot: string): Promise<SandboxRow> {
    const { store, backends } = this.#parts;
    const refreshedTo = (await store.snapshots.get(snapshot))?.refreshedTo;
    const back: SandboxRow = { ...row, refreshedTo, restoring: null, currentSnapshot: snapshot, reason: null };
    const unused = await store.change(async (change) => {
      await change.sandboxes.put(back);
      await change.event("snapshot.restored", row.id, { id: snapshot });
      return dropUnused(change, this.#registry, basesOf(row));
    });
    for (const id of unused) await backends.of(row).capture.forget(id);
    return back;
  }

  /** New sandboxes from a snapshot, or from the state as it is now. Called with the sandbox's lock held. */
  async fork(row: SandboxRow, reference: string | undefined, count: number, names: readonly string[]): Promise<StartedSandbox[]> {
    if (names.length > count) throw new VivError("invalid_input", `${names.length} names for ${count} sandboxes.`);
    if (reference === undefined && isFinal(row.state)) return this.#forkEnded(row, count, names);
    if (reference !== undefined) return this.#forkFrom(row, (await this.findWhole(row, reference)).id, count, names);
    return this.#forkNow(row, count, names);
  }

  /** One is copied as it is; several through a snapshot that only lives as long as this takes, so that processes stand still once. */
  async #forkNow(row: SandboxRow, count: number, names: readonly string[]): Promise<StartedSandbox[]> {
    const still: StandingStill = (work) => this.#freezeAround(row, work).then(({ result }) => result);
    if (count === 1) return [await this.#creation.forkNow(row, still, names[0])];
    const { snapshots } = this.#parts.backends.of(row).storage;
    const passing = newId("snapshot");
    await this.#freezeAround(row, () => snapshots.take(row.id, passing));
    try {
      return await this.#forkFrom(row, passing, count, names);
    } finally {
      await snapshots.remove(passing);
    }
  }

  /** A stopped sandbox goes on from its last snapshot, a failed one from the volume it left. */
  async #forkEnded(row: SandboxRow, count: number, names: readonly string[]): Promise<StartedSandbox[]> {
    if (row.currentSnapshot === null || row.state === "failed") return this.#forkNow(row, count, names);
    return this.#forkFrom(row, (await this.findWhole(row, row.currentSnapshot)).id, count, names);
  }

  async #forkFrom(row: SandboxRow, snapshot: string, count: number, names: readonly string[]): Promise<StartedSandbox[]> {
    const results = await Promise.allSettled(
      Array.from({ length: count }, (_, index) => this.#creation.fork(row, snapshot, { name: names[index] })),
    );
    const made = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    const failure = results.find((result) => result.status === "rejected");
    if (failure === undefined) return made;
    // All or none: a caller that asked for ten has no use for seven and an error.
    for (const { row: fork } of made) await this.#sandboxEnd.remove(fork);
    throw failure.reason;
  }

  /** Runs `work` while the processes stand still, and tells for how many milliseconds they did. */
  async #freezeAround<T>(row: SandboxRow, work: () => Promise<T>): Promise<{ readonly result: T; readonly frozenMs: number }> {
    const live = this.#parts.live.get(row.id);
    if (live === undefined || row.state !== "running" || !live.driver.capabilities.pause) return { result: await work(), frozenMs: 0 };
    // Much of it is written back first: the time of a snapshot follows what is still unwritten, and processes inside would wait for it.
    if (live.walls.hasMuchUnwritten()) await this.#parts.backends.of(row).storage.disks.writeBack(row.id);
    const began = performance.now();
    await live.walls.freeze();
    let result: T;
    try {
      this.#parts.reach("snapshot.frozen");
      result = await work();
    } finally {
      await live.walls.thaw();
    }
    return { result, frozenMs: performance.now() - began };
  }
}
