/** Notices changes of folders that sandboxes share live with reality: a command that read them meanwhile did not see one state. */
import { createHash, type Hash } from "node:crypto";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { SharedFolders } from "../../machine/capture/capture.ts";
import type { Base } from "../../base/store/rows.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import type { SandboxRow } from "../../base/store/rows.ts";

/** Package managers touch the folder itself, a package's folder, or a file right in it. */
const DEPTH = 2;
const MOST_ENTRIES = 10_000;

export class SharedFolderWatch {
  readonly #base: Base;
  readonly #folders: SharedFolders | null;
  #generation = 0;

  private constructor(base: Base, folders: SharedFolders | null) {
    this.#base = base;
    this.#folders = folders;
  }

  /** Those that the forks of a sandbox share; `key` is the experiment. */
  static async open(parts: Pick<Parts, "store" | "backends">, origin: SandboxRow, key: string): Promise<SharedFolderWatch> {
    const base = await parts.store.bases.get(origin.base);
    if (base === undefined) throw new VivError("internal", `The base of ${origin.name} is gone.`);
    return new SharedFolderWatch(base, await parts.backends.of(origin).capture.shared(base, key));
  }

  /** Two marks differ if something moved between them. */
  async mark(): Promise<string> {
    if (this.#folders === null) return "";
    const moved = await this.#folders.moved();
    if (moved === undefined) return fingerprint(this.#base);
    if (moved) this.#generation += 1;
    return String(this.#generation);
  }

  async close(): Promise<void> {
    await this.#folders?.close();
  }
}

/** For machines where the kernel does not report it: differs when an entry of the first levels was added, removed or changed. */
async function fingerprint(base: Base): Promise<string> {
  const hash = createHash("sha256");
  const left = { entries: MOST_ENTRIES };
  for (const { path } of base.live) await look(path, DEPTH, hash, left);
  return hash.digest("hex");
}

async function look(path: string, depth: number, hash: Hash, left: { entries: number }): Promise<void> {
  if (left.entries <= 0) return;
  left.entries -= 1;
  const seen = await lstat(path, { bigint: true }).catch(() => undefined);
  hash.update(`${path}\0${seen === undefined ? "" : `${seen.ino} ${seen.mode} ${seen.size} ${seen.mtimeNs} ${seen.ctimeNs}`}\n`);
  if (seen?.isDirectory() !== true || depth === 0) return;
  const names = await readdir(path).catch(() => []);
  for (const name of names.toSorted((one, other) => (one < other ? -1 : 1))) await look(join(path, name), depth - 1, hash, left);
}
