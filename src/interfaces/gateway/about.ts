/** What a sandbox is told about itself. */
import type { Parts } from "../../sandbox/shared/parts.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { Reviews } from "../../work/reviews/reviews.ts";
import type { Answer, Call } from "./call.ts";

export async function about(
  { store }: Pick<Parts, "store">,
  reviews: Pick<Reviews, "offered">,
  { row }: Call<"describeSelf">,
): Answer<"describeSelf"> {
  const { id, name, project, limits, createdAt, idleMs } = row;
  const others = (await store.sandboxes.list()).filter((other) => areSiblings(row, other));
  // One that works when it is asked is known by its role alone.
  const roles = reviews.offered(row.id).map((role) => ({ id: role, name: role }));
  const siblings = [...roles, ...others.map((other) => ({ id: other.id, name: other.name }))];
  return { body: { id, name, project, limits, createdAt, idleMs, siblings } };
}

/**
 * Sandboxes that may speak with each other. Attempts of experiments and the clones that judge them are siblings of no sandbox:
 * what they are compared by must be their own.
 */
export function areSiblings(one: SandboxRow, other: SandboxRow): boolean {
  return one.id !== other.id && one.project === other.project && [one, other].every((row) => row.walled && !row.removing && !isJudged(row));
}

function isJudged({ labels }: SandboxRow): boolean {
  return "experiment" in labels || labels["role"] === "verification";
}
