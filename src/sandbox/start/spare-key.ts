/** Which sandboxes can have the same launch. */
import { idsOfUser } from "../../machine/capture/large-ids.ts";
import type { Limits } from "../../base/schema/sandbox.ts";
import type { LaunchSettings } from "./sandbox-start.ts";

export function keyOf({ driver, project, base, user, home, masked, exposed, sudo, readOnly, sealed, limits }: LaunchSettings): string {
  const ordered: Limits = { cpus: limits.cpus, memoryBytes: limits.memoryBytes, diskBytes: limits.diskBytes, processes: limits.processes };
  // Users whose ids every sandbox has share their spares.
  return JSON.stringify({ driver, project, base, ids: idsOfUser(user), home, masked, exposed, sudo, readOnly, sealed, limits: ordered });
}
