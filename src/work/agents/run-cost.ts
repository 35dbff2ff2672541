/** What a run has cost. */
import type { RunRow } from "../../base/store/rows.ts";
import type { Store } from "../../base/store/store.ts";

/** Of a dollar. */
const MICRO = 1_000_000;

/** Dollars that a run spent on models, together with the agents that it asked: they share its budget. */
export async function spentBy(store: Pick<Store, "runs" | "usage">, row: RunRow): Promise<number> {
  const { id, sandbox, experiment, with: companions = [] } = row;
  const asked = companions.length === 0 ? [] : await store.runs.list({ experiment: experiment ?? "" });
  const sandboxes = [sandbox, ...asked.filter(({ askedBy }) => askedBy === id).map((each) => each.sandbox)];
  const sums = sandboxes.map(async (each) => (each === null ? 0 : store.usage.spent({ sandbox: each })));
  return (await Promise.all(sums)).reduce((sum, each) => sum + each, 0) / MICRO;
}
