/** What a request asks for and a driver can't hold is refused rather than promised. */
import type { CreateInput } from "../../base/schema/contracts.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { Backend } from "../../machine/backends.ts";

/** Without walls every file of reality can be written to. */
export function refuseUnheldSystem({ readOnly, empty }: CreateInput, { driver }: Backend): void {
  if ((readOnly !== true && empty !== true) || driver.capabilities.walled) return;
  throw new VivError("unsupported", "A read-only system needs walls, which this machine does not have.");
}

/** Which limits a driver can't hold: a watcher bounds memory, rlimits bound processes, but nothing bounds CPU. */
const UNHELD = { hard: [], watched: ["cpus"], none: ["cpus", "memoryBytes", "diskBytes", "processes"] } as const;

/** An explicit limit that can't be held is refused rather than promised. */
export function refuseUnheldLimits(input: CreateInput, { driver }: Backend): void {
  const unheld = UNHELD[driver.capabilities.limits].find((name) => input.limits?.[name] !== undefined);
  if (unheld === undefined) return;
  throw new VivError("limit_unsupported", `The limit ${unheld} can't be held by the driver ${driver.name} on this machine.`);
}
