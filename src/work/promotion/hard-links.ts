/** Files of several names: which a change took apart, and where their other names are. */
import type { Dirent } from "node:fs";
import { lstat, readdir } from "node:fs/promises";

/** What a replaced or deleted file was, where it had other names. */
export interface LinkedFile {
  readonly inode: bigint;
  /** How many names it had. */
  readonly names: number;
}

/** By path, as latin1. */
export type LinkedFiles = ReadonlyMap<string, LinkedFile>;

const MOST_ENTRIES = 2_000_000;
const SEPARATOR = Buffer.from("/");

/** A name for each of these files that is still in the project, by inode; only of files that have names besides those known. */
export async function otherNames(project: string, linked: LinkedFiles): Promise<ReadonlyMap<bigint, Buffer>> {
  const known = Map.groupBy(linked.values(), ({ inode }) => inode);
  const wanted = new Set([...known].filter(([, files]) => (files[0]?.names ?? 0) > files.length).map(([inode]) => inode));
  const found = new Map<bigint, Buffer>();
  if (wanted.size === 0) return found;
  const root = Buffer.from(project);
  const { dev } = await lstat(root, { bigint: true });
  let left = MOST_ENTRIES;
  const waiting: Buffer[] = [Buffer.alloc(0)];
  for (let folder = waiting.pop(); folder !== undefined && left > 0 && found.size < wanted.size; folder = waiting.pop()) {
    for (const entry of await entriesOf(Buffer.concat([root, SEPARATOR, folder]))) {
      left -= 1;
      const path = folder.length === 0 ? entry.name : Buffer.concat([folder, SEPARATOR, entry.name]);
      if (!entry.isFile() && !entry.isDirectory()) continue;
      const status = await lstat(Buffer.concat([root, SEPARATOR, path]), { bigint: true }).catch(() => undefined);
      if (status === undefined || status.dev !== dev) continue;
      if (status.isDirectory() && entry.name.toString("latin1") !== ".git") waiting.push(path);
      if (status.isFile() && wanted.has(status.ino)) found.set(status.ino, path);
    }
  }
  return found;
}

/** A folder that is gone or closed has nothing to offer. */
async function entriesOf(folder: Buffer): Promise<Dirent<Buffer>[]> {
  return readdir(folder, { withFileTypes: true, encoding: "buffer" }).catch(() => []);
}
