/** Single files taken out of a tree that a sandbox wrote. */
import type { CellHost } from "../../base/host/cell-host.ts";
import { joinParts, PART } from "../../base/host/frames.ts";
import { LIMITS } from "../../base/schema/limits.ts";

export interface WantedFile {
  /** Below the tree's root. */
  readonly path: string;
  /** A new file of ours. */
  readonly target: string;
}

/** Copies regular files, never through a link. Answers with the paths that were: not what is no file, or larger than text is. */
export type CopyFilesOut = (root: string, files: readonly WantedFile[]) => Promise<ReadonlySet<string>>;

/** Bytes of paths in one request; all of them must fit into half a frame of the reply. */
const MOST_BYTES = 256 * 1024;

export function takeOutWith(host: CellHost): CopyFilesOut {
  return async (root, files) => {
    const taken = new Set<string>();
    for (const batch of batches(files)) {
      const reply = await host.request("extract", [
        ["root", root],
        ["most", String(LIMITS.maxCountedFileBytes)],
        ...batch.map(({ path, target }) => ["file", joinParts([path, target])] as const),
      ]);
      const skipped = new Set(reply.all("skipped"));
      for (const { path } of batch) if (!skipped.has(path)) taken.add(path);
    }
    return taken;
  };
}

/** What a request can carry each. A name that the protocol has no way to say counts as no file. */
function batches(files: readonly WantedFile[]): WantedFile[][] {
  const all: WantedFile[][] = [];
  let room = 0;
  for (const file of files) {
    if (file.path.includes(PART)) continue;
    room -= Buffer.byteLength(file.path) + Buffer.byteLength(file.target);
    if (room < 0) {
      all.push([]);
      room = MOST_BYTES;
    }
    all.at(-1)?.push(file);
  }
  return all;
}
