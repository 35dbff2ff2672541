/** What a promotion would do: a frozen change, merged with today's reality, looked through, and given a hash. */
import { createHash } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { keptInChange } from "../checks/protection.ts";
import { changesBetween, type ChangeSet } from "../../machine/merge/change-set.ts";
import { writeContents } from "../../machine/merge/contents.ts";
import type { GatheredContents } from "../../machine/merge/gathered-contents.ts";
import type { Conflict } from "../../machine/merge/merge.ts";
import { asMerged, type LeftOut } from "../../machine/merge/promotable.ts";
import { GitStore } from "../../machine/merge/store.ts";
import { mergeSides, type MergedChange, type ThreeWay } from "../../machine/merge/three-way.ts";
import { comparedBase } from "../../sandbox/projects/bases.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import { openProject } from "../../sandbox/projects/projects.ts";
import { gatheredPromotableOf } from "../../sandbox/changes/promotable-of.ts";
import type { Registry } from "../../sandbox/shared/registry.ts";
import { repositoryState } from "../../sandbox/changes/commit-reader.ts";
import { withFreshBase } from "../../sandbox/projects/fresh-base.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { decodePath } from "../../base/schema/path-bytes.ts";
import type { PlanConflict, PlannedChange, PromotionPlan, Risk } from "../../base/schema/promotion.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { sinceEarlierPromotion } from "./earlier-promotions.ts";
import type { Records } from "./record.ts";
import { findRisks } from "./risk.ts";
import { withoutProtected } from "./unprotected.ts";

/** A state of a sandbox, frozen, and what of it is meant. */
export interface Source {
  readonly row: SandboxRow;
  readonly snapshot: string;
  readonly include: readonly string[];
  readonly only?: readonly string[] | undefined;
  /** Of a winner: files that the experiment protected, null for tests and what configures them. */
  readonly protect?: readonly string[] | null;
  /** What it is merged with: today's reality, or nothing, for a branch on the commit that the clone saw. */
  readonly onto: "reality" | "base";
  /** Whether commits made inside are replayed, too. */
  readonly keepsCommits?: boolean;
}

export interface PreparedPlan {
  readonly plan: PromotionPlan;
  /** What must change in reality. */
  readonly changes: readonly MergedChange[];
  /** What the sandbox changed since its base, without what moved in reality. */
  readonly own: readonly MergedChange[];
  /** Folder with every content named by the changes. */
  readonly contents: string;
}

/** What planning works with. */
interface PlanParts {
  readonly parts: Pick<Parts, "store" | "backends" | "user" | "state" | "log" | "locks">;
  readonly registry: Registry;
  readonly records: Records;
  readonly temporary: string;
}

/** `folder` is an empty one of ours; contents come to lie in it. */
export async function prepare(all: PlanParts, source: Source, folder: string): Promise<PreparedPlan> {
  const { parts, registry, records, temporary } = all;
  const { row } = source;
  const store = await GitStore.open(temporary, parts.backends.of(row));
  try {
    const { protect } = source;
    const protects = protect === undefined ? undefined : keptInChange(protect);
    const whole = await gatheredPromotableOf(parts, row, source.snapshot, store, { ...source, protects });
    if (protect !== undefined) await whole.contents.store(store);
    const { changes, leftOut, privileged } = protect === undefined ? whole : await withoutProtected(store, whole, protect);
    const { own, reality } =
      source.onto === "base"
        ? { own: changes, reality: NOTHING }
        : await sinceEarlierPromotion(
            { store: parts.store, records, git: store },
            source,
            { own: changes, reality: await movedSince(parts, registry, row, store) },
            leftOut,
          );
    const moved = reality.changes.size;
    if (moved > 0) await whole.contents.store(store);
    const merged: ThreeWay =
      moved === 0
        ? { changes: asMerged(own), conflicts: [] }
        : await mergeSides(store, { label: "reality", changes: reality }, { label: "sandbox", changes: own });
    const view = await openProject(parts.store, row.project, parts.state);
    const contents = join(folder, "contents");
    await mkdir(contents, { mode: 0o700 });
    const mine = asMerged(own);
    await keepContents(store, whole.contents, idsOf([...merged.changes, ...mine]), contents);
    const found = await findRisks(merged.changes, contents, row.project, view.runs.names);
    const { moved: committed, submodules } = await repositoryState(parts, row, source.snapshot, temporary);
    const risks = [...found, ...privileged.map(privilegedRisk), ...submodules.map(submoduleRisk), ...leftOut.flatMap(leftOutRisk)];
    const notes = committed && source.keepsCommits !== true ? [COMMITS_STAY] : [];
    return { plan: describePlan(merged, moved, risks, leftOut, notes), changes: merged.changes, own: mine, contents };
  } finally {
    store.discard();
  }
}

