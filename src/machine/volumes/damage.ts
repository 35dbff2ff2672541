/** Snapshots that are not what they were when they were made. */
import { VivError } from "../../base/schema/errors.ts";

export function damaged(snapshot: string, how: string, cause?: unknown): VivError {
  return new VivError("snapshot_damaged", `The snapshot ${snapshot} can't be restored: ${how}.`, { cause });
}
