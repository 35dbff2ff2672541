// Made from the contracts by scripts/sdk-types.ts.
import type { Snapshot } from "./snapshots.ts";

/** Input of: Freeze the state of a sandbox. */
export interface CreateSnapshotInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** A name: lower-case letters, digits and hyphens. */
  name?: string | undefined;
}

/** Input of: Snapshots as a tree. */
export interface ListSnapshotsInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Answer of: Snapshots as a tree. */
export interface ListSnapshotsOutput {
  snapshots: Snapshot[];
}

/** Input of: Remove a snapshot. */
export interface RemoveSnapshotInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Id or name of a snapshot. */
  snapshot: string;
}

/** Input of: Bring back the state of a snapshot; processes end. */
export interface RollbackInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Id or name of a snapshot. */
  snapshot: string;
}
