/** What a sandbox uses of what it may use. */
import { staleness } from "../../sandbox/changes/status.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { BudgetsConfig } from "../../base/schema/model.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { RunGateway } from "../../work/agents/run-gateway.ts";
import type { Answer, Call } from "./call.ts";

type StatusParts = Pick<Parts, "store" | "backends" | "user" | "state">;

const MICRO = 1_000_000;

export async function ownStatus(
  { parts, sandboxes, runs }: { readonly parts: StatusParts; readonly sandboxes: Sandboxes; readonly runs: RunGateway },
  { row }: Call<"readStatus">,
): Answer<"readStatus"> {
  const [detail, stale, spent, left, run] = await Promise.all([
    sandboxes.inspect(row.id),
    staleness(parts, row),
    parts.store.usage.spent({ sandbox: row.id }),
    whatIsLeft(parts, row),
    runs.find(row.id),
  ]);
  return {
    body: { ...detail, spent: spent / MICRO, left, staleness: { ...stale, changes: stale.changes.length }, run: run ?? null },
  };
}

async function whatIsLeft({ store, user }: StatusParts, row: SandboxRow): Promise<Record<keyof BudgetsConfig, number | null>> {
  const left = async (scope: keyof BudgetsConfig, value: string | undefined): Promise<number | null> => {
    const budget = user.budgets[scope];
    if (budget === undefined || value === undefined) return null;
    return Math.max(0, budget - (await store.usage.spent({ [scope]: value })) / MICRO);
  };
  return {
    sandbox: await left("sandbox", row.id),
    task: await left("task", row.labels["task"] ?? row.labels["experiment"]),
    project: await left("project", row.project),
    day: await left("day", new Date().toISOString().slice(0, 10)),
  };
}
