import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Bases, Tip } from "../bases.ts";
import { LIVE_SLOTS } from "../volumes.ts";
import type { Subvolumes } from "./subvolumes.ts";

export class BtrfsBases implements Bases {
  readonly #subvolumes: Subvolumes;

  constructor(subvolumes: Subvolumes) {
    this.#subvolumes = subvolumes;
  }

  async openTip(project: string, fresh: boolean): Promise<Tip> {
    const { pool, folders } = this.#subvolumes;
    await pool.requireSpace();
    const folder = folders.path("tip", project);
    if (fresh) await folders.remove("tip", project);
    if (!existsSync(folder)) await folders.make("tip", folder, (aside) => this.#makeTip(aside));
    return { folder, mode: "tip", manifests: join(folder, "manifests/") };
  }

  async #makeTip(folder: string): Promise<void> {
    await this.#subvolumes.host.request("btrfs.create", [["path", folder]]);
    const folders = ["roots", "manifests", "system/upper", "system/work"];
    for (let slot = 0; slot < LIVE_SLOTS; slot += 1) folders.push(`live/${slot}/upper`, `live/${slot}/work`);
    for (const name of folders) await mkdir(join(folder, name), { recursive: true, mode: 0o755 });
  }

  async freeze(project: string, base: string): Promise<void> {
    const { folders } = this.#subvolumes;
    // First, or a reconcile that sees it before this process hears of it takes it for a leftover.
    folders.add(base);
    await this.#subvolumes.copy(folders.path("tip", project), folders.path("base", base), { readOnly: true });
  }

  manifests(base: string): string {
    return join(this.#subvolumes.folders.path("base", base), "manifests/");
  }

  async remove(base: string): Promise<void> {
    await this.#subvolumes.folders.remove("base", base);
  }
}
