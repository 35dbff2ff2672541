/**
 * Brings today's reality into a sandbox (CLONE-6): what moved there is merged with what the sandbox changed, while its
 * processes go on. Its volume stays the one it was made with; only the base that it is compared with becomes another.
 */
import type { Base } from "../../base/store/rows.ts";
import { changesBetween, changeSetOf, gatherInto, type ChangeSet } from "../../machine/merge/change-set.ts";
import { writeContents } from "../../machine/merge/contents.ts";
import { GitStore } from "../../machine/merge/store.ts";
import { mergeSides, type MergedChange } from "../../machine/merge/three-way.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { RefreshConflict, RefreshReport } from "../../base/schema/files.ts";
import { decodePath } from "../../base/schema/path-bytes.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { applyInside, FOLDER } from "../../sandbox/files/apply-inside.ts";
import { basesOf, comparedBase, dropUnused, openBase } from "../../sandbox/projects/bases.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import type { Backend } from "../../machine/backends.ts";
import { openProject } from "../../sandbox/projects/projects.ts";
import { requireProject } from "../../sandbox/projects/workspaces.ts";
import { resolveMerge, settleLate } from "./conflicts.ts";
import type { Registry } from "../../sandbox/shared/registry.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import { requireLive } from "../../sandbox/shared/state.ts";
import { withFreshBase } from "../../sandbox/projects/fresh-base.ts";

type SandboxRefreshParts = Pick<Parts, "store" | "backends" | "user" | "state" | "log" | "locks" | "live" | "reach">;

const MOST_SHOWN = 1000;

/** A refresh under way. */
interface Work {
  readonly row: SandboxRow;
  readonly backend: Backend;
  readonly today: Base;
  /** What moved in reality. */
  readonly reality: ChangeSet;
  readonly store: GitStore;
}

/** What a sandbox changed and what reality did, since they were last the same. */
export interface TwoSides {
  readonly own: ChangeSet;
  readonly reality: ChangeSet;
}

/** Both sides from a later point on than the base, where they have one in common. */
export type CommonGround = (store: GitStore, row: SandboxRow, snapshot: string, sides: TwoSides) => Promise<TwoSides>;

/** What a refresh works with. */
export interface RefreshParts {
  readonly parts: SandboxRefreshParts;
  readonly registry: Registry;
  readonly sandboxes: Pick<Sandboxes, "find" | "locked" | "snapshots">;
  /** Promotions know what a sandbox brought into reality before. */
  readonly common: CommonGround;
  readonly temporary: string;
}

export class SandboxRefresh {
  readonly #parts: SandboxRefreshParts;
  readonly #registry: Registry;
  readonly #sandboxes: RefreshParts["sandboxes"];
  readonly #common: CommonGround;
  readonly #temporary: string;

  constructor({ parts, registry, sandboxes, common, temporary }: RefreshParts) {
    this.#parts = parts;
    this.#registry = registry;
    this.#sandboxes = sandboxes;
    this.#common = common;
    this.#temporary = temporary;
  }

  async refresh(reference: string): Promise<RefreshReport> {
    const row = await this.#sandboxes.find(reference);
    return this.#sandboxes.locked(row, (now) => this.#refresh(now));
  }

