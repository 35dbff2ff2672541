/**
 * Frozen views of projects. A project has one tip, which capture changes until it looks like reality; freezing makes a
 * base of it, which never changes again.
 *
 * The caller opens, changes and freezes one project's tip at a time. A crash leaves the tip as it is, and capture goes on
 * from there or asks for a fresh one; a base is complete or absent.
 */

/** Where capture writes what changed in reality. */
export interface Tip {
  /** Folder that holds roots/<n>. */
  readonly folder: string;
  /** tip: a full copy changed in place. layer: a new folder that gets only changes. */
  readonly mode: "tip" | "layer";
  /** Prefix of manifest files; capture appends the root's number. */
  readonly manifests: string;
  /**
   * Given where files of the tip may be changed in place: prefix of the markers of syncs, to which capture appends the root's number. They
   * lie outside of what is frozen.
   */
  readonly markers?: string;
}

/** A volume that was brought to what the tip is now, before any program ran in it. */
export interface BroughtVolume {
  readonly volume: string;
  /** The base that it was made from. */
  readonly from: string;
}

/**
 * Bases that are frozen behind the answer to a create, because a freeze waits for the disk. Whatever asks for such a base, and openTip() of
 * its project, waits for it. After a kill of the server the next one freezes it. After a failure of the machine it may be lost, and so may
 * be what was brought into the volume.
 */
export interface LaterBases {
  /** As freeze(), for a base that only the volume stands on. */
  freeze(project: string, base: string, brought: BroughtVolume): Promise<void>;
  /** Whether a base is there, or will be. */
  knows(base: string): boolean;
  /** Whether the files of a volume may be neither those of its base nor what a sandbox made of them. */
  hasLost(volume: string): boolean;
}

export interface Bases {
  /** The project's tip, made if it is not there. `fresh` throws the old one away first. Refused as `disk_full` on a full disk. */
  openTip(project: string, fresh: boolean): Promise<Tip>;
  /** Freezes the tip as it is now into a base. */
  freeze(project: string, base: string): Promise<void>;
  /** Absent where a freeze is quick, and where files can't be brought into a volume that is mounted. */
  readonly later?: LaterBases;
  /** Prefix of the manifests a base was frozen with; the root's number is appended. */
  manifests(base: string): Promise<string>;
  /**
   * Removes a base; at once for the caller, in the background for the disk. Absent is fine. The caller knows that no
   * sandbox and no snapshot is compared with it; what other volumes need of its content stays until they are gone.
   */
  remove(base: string): Promise<void>;
}
