/** What changed in the project since the base: names, and line counts where asked. */
import type { DiffEntry } from "../schema/files.ts";
import type { SandboxRow } from "../store/store.ts";
import type { Parts } from "./parts.ts";

export async function diffSandbox(parts: Parts, row: SandboxRow, stat: boolean): Promise<DiffEntry[]> {
  const base = await parts.store.base(row.base);
  if (base === undefined) return [];
  return parts.volumes.diff(row.id, base, stat);
}