  async #refresh(row: SandboxRow): Promise<RefreshReport> {
    requireLive(row);
    requireProject(row, "refresh from");
    const backend = this.#parts.backends.of(row);
    const view = await openProject(this.#parts.store, row.project, this.#parts.state);
    return withFreshBase(this.#parts, this.#registry, view, backend, async (today) => {
      requireSameFolders(await openBase(this.#parts.store, row, row.base), today);
      const store = await GitStore.open(this.#temporary, backend);
      try {
        const way = await backend.storage.comparison.between(comparedBase(row), today.id);
        return await this.#onto({ row, backend, today, store, reality: await changesBetween(backend.gather, store, way) });
      } finally {
        await store.close();
      }
    });
  }

  async #onto(work: Work): Promise<RefreshReport> {
    const { row, today, reality } = work;
    const report = { id: row.id, name: row.name, takenAt: today.takenAt };
    if (reality.changes.size === 0 && (reality.folders?.size ?? 0) === 0) {
      if (today.id !== comparedBase(row)) await this.#finish(work, row, 0, 0);
      return { ...report, snapshot: null, changes: [], files: 0, conflicts: [] };
    }
    await this.#sandboxes.snapshots.refuseBeyondMost(row);
    const since = Date.now();
    const snapshot = await this.#sandboxes.snapshots.take(row, {});
    this.#parts.reach("refresh.snapshot");
    const { changes, conflicts } = await this.#merge(work, snapshot.id);
    const contents = await work.store.place("contents");
    await writeContents(work.store, idsOf(changes), contents);
    const left = await this.#bring(work, snapshot.id, [...changes, ...folderChanges(reality)], contents, since);
    const late = new Set(left.map(({ path }) => path));
    const brought = changes.filter(({ path }) => !late.has(decodePath(path)));
    return {
      ...report,
      snapshot: snapshot.id,
      changes: brought.slice(0, MOST_SHOWN).map(shownChange),
      files: brought.length,
      conflicts: [...conflicts.filter(({ path }) => !late.has(path)), ...left],
    };
  }

  /** Merges the frozen snapshot, so that processes inside can go on. */
  async #merge({ row, backend, store, reality }: Work, snapshot: string): ReturnType<typeof mergeSettled> {
    const sides = await backend.storage.comparison.sides({ snapshot }, comparedBase(row));
    const own = changeSetOf(await gatherInto(store, backend.gather, sides, "sandbox"));
    return mergeSettled(store, await this.#common(store, row, snapshot, { own, reality }));
  }

  /** From here on a crash ends in the snapshot, until everything is written. Says what was left alone. */
  async #bring(
    work: Work,
    snapshot: string,
    changes: readonly MergedChange[],
    contents: string,
    since: number,
  ): Promise<readonly RefreshConflict[]> {
    const { store, reach } = this.#parts;
    const before = (await store.sandboxes.get(work.row.id)) ?? work.row;
    await store.change((change) => change.sandboxes.put({ ...before, restoring: snapshot }));
    reach("refresh.begun");
    try {
      const late = settleLate(await this.#apply(work.row, changes, contents, since), work.reality);
      if (late.changes.length > 0) {
        const beside = await work.store.place("late");
        await writeContents(work.store, idsOf(late.changes), beside);
        await this.#apply(work.row, late.changes, beside);
      }
      reach("refresh.applied");
      await this.#finish(work, before, changes.length, late.conflicts.length);
      reach("refresh.done");
      return late.conflicts;
    } catch (error) {
      // A half-written merge is not left behind.
      await this.#sandboxes.snapshots.rollback(before, snapshot);
      throw error;
    }
  }

  async #apply(row: SandboxRow, changes: readonly MergedChange[], contents: string, since?: number): Promise<string[]> {
    const live = this.#parts.live.require(row);
    // New files get the owner of their folder: only root can write to all folders.
    const user = live.driver.capabilities.allUsers ? "0" : row.user;
    return applyInside(live.walls.files, row.project, user, changes, contents, since);
  }

  /** From now on its changes are compared with today's reality. */
  async #finish({ row, today, backend }: Work, now: SandboxRow, files: number, late: number): Promise<void> {
    const unused = await this.#parts.store.change(async (change) => {
      await change.bases.put(today);
      await change.sandboxes.put({ ...now, restoring: null, refreshedTo: today.id });
      await change.event("sandbox.refreshed", row.id, { name: row.name, files, late });
      return dropUnused(change, this.#registry, basesOf(row));
    });
    for (const base of unused) await backend.capture.forget(base);
  }
}

async function mergeSettled(store: GitStore, { own, reality }: TwoSides): Promise<ReturnType<typeof resolveMerge>> {
  return resolveMerge(await mergeSides(store, { label: "sandbox", changes: own }, { label: "reality", changes: reality }));
}

function idsOf(changes: readonly MergedChange[]): string[] {
  return changes.flatMap((change) => (change.new === null ? [] : [change.new.id]));
}

/** Folders that came and went in reality; the ones that are not empty come and go with their files. */
function folderChanges({ folders = new Map<string, boolean>() }: ChangeSet): MergedChange[] {
  const folder = { mode: FOLDER, id: "" };
  return [...folders].map(([key, came]) => ({
    path: Buffer.from(key, "latin1"),
    old: came ? null : folder,
    new: came ? folder : null,
  }));
}

function shownChange({ path, old, new: now }: MergedChange): RefreshReport["changes"][number] {
  return { path: decodePath(path), status: old === null ? "added" : now === null ? "deleted" : "changed" };
}

/** What is shared live or shown read-only is mounted when a sandbox is launched, and would look like deleted or new otherwise. */
function requireSameFolders(own: Base, today: Base): void {
  const shown = ({ roots, live, readOnly }: Base): string[] => [...[...roots, ...live].map(({ path }) => path), ...readOnly];
  const [before, now] = [new Set(shown(own)), new Set(shown(today))];
  const moved = [...[...before].filter((path) => !now.has(path)), ...[...now].filter((path) => !before.has(path))];
  if (moved.length === 0) return;
  throw new VivError(
    "unsupported",
    `What is shared with reality instead of being captured is not the same any more: ${moved.slice(0, 5).join(", ")}.`,
    {
      remedy: "Make a new sandbox, and bring the changes over with `viv diff --patch`.",
    },
  );
}
