// Made from the contracts by scripts/sdk-types.ts.

/** A frozen volume. */
export interface Snapshot {
  /** Id of a snapshot. */
  id: string;
  /** Its name, if it was given one. */
  name: string | null;
  /** Id of a sandbox. */
  sandbox: string;
  /** The snapshot before it in the tree. */
  parent: string | null;
  /** True for the one the sandbox's state descends from. */
  current: boolean;
  /** ISO time. */
  createdAt: string;
  /** ISO time after which it may be removed. */
  expiresAt: string | null;
  /** How long the processes stood still, in milliseconds. */
  frozenMs: number;
}
