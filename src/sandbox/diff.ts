/** What changed in the project since the base: names, and line counts where asked. */
import { VivError } from "../schema/errors.ts";
import type { Diff } from "../schema/files.ts";
import type { SandboxRow } from "../store/store.ts";
import type { Backend } from "./parts.ts";

const PROJECT_SLOT = 0;

export async function diffSandbox(backend: Backend, row: SandboxRow, lines: boolean): Promise<Diff> {
  // Of a stopped sandbox only its last snapshot is left.
  if (row.state === "completed" && row.currentSnapshot === null) throw new VivError("not_found", `Nothing is kept of ${row.name}.`);
  const of = row.state === "completed" && row.currentSnapshot !== null ? { snapshot: row.currentSnapshot } : { volume: row.id };
  return backend.diff(await backend.volumes.sides(of, row.base, PROJECT_SLOT), lines);
}
