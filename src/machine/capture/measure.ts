/** Sizes of folders of reality. */
import type { CellHost } from "../../base/host/cell-host.ts";
import { splitParts } from "../../base/host/frames.ts";

export interface FolderSize {
  readonly path: string;
  readonly entries: number;
  readonly bytes: number;
}

const BATCH = 200;

/** Sizes of absolute paths; lower bounds where a folder has more than `most` entries. */
export async function measure(host: CellHost, paths: readonly string[], most?: number): Promise<FolderSize[]> {
  const sizes: FolderSize[] = [];
  const bound = most === undefined ? [] : [["entries", String(most)] as const];
  for (let start = 0; start < paths.length; start += BATCH) {
    const batch = paths.slice(start, start + BATCH);
    // A single path is answered in another form, so it is asked for twice.
    const asked = batch.length === 1 ? [...batch, ...batch] : batch;
    const reply = await host.request("measure", [...asked.map((path) => ["path", path] as const), ...bound]);
    for (const row of reply.rawAll("row").slice(0, batch.length)) {
      const [path, entries, bytes] = splitParts(row).map((part) => part.toString());
      sizes.push({ path: path ?? "", entries: Number(entries), bytes: Number(bytes) });
    }
  }
  return sizes;
}
