/** Whether a change of files is the work of an automation's own promotion. */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { LIMITS } from "../../base/schema/limits.ts";
import type { FiringRow, PromotionRow } from "../../base/store/rows.ts";
import type { Store } from "../../base/store/store.ts";

const LOOKED_AT = 20;
/** Times of files are those of the kernel's last tick. */
const TICK_MS = 20;

/**
 * Automations whose promotions led to this change, the first one first; undefined where a person did it, or another program. A file
 * counts as written by a promotion if that wrote its path, and it was changed last while that was under way.
 */
export async function causesOf(store: Store, project: string, paths: readonly string[], now: number): Promise<string[] | undefined> {
  if (paths.length === 0) return undefined;
  const rows = await store.promotions.list({ project }, { limit: LOOKED_AT });
  const recent = rows.filter(({ createdAt, experiment }) => experiment !== null && Date.parse(createdAt) > now - LIMITS.ownChangeMs);
  for (const row of recent) {
    if (!(await wroteAll(row, paths))) continue;
    const firing = await firingOf(store, row);
    if (firing !== undefined) return [...(firing.causes ?? []), firing.automation];
  }
  return undefined;
}

async function wroteAll({ plan, project, createdAt, endedAt }: PromotionRow, paths: readonly string[]): Promise<boolean> {
  const written = new Set(plan?.changes.map(({ path }) => path));
  if (!paths.every((path) => written.has(path))) return false;
  const until = endedAt === null ? Infinity : Date.parse(endedAt);
  for (const path of paths) {
    const stats = await stat(join(project, path)).catch(() => undefined);
    if (stats !== undefined && (stats.ctimeMs < Date.parse(createdAt) - TICK_MS || stats.ctimeMs > until)) return false;
  }
  return true;
}

async function firingOf(store: Store, { experiment, project }: PromotionRow): Promise<FiringRow | undefined> {
  const rows = await store.firings.list({ project }, { limit: LIMITS.listedFirings });
  return rows.find((row) => row.experiment === experiment);
}
