/** Freezes the project as it is in reality into a base, at the cost of what changed since the last one. */
import type { Staleness } from "../../base/schema/files.ts";
import type { Base } from "../../base/store/rows.ts";

/** A folder with data of a service. */
export interface DataFolder {
  /** Absolute path in reality and inside. */
  readonly path: string;
  /** Folder whose content it has inside; the one of reality if left out. */
  readonly source?: string;
  /** What the user should know about it, a sentence. */
  readonly note?: string;
}

export interface CaptureRequest {
  /** Id of the project. */
  readonly project: string;
  /** Absolute, resolved path of the project. */
  readonly path: string;
  /** Project paths to leave out. */
  readonly exclude: readonly string[];
  /** Absolute paths that are hidden in every sandbox: not captured with a further folder either. */
  readonly hidden: readonly string[];
  /** Project folders to share live. */
  readonly live: readonly string[];
  /** Bytes to capture at most. */
  readonly limitBytes: number;
  /** Further folders to capture whole. */
  readonly data: readonly DataFolder[];
}

/** A folder that was filled for one sandbox, and stands still. */
export interface TakenFolder {
  /** Id of the project. */
  readonly project: string;
  /** Where it is inside. */
  readonly path: string;
  /** The folder that is copied. What lies in it may be hostile. */
  readonly source: string;
  /** It is the same each time: one base serves all, as long as this server runs. */
  readonly lasting?: true;
}

/** A volume that was made ahead, and in which no program has run. */
export interface VolumeAhead {
  readonly volume: string;
  /** The base that it was made from. */
  readonly from: string;
  /** Where it is. */
  readonly folder: string;
}

export interface BroughtBase {
  readonly base: Base;
  /** What became of the volume that was offered: it holds what a new one of this base would, or it may hold anything. */
  readonly volume: "untouched" | "brought" | "spoiled";
}

/** Folders of a base that are shared live with reality. */
export interface SharedFolders {
  /** Whether one moved since the last call, or since they are watched; undefined where that is not known. */
  moved(): Promise<boolean | undefined>;
  close(): Promise<void>;
}

export interface Capture {
  /** A base that equals reality now: the last one if nothing changed, otherwise a new one. Serialised per project. */
  base(request: CaptureRequest, signal?: AbortSignal): Promise<Base>;
  /** The base that base() gives if nothing has changed since the last one; undefined where that is not known. */
  last(project: string): Base | undefined;
  /**
   * As base(). Where little changed since the base of a volume that was made ahead, the same changes are made in that volume, and the base
   * is frozen behind the answer: what asks for it waits. `ahead` is called once something has changed; it may take a moment, and never rejects.
   */
  bring(request: CaptureRequest, ahead: () => Promise<VolumeAhead | undefined>): Promise<BroughtBase>;
  /** A base with the content of a folder that is no project of reality; nothing of reality moves away from it. A new one, unless it is lasting. */
  take(folder: TakenFolder): Promise<Base>;
  /** What changed in reality since a base was taken. */
  staleness(base: Base, request: CaptureRequest): Promise<Staleness>;
  /** Watches the folders that a base shares live; `key` is the caller's own. Null where a base shares none. */
  shared(base: Base, key: string): Promise<SharedFolders | null>;
  /** Tells that no sandbox needs this base any more. */
  forget(base: string): Promise<void>;
  close(): Promise<void>;
}
