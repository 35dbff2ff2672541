/**
 * Frozen copies of volumes, to go back to and to fork from (Disks.create). They are charged to the volume they were taken
 * of, and outlive it.
 *
 * The caller has written back and frozen the processes before take(), and ends them for restore(). Both are complete
 * or not done after a crash; a restore that was cut short in the middle is finished by the next reconcile().
 */

export interface Snapshots {
  /** A frozen copy of the volume as it is now. */
  take(volume: string, snapshot: string): Promise<void>;
  /** What tells a snapshot as it is now from anything else. Kept by the caller, and given back to verify(). */
  seal(snapshot: string): Promise<string>;
  /** Throws `snapshot_damaged` when a snapshot is gone, or is not what was sealed; without a seal, as far as can be checked. */
  verify(snapshot: string, seal: string | undefined): Promise<void>;
  /**
   * Replaces the volume's content by the snapshot's, or brings back one that was removed. The copy is made while processes may still run;
   * it is put in place once `ended` has resolved, from when nothing may be mounted from the volume.
   */
  restore(volume: string, snapshot: string, ended?: Promise<unknown>): Promise<void>;
  /** Removes a snapshot; at once for the caller, in the background for the disk. Absent is fine; forks of it stay. */
  remove(snapshot: string): Promise<void>;
}
