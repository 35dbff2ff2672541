/**
 * Which folders to compare to tell what a sandbox changed. Nothing is read here: Gather does that, from the folders that
 * these calls name.
 *
 * The old sides are frozen and the server's own. The new side of a volume is hostile, and changes while it is read unless
 * the processes are frozen; that of a snapshot is hostile too, and stands still.
 */
import type { SharedList } from "./shared.ts";

/** The project, or a part of what lies outside of it, as it was and as it is; `new` is hostile and only native code looks into it. */
export interface FolderSides {
  /** Frozen folders, topmost first. */
  readonly old: readonly string[];
  readonly new: string;
  /** `new` is the upper folder of an overlay over `old`. */
  readonly overlay: boolean;
  /** Folders of `new` that reality's show through, and that are not compared: `new` is the upper folder of an overlay over them. */
  readonly shared?: SharedList;
  /** File that says what the volume of `new` was made from, where `old` is a later base of the same tip. */
  readonly origin?: string;
  /** If given, only this folder is compared; of an overlay alone. */
  readonly at?: string;
  /** Where `old` is not the base to compare with: that one's own folders, and the way from it to `old`. */
  readonly before?: { readonly base: readonly string[]; readonly way: BaseSteps };
}

/** The way from one base to another: steps that were gone forth and are to be turned round, then steps forth. */
export interface BaseSteps {
  readonly back: readonly FolderSides[];
  readonly forth: readonly FolderSides[];
}

/** A part of what lies outside the project: reality as it is now, and what the sandbox wrote over it. */
export interface SystemPart {
  readonly at: string;
  readonly sides: FolderSides;
}

/** A folder of reality that a sandbox writes its own changes over. */
export interface LiveSlot {
  readonly path: string;
  readonly slot: number;
}

export type VolumeOrSnapshot = { readonly volume: string } | { readonly snapshot: string };

export interface Comparison {
  /** What a volume or a snapshot of it changed in the project, since the base named. */
  sides(of: VolumeOrSnapshot, base: string): Promise<FolderSides>;
  /** The same for a folder of the project that is shared live; `unsupported` where a volume holds the project alone. */
  live(of: VolumeOrSnapshot, folder: LiveSlot): FolderSides;
  /** The same for everything outside the project; `unsupported` where a volume holds the project alone. */
  system(of: VolumeOrSnapshot): SystemPart[];
  /** What leads from one base of a project to another. */
  between(from: string, to: string): Promise<BaseSteps>;
}
