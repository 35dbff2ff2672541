/** Freezes the project as it is in reality into a base, at the cost of what changed since the last one. */
import type { CaptureReport, LiveFolder } from "../schema/sandbox.ts";
import type { Staleness } from "../schema/files.ts";

/** A folder of reality that a base holds. */
export interface CapturedRoot {
  /** Absolute path in reality and inside. */
  readonly path: string;
  /** Its number: roots/<n> of a volume. */
  readonly slot: number;
  /** Its content is not reality's folder of that path, and never becomes stale. */
  readonly taken?: true;
}

/** A folder with data of a service. */
export interface DataFolder {
  /** Absolute path in reality and inside. */
  readonly path: string;
  /** Folder whose content it has inside; the one of reality if left out. */
  readonly source?: string;
  /** What the user should know about it, a sentence. */
  readonly note?: string;
}

export interface LiveRoot extends LiveFolder {
  /** Its number: live/<n> of a volume. */
  readonly slot: number;
}

/** Ids that are larger than those every sandbox has. */
export interface LargeIds {
  readonly uids: readonly number[];
  readonly gids: readonly number[];
}

/** A frozen view of a project. Kept in the store as JSON. */
export interface Base {
  readonly id: string;
  /** Id of the project. */
  readonly project: string;
  readonly takenAt: string;
  readonly roots: readonly CapturedRoot[];
  readonly live: readonly LiveRoot[];
  /** Files too large to capture, shown read-only: absolute paths. */
  readonly readOnly: readonly string[];
  /** What owns files in it; absent in bases that were taken before this was looked for. */
  readonly owners?: LargeIds;
  readonly report: CaptureReport;
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

/** Folders of a base that are shared live with reality. */
export interface SharedFolders {
  /** Whether one moved since the last call, or since they are watched; undefined where that can't be told. */
  moved(): Promise<boolean | undefined>;
  close(): Promise<void>;
}

export interface Capture {
  /** A base that equals reality now: the last one if nothing changed, otherwise a new one. Serialised per project. */
  base(request: CaptureRequest, signal?: AbortSignal): Promise<Base>;
  /** What changed in reality since a base was taken. */
  staleness(base: Base, request: CaptureRequest): Promise<Staleness>;
  /** Watches the folders that a base shares live; `key` is the caller's own. Null where a base shares none. */
  shared(base: Base, key: string): Promise<SharedFolders | null>;
  /** Tells that no sandbox needs this base any more. */
  forget(base: string): Promise<void>;
  close(): Promise<void>;
}
