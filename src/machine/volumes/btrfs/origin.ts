/**
 * What a volume was made from, where it is compared with a later base of the same tip: enough to find what changed since then in both, also
 * when the base that it was made from is gone (native/trees/diff/touched.c). It lies beside what is mounted, and in every snapshot and fork.
 */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CellHost } from "../../../base/host/cell-host.ts";
import type { VolumeFolders } from "../volume-folders.ts";

const ORIGIN_FILE = "origin";

export class Origins {
  readonly #host: CellHost;
  readonly #folders: VolumeFolders;
  /** Lines by base. */
  readonly #known = new Map<string, string>();

  constructor(host: CellHost, folders: VolumeFolders) {
    this.#host = host;
    this.#folders = folders;
  }

  /** Says in a volume that it was made from this base. */
  async write(volume: string, base: string): Promise<void> {
    const line = this.#known.get(base) ?? (await this.learn(base));
    writeFileSync(join(this.#folders.path("volume", volume), ORIGIN_FILE), line, { mode: 0o600 });
  }

  /** Asks the kernel about a base, so that a create need not wait for that. */
  async learn(base: string): Promise<string> {
    const found = await this.#host.request("btrfs.identity", [["path", this.#folders.path("base", base)]]);
    const line = `${found.get("uuid")} ${found.get("transaction")} ${found.get("parent")}\n`;
    this.#known.set(base, line);
    return line;
  }

  forget(base: string): void {
    this.#known.delete(base);
  }
}

/** The file that says it; undefined for a volume that is compared with the base that it was made from. */
export function originOf(volume: string): string | undefined {
  const file = join(volume, ORIGIN_FILE);
  return existsSync(file) ? file : undefined;
}
