/**
 * Volumes: the disk of each sandbox, under the sandbox's id.
 *
 * A volume is complete or absent, whatever happens while it is made. Its content is the sandbox's to change from the
 * moment it is mounted, and hostile from then on: these calls move whole volumes and look into none.
 */

export interface VolumePaths {
  /** The volume's own folder; the same for the volume's whole life. */
  readonly folder: string;
  /** Frozen layers below roots, topmost first; empty where roots are direct. Each holds roots/<n>. */
  readonly layers: readonly string[];
}

/** Another volume is copied as it is; its processes stand still meanwhile. */
export type VolumeSource =
  | { readonly base: string; readonly project: string }
  | { readonly snapshot: string }
  | { readonly volume: string };

export interface Disks {
  /** A new volume from a base, a snapshot or another volume. Refused as `exists`, `not_found` or `disk_full`. */
  create(volume: string, source: VolumeSource, diskBytes: number): Promise<VolumePaths>;
  /** Where a volume is; `not_found` when it is gone. */
  paths(volume: string): Promise<VolumePaths>;
  /** Removes a volume; at once for the caller, in the background for the disk. Absent is fine. Its snapshots stay. */
  remove(volume: string): Promise<void>;
  /** Bytes of its own, snapshots included. Cheap where the quota is hard, else a walk. */
  usage(volume: string): Promise<number>;
  /** Writes back a volume's dirty data, so that a snapshot is quick. */
  writeBack(volume: string): Promise<void>;
}
