/** Whether folders that sandboxes share live with reality moved: whatever read them then did not read one state. */
import { createHash } from "node:crypto";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Base } from "../capture/capture.ts";

/** Package managers touch the folder itself, a package's folder, or a file right in it. */
const DEPTH = 2;
const MOST_ENTRIES = 20_000;

/** Changes when an entry of the first levels came, went, or was changed. */
export async function fingerprint(base: Pick<Base, "live">): Promise<string> {
  const hash = createHash("sha256");
  const left = { entries: MOST_ENTRIES };
  for (const { path } of base.live) await look(path, DEPTH, hash, left);
  return hash.digest("hex");
}

async function look(path: string, depth: number, hash: ReturnType<typeof createHash>, left: { entries: number }): Promise<void> {
  if (left.entries <= 0) return;
  left.entries -= 1;
  const seen = await lstat(path, { bigint: true }).catch(() => undefined);
  hash.update(`${path}\0${seen === undefined ? "" : `${seen.ino} ${seen.mode} ${seen.size} ${seen.mtimeNs} ${seen.ctimeNs}`}\n`);
  if (seen?.isDirectory() !== true || depth === 0) return;
  const names = await readdir(path).catch(() => []);
  for (const name of names.toSorted((one, other) => (one < other ? -1 : 1))) await look(join(path, name), depth - 1, hash, left);
}
