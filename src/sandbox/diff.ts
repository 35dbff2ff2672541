/** Which folders are compared to tell what a sandbox changed. */
import { VivError } from "../schema/errors.ts";
import type { SandboxRow } from "../store/store.ts";
import type { Sides } from "../volumes/volumes.ts";
import { comparedBase } from "./bases.ts";
import type { Backend } from "./parts.ts";

const PROJECT_SLOT = 0;

export async function sidesOf(backend: Backend, row: SandboxRow, what: "project" | "system" = "project"): Promise<Sides> {
  // Of a stopped sandbox only its last snapshot is left.
  if (row.state === "completed" && row.currentSnapshot === null) throw new VivError("not_found", `Nothing is kept of ${row.name}.`);
  const of = row.state === "completed" && row.currentSnapshot !== null ? { snapshot: row.currentSnapshot } : { volume: row.id };
  return backend.volumes.sides(of, comparedBase(row), what === "system" ? "system" : PROJECT_SLOT);
}
