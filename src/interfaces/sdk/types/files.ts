// Made from the contracts by scripts/sdk-types.ts.

/** A file, folder or link inside a sandbox. */
export interface FileEntry {
  /** Path relative to the one asked for; '.' for itself. */
  path: string;
  /** Kind of file. */
  type: "file" | "dir" | "link" | "fifo" | "socket" | "char" | "block";
  /** Bytes. */
  size: number;
  /** Permission bits, octal. */
  mode: string;
  /** ISO time of the last change. */
  modifiedAt: string;
  /** Owner inside. */
  uid: number;
  /** Group inside. */
  gid: number;
  /** Target of a link. */
  target: string | null;
}
