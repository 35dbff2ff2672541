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
}

export interface Bases {
  /** The project's tip, made if it is not there. `fresh` throws the old one away first. Refused as `disk_full` on a full disk. */
  openTip(project: string, fresh: boolean): Promise<Tip>;
  /** Freezes the tip as it is now into a base. */
  freeze(project: string, base: string): Promise<void>;
  /** Prefix of the manifests a base was frozen with; the root's number is appended. */
  manifests(base: string): string;
  /**
   * Removes a base; at once for the caller, in the background for the disk. Absent is fine. The caller knows that no
   * sandbox and no snapshot is compared with it; what other volumes need of its content stays until they are gone.
   */
  remove(base: string): Promise<void>;
}