const NOTHING: ChangeSet = { changes: new Map(), kept: [] };

async function movedSince(parts: PlanParts["parts"], registry: Registry, row: SandboxRow, store: GitStore): Promise<ChangeSet> {
  const backend = parts.backends.of(row);
  const view = await openProject(parts.store, row.project, parts.state);
  return withFreshBase(parts, registry, view, backend, async (today) =>
    changesBetween(backend.gather, store, await backend.storage.comparison.between(comparedBase(row), today.id)),
  );
}

/** Where a merge or an earlier promotion brought in others, git has all of them. */
async function keepContents(store: GitStore, gathered: GatheredContents, ids: readonly string[], folder: string): Promise<void> {
  if (ids.every((id) => gathered.has(id))) return gathered.moveTo(folder);
  await gathered.store(store);
  await writeContents(store, ids, folder);
}

function idsOf(changes: readonly MergedChange[]): string[] {
  return changes.flatMap(({ old, new: now }) => [old, now].flatMap((side) => (side === null ? [] : [side.id])));
}

function describePlan(merged: ThreeWay, moved: number, risks: Risk[], leftOut: readonly LeftOut[], notes: string[]): PromotionPlan {
  const changes = merged.changes.map(describeChange).toSorted((one, other) => (one.path < other.path ? -1 : 1));
  return {
    hash: hashOf(merged.changes),
    changes: changes.slice(0, LIMITS.listedChanges),
    files: changes.length,
    moved: moved > 0,
    movedPaths: moved,
    conflicts: merged.conflicts.map(describeConflict),
    risks,
    leftOut: leftOut.slice(0, LIMITS.listedLeftOut).map(({ path, why }) => ({ path: decodePath(path), why })),
    notes,
  };
}

/** The same hash is the same bytes at the same paths, over the same bytes. */
export function hashOf(changes: readonly MergedChange[]): string {
  const lines = changes.map(({ path, old, new: now }) => {
    const side = (file: MergedChange["old"]): string => (file === null ? "-" : `${file.mode} ${file.id}`);
    return `${path.toString("latin1")}\0${side(old)}\0${side(now)}\n`;
  });
  return createHash("sha256").update(lines.toSorted().join(""), "latin1").digest("hex");
}

export function describeChange({ path, old, new: now }: MergedChange): PlannedChange {
  return {
    path: decodePath(path),
    status: old === null ? "added" : now === null ? "deleted" : "changed",
    oldMode: old?.mode ?? null,
    newMode: now?.mode ?? null,
    hash: now?.id ?? null,
  };
}

export function describeConflict({ kind, paths, message }: Conflict): PlanConflict {
  return { path: decodePath(paths[0] ?? Buffer.alloc(0)), kind, message };
}

const COMMITS_STAY = "Commits made inside are not carried: the files are. `--branch --keep-commits` replays them.";

function submoduleRisk(path: string): Risk {
  return { path, kind: "submodule", why: "The submodule is on another commit inside; its files are promoted, the commit is not." };
}

function privilegedRisk(path: Buffer): Risk {
  return { path: decodePath(path), kind: "setuid", why: "It is setuid or setgid inside; it is promoted without that." };
}

/** Paths that are left out do no harm, but the person should know that the sandbox made them. */
function leftOutRisk({ path, why }: LeftOut): Risk[] {
  const kinds = {
    special: "It is no file, folder or link; it is not promoted.",
    git: "Its name imitates git's own folder; it is not promoted.",
  };
  return why === "special" || why === "git" ? [{ path: decodePath(path), kind: why, why: kinds[why] }] : [];
}
