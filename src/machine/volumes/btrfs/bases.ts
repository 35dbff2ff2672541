import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Bases, LaterBases, Tip } from "../bases.ts";
import { LIVE_SLOTS } from "../volumes.ts";
import type { Subvolumes } from "./subvolumes.ts";

export class BtrfsBases implements Bases {
  readonly #subvolumes: Subvolumes;
  readonly later: LaterBases;

  constructor(subvolumes: Subvolumes) {
    this.#subvolumes = subvolumes;
    const { freezes, origins } = subvolumes;
    this.later = {
      freeze: async (project, base, { volume, from }) => {
        await origins.write(volume, from);
        freezes.later(project, base, volume);
      },
      knows: (base) => freezes.knows(base),
      hasLost: (volume) => freezes.hasLost(volume),
    };
  }

  async openTip(project: string, fresh: boolean): Promise<Tip> {
    const { pool, folders, freezes } = this.#subvolumes;
    await freezes.ofProject(project);
    await pool.requireSpace();
    const folder = folders.path("tip", project);
    if (fresh) await freezes.discard(project);
    freezes.changing(project);
    if (!existsSync(folder)) await folders.make("tip", folder, (aside) => this.#makeTip(aside));
    return { folder, mode: "tip", manifests: join(folder, "manifests/"), markers: freezes.markers(project) };
  }

  async #makeTip(folder: string): Promise<void> {
    await this.#subvolumes.host.request("btrfs.create", [["path", folder]]);
    const folders = ["roots", "manifests", "system/upper", "system/work"];
    for (let slot = 0; slot < LIVE_SLOTS; slot += 1) folders.push(`live/${slot}/upper`, `live/${slot}/work`);
    for (const name of folders) await mkdir(join(folder, name), { recursive: true, mode: 0o755 });
  }

  async freeze(project: string, base: string): Promise<void> {
    await this.#subvolumes.freeze(project, base);
  }

  async manifests(base: string): Promise<string> {
    await this.#subvolumes.freezes.of(base);
    return join(this.#subvolumes.folders.path("base", base), "manifests/");
  }

  async remove(base: string): Promise<void> {
    await this.#subvolumes.freezes.drop(base);
    this.#subvolumes.origins.forget(base);
    await this.#subvolumes.folders.remove("base", base);
  }
}
