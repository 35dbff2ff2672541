/** The storage as a whole: its space, the errors of the disk below, and what crashes left in it. */

/** Ids of what is still needed. */
export interface VolumeKeep {
  readonly volumes: ReadonlySet<string>;
  readonly snapshots: ReadonlySet<string>;
  readonly bases: ReadonlySet<string>;
  readonly projects: ReadonlySet<string>;
}

/** Storage that an error of the disk below has stopped. */
export interface Repair {
  /** Whether it is stopped, and can be brought back now. */
  due(): boolean;
  /** Brings it back as it was before the error. Nothing may use it. */
  run(): Promise<void>;
}

export interface StorageHealth {
  /** Space of the storage, after growing it if that is possible and needed. */
  free(): Promise<{ totalBytes: number; freeBytes: number }>;
  /** How many errors of the disk below the storage has met, ever; undefined where it can't tell. */
  errors(): number | undefined;
  /** Absent where nothing can stop the storage. */
  readonly repair?: Repair;
  /**
   * Removes every volume, snapshot, base and tip that is not kept, and half-made ones; finishes a restore that was cut
   * short; says what it removed. What this process made itself is left to the remove() of its port, so that nothing is lost
   * that was made after `keep` was put together. What carries no id of ours stays.
   */
  reconcile(keep: VolumeKeep): Promise<string[]>;
}
