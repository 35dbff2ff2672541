/** Which driver a request gets. What it asks for and the driver can't hold is refused rather than promised. */
import type { CreateInput } from "../../base/schema/contracts.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { ProjectConfig } from "../../base/schema/config.ts";
import type { Backend, Backends } from "../../machine/backends.ts";

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

/** Walls, unless the caller or a trusted config accepts to go without. */
export function chooseBackend(backends: Backends, input: CreateInput, config: ProjectConfig): Backend {
  const walled = backends.walled();
  const accepted = input.unwalled === true && walled === undefined ? backends.unwalled() : undefined;
  const chosen = accepted ?? (config.driver === undefined ? walled : backends.find(config.driver));
  if (chosen === undefined) throw new VivError("no_walls", "This machine can't put walls around a sandbox.");
  return chosen;
}
