/** Whose rows an operation looks for. */
import { isSandboxId } from "../../base/schema/ids.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";

/** The id of a sandbox, which may have been removed: what is kept about it is still there under its id. */
export async function subjectId(sandboxes: Sandboxes, reference: string): Promise<string> {
  return isSandboxId(reference) ? reference : (await sandboxes.find(reference)).id;
}
