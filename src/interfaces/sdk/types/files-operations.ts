// Made from the contracts by scripts/sdk-types.ts.
import type { FileEntry } from "./files.ts";

/** Input of: List a folder. */
export interface ListFilesInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Path inside the sandbox; relative ones start at the project's folder. */
  path: string;
  /** Levels below. */
  depth?: number | undefined;
  /** Entries at most. */
  limit?: number | undefined;
  /** User inside whose rights apply; the server's own if left out. */
  user?: string | undefined;
}

/** Answer of: List a folder. */
export interface ListFilesOutput {
  entries: FileEntry[];
}

/** Input of: One file. */
export interface StatFileInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Path inside the sandbox; relative ones start at the project's folder. */
  path: string;
  /** User inside whose rights apply; the server's own if left out. */
  user?: string | undefined;
}

/** Input of: Rename a file or folder. */
export interface MoveFileInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Path inside the sandbox; relative ones start at the project's folder. */
  path: string;
  /** Path inside the sandbox; relative ones start at the project's folder. */
  to: string;
  /** Replace what is there. */
  replace?: boolean | undefined;
  /** User inside whose rights apply; the server's own if left out. */
  user?: string | undefined;
}

/** Input of: Remove a file or folder. */
export interface RemoveFileInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Path inside the sandbox; relative ones start at the project's folder. */
  path: string;
  /** Also what is in a folder. */
  recursive?: boolean | undefined;
  /** User inside whose rights apply; the server's own if left out. */
  user?: string | undefined;
}

/** Input of: Make a folder. */
export interface MakeFolderInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Path inside the sandbox; relative ones start at the project's folder. */
  path: string;
  /** Make missing parents; an existing folder is fine. */
  parents?: boolean | undefined;
  /** User inside whose rights apply; the server's own if left out. */
  user?: string | undefined;
}
