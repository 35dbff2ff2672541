/** Promotions that wait for a person's answer, and how they end without an approval. */
import type { Change } from "../../base/store/store.ts";
import type { PromotionRow } from "../../base/store/rows.ts";

/** As a whole, or for the approval of a later stage. */
export function isWaiting({ state, stages }: Pick<PromotionRow, "state" | "stages">): boolean {
  return state === "waiting" || (state === "applied" && stages.some((stage) => stage.state === "waiting"));
}

/** Ends a promotion that waits: changes already in the folder stay, and no further stage runs. */
export async function discard(change: Change, row: PromotionRow, why: string): Promise<PromotionRow> {
  const endedAt = new Date().toISOString();
  const isApplied = row.state === "applied";
  const stage = row.stages.find(({ state }) => state === "waiting");
  const reason = `${why}; ${isApplied ? `stage ${stage?.name ?? ""} was not carried out, what came before stands.` : "nothing was applied."}`;
  const stages = row.stages.map((one) => (one.state === "waiting" ? { ...one, state: "failed" as const, reason, endedAt } : one));
  const ended: PromotionRow = { ...row, stages, reason, endedAt, state: isApplied ? "applied" : "discarded" };
  await change.promotions.put(ended);
  const { id: promotion, project, sandbox } = row;
  await change.event("promotion.discarded", sandbox, { promotion, project, reason });
  await change.event("approval.answered", sandbox, { approval: promotion, state: "denied", scope: null });
  return ended;
}

/** Those that need the files of a sandbox that goes. */
export async function discardWith(change: Change, sandbox: string): Promise<PromotionRow[]> {
  const rows = (await change.promotions.list({ open: true })).filter(
    (row) => row.sandbox === sandbox && row.state === "waiting" && !row.writing,
  );
  const ended: PromotionRow[] = [];
  for (const row of rows) ended.push(await discard(change, row, "Its sandbox was removed"));
  return ended;
}
