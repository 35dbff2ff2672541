/** The bases that sandboxes stand on and are compared with, and when one can go. */
import type { Base } from "../../base/store/rows.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { Change, Read } from "../../base/store/store.ts";
import type { SandboxRow, SnapshotRow } from "../../base/store/rows.ts";
import type { Storage } from "../../machine/volumes/volumes.ts";
import type { Registry } from "../shared/registry.ts";

/** The base that a sandbox's files are compared with. */
export function comparedBase(row: Pick<SandboxRow, "base" | "refreshedTo">): string {
  return row.refreshedTo ?? row.base;
}

export async function openBase(store: Read, row: SandboxRow, id: string): Promise<Base> {
  const base = await store.bases.get(id);
  if (base === undefined) throw new VivError("internal", `The base of ${row.name} is gone.`);
  return base;
}

/** Every base that a sandbox or a snapshot needs. */
export function basesInUse(rows: readonly SandboxRow[], snapshots: readonly SnapshotRow[]): Set<string> {
  return new Set([...rows.flatMap(basesOf), ...snapshots.flatMap(basesOf)]);
}

/** The bases of one sandbox or snapshot. */
export function basesOf(row: { readonly base?: string; readonly refreshedTo?: string | undefined }): string[] {
  return [row.base, row.refreshedTo].filter((base) => base !== undefined);
}

/**
 * Whether a sandbox began in the moment before its base was on the disk, and the machine failed in that moment: its files may be neither
 * those of the base nor what it made of them, so there is nothing to tell its changes by.
 */
export async function isLost(store: Read, { bases }: Pick<Storage, "bases">, row: Pick<SandboxRow, "id" | "base">): Promise<boolean> {
  if (bases.later === undefined) return false;
  return bases.later.hasLost(row.id) || (!bases.later.knows(row.base) && (await store.bases.get(row.base))?.later === true);
}

/** Whether a sandbox or a snapshot has it among its bases. */
async function isNeeded(store: Pick<Read, "sandboxes" | "snapshots">, id: string): Promise<boolean> {
  if ((await store.sandboxes.has({ base: id })) || (await store.sandboxes.has({ refreshedTo: id }))) return true;
  return store.snapshots.has({ refreshedTo: id });
}

/** Removes the rows of those bases that no row needs any more. The caller tells capture to forget them after the change. */
export async function dropUnused(change: Change, registry: Registry, candidates: readonly string[], own = 0): Promise<string[]> {
  const unused: string[] = [];
  for (const base of new Set(candidates)) {
    if (registry.uses(base, own) || (await isNeeded(change, base))) continue;
    await change.bases.remove(base);
    unused.push(base);
  }
  return unused;
}
