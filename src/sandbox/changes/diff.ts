/** Which folders are compared to tell what a sandbox changed. */
import { VivError } from "../../base/schema/errors.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { FolderSides, SystemPart, VolumeOrSnapshot } from "../../machine/volumes/comparison.ts";
import { comparedBase } from "../projects/bases.ts";
import type { Backend } from "../../machine/backends.ts";

export async function sidesOf(backend: Backend, row: SandboxRow): Promise<FolderSides> {
  return backend.storage.comparison.sides(keptOf(row), comparedBase(row));
}

/** What is compared for the rest of the system. */
export function systemOf(backend: Backend, row: SandboxRow): SystemPart[] {
  return backend.storage.comparison.system(keptOf(row));
}

/** Of a stopped sandbox only its last snapshot is left. */
function keptOf(row: SandboxRow): VolumeOrSnapshot {
  if (row.state !== "completed") return { volume: row.id };
  if (row.currentSnapshot === null) throw new VivError("not_found", `Nothing is kept of ${row.name}.`);
  return { snapshot: row.currentSnapshot };
}
