/**
 * What a sandbox brought into reality before is common to both: the next promotion or refresh of the same sandbox starts from
 * that, not from the base, or the sandbox's later edits would be in conflict with its own earlier ones.
 */
import type { ChangeSet, StoredChange } from "../../machine/merge/change-set.ts";
import type { StoredFile } from "../../machine/merge/merge.ts";
import { below, type LeftOut } from "../../machine/merge/promotable.ts";
import type { GitStore, TreeEntry } from "../../machine/merge/store.ts";
import type { MergedChange } from "../../machine/merge/three-way.ts";
import { comparedBase } from "../../sandbox/projects/bases.ts";
import type { TwoSides } from "../refresh/refresh.ts";
import type { Store } from "../../base/store/store.ts";
import { storeContents } from "./located-changes.ts";
import type { Source } from "./plan.ts";
import type { Records } from "./record.ts";

/** By path as latin1: what the base has, and what the sandbox had when it was promoted. */
type PromotedChanges = Map<string, MergedChange>;

type NextPromotion = Pick<Source, "row" | "snapshot" | "only" | "protect">;

interface Sources {
  readonly store: Store;
  readonly records: Records;
  readonly git: GitStore;
}

/** Both sides as changes since the last promotion, where a path was part of one. */
export async function sinceEarlierPromotion(
  all: Sources,
  source: NextPromotion,
  sides: TwoSides,
  leftOut: readonly LeftOut[],
): Promise<TwoSides> {
  const promoted = await promotedBefore(all, source);
  if (promoted.size === 0) return sides;
  const left = new Set(leftOut.map(({ path }) => path.toString("latin1")));
  const asked = source.only === undefined ? () => true : below(source.only);
  const isUnasked = (key: string): boolean => source.protect !== undefined || left.has(key) || !asked(key);
  return { own: rebased(sides.own, promoted, isUnasked), reality: rebased(sides.reality, promoted, () => false) };
}

/** Of promotions that stand, are newer than the base, and whose state this one comes from. */
async function promotedBefore({ store, records, git }: Sources, { row, snapshot }: NextPromotion): Promise<PromotedChanges> {
  const taken = (await store.bases.get(comparedBase(row)))?.takenAt ?? "";
  const before = await ancestors(store, row.id, snapshot);
  const earlier = (await store.promotions.list({ project: row.project })).filter(
    (one) => one.sandbox === row.id && one.kind === "promotion" && one.createdAt > taken && before.has(one.snapshot ?? ""),
  );
  const bases: PromotedChanges = new Map();
  const promoted: PromotedChanges = new Map();
  // The oldest first: it knows what the base has, also where it was undone.
  for (const { id, written, state } of earlier.toReversed()) {
    const recorded = written || state === "undone" ? await records.load(id) : undefined;
    if (recorded === undefined) continue;
    const ids = recorded.own.flatMap(({ old, new: now }) => [old, now].flatMap((side) => side?.id ?? []));
    await storeContents(git, [...new Set(ids)], recorded.contents);
    for (const change of recorded.own) {
      const key = change.path.toString("latin1");
      if (!bases.has(key)) bases.set(key, change);
      if (written) promoted.set(key, { ...change, old: bases.get(key)?.old ?? null });
    }
  }
  return promoted;
}

async function ancestors(store: Store, sandbox: string, snapshot: string): Promise<ReadonlySet<string>> {
  const parents = new Map((await store.snapshots.list({ sandbox })).map(({ id, parent }) => [id, parent]));
  const found = new Set<string>();
  for (let at: string | null = snapshot; at !== null && !found.has(at); at = parents.get(at) ?? null) found.add(at);
  return found;
}

function rebased(changes: ChangeSet, promoted: PromotedChanges, isUnasked: (key: string) => boolean): ChangeSet {
  const next = new Map(changes.changes);
  for (const [key, { path, old, new: then }] of promoted) {
    const change: StoredChange | undefined = next.get(key);
    const from = entry(path, then);
    const to = change === undefined ? entry(path, isUnasked(key) ? then : old) : change.new;
    if (from?.mode === to?.mode && from?.content === to?.content) next.delete(key);
    else next.set(key, { path, old: from, new: to });
  }
  return { ...changes, changes: next };
}

function entry(path: Buffer, file: StoredFile | null): TreeEntry | null {
  return file === null ? null : { path, mode: file.mode as TreeEntry["mode"], content: file.id };
}
