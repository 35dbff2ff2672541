import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { KeyedLocks } from "../../../base/host/locks.ts";
import type { Bases, Tip } from "../bases.ts";
import type { VolumeKeep } from "../health.ts";
import { checkedId } from "../names.ts";
import { requireHostSpace } from "../space.ts";
import type { VolumeFolders } from "../volume-folders.ts";
import { mergeInto, MOST_LAYERS, readLayers, writeLayers, writeWhole } from "./layers.ts";

export class PlainBases implements Bases {
  readonly #folders: VolumeFolders;
  /** One look at a time at which layers are in use. */
  readonly #locks = new KeyedLocks();

  constructor(folders: VolumeFolders) {
    this.#folders = folders;
  }

  /** A new layer over the last one; what an earlier one left unfinished is thrown away with its manifests. */
  async openTip(project: string, fresh: boolean): Promise<Tip> {
    requireHostSpace(this.#folders.folder);
    const tip = this.#folders.path("tip", project);
    if (fresh) await this.#folders.remove("tip", project);
    await mkdir(tip, { recursive: true, mode: 0o700 });
    const next = join(tip, "next");
    await this.#folders.discard("tip", `${checkedId(project)}/next`);
    await mkdir(join(next, "roots"), { recursive: true, mode: 0o755 });
    const last = await this.#lastBase(project);
    if (last === undefined) await mkdir(join(next, "manifests"));
    else await cp(join(last, "manifests"), join(next, "manifests"), { recursive: true });
    return { folder: next, mode: "layer", manifests: join(next, "manifests/") };
  }

  /** The folder of the base the tip stands on. */
  async #lastBase(project: string): Promise<string | undefined> {
    const file = join(this.#folders.path("tip", project), "base");
    if (!existsSync(file)) return undefined;
    const folder = this.#folders.path("base", await readFile(file, "utf8"));
    return existsSync(folder) ? folder : undefined;
  }

  async freeze(project: string, base: string): Promise<void> {
    const tip = this.#folders.path("tip", project);
    const next = join(tip, "next");
    const last = await this.#lastBase(project);
    const stack = last === undefined ? [] : await readLayers(last);
    const below = stack.length < MOST_LAYERS ? stack : await this.#merge(next, stack);
    await writeLayers(next, [checkedId(base), ...below]);
    this.#folders.add(base);
    await rename(next, this.#folders.path("base", base));
    await writeWhole(join(tip, "base"), base);
  }

  /** All but the lowest, which is the large one, so the cost follows what changed; that one too if a folder must hide its own. */
  async #merge(next: string, stack: readonly string[]): Promise<string[]> {
    const sealed = new Set<string>();
    const lowest = stack.slice(-1);
    for (const layer of stack.slice(0, -1)) await mergeInto(next, this.#folders.path("base", layer), sealed);
    if (sealed.size === 0) return lowest;
    for (const layer of lowest) await mergeInto(next, this.#folders.path("base", layer), sealed);
    return [];
  }

  async manifests(base: string): Promise<string> {
    return join(this.#folders.path("base", base), "manifests/");
  }

  /** Forgets the base; its layer goes when nothing stands on it any more. */
  async remove(base: string): Promise<void> {
    await this.#locks.run("layers", async () => {
      const inUse = (await this.#layersInUse()).has(base) || (await this.#isBelowAnother(base));
      if (inUse) this.#folders.forget(base);
      else await this.#folders.remove("base", base);
    });
  }

  /** For the storage's health: volumes and snapshots go first, which frees layers; a layer that still carries something stays. */
  async reconcile(keep: VolumeKeep): Promise<string[]> {
    return this.#locks.run("layers", async () => {
      const first = await this.#folders.reconcile(keep, ["volume", "snapshot", "tip"]);
      const bases = new Set([...keep.bases, ...(await this.#layersOf(keep.bases)), ...(await this.#layersInUse())]);
      return [...first, ...(await this.#folders.reconcile({ ...keep, bases }, ["base"]))];
    });
  }

  /** Whether another base has it as a layer; whether that one is still needed, the next reconcile knows. */
  async #isBelowAnother(id: string): Promise<boolean> {
    const bases = (await readdir(join(this.#folders.folder, "bases"))).filter((name) => name !== id && !name.startsWith("."));
    return (await this.#layersOf(new Set(bases))).includes(id);
  }

  async #layersOf(bases: ReadonlySet<string>): Promise<string[]> {
    const lists = await Promise.all([...bases].map((base) => readLayers(this.#folders.path("base", base)).catch(() => [])));
    return lists.flat();
  }

  /** Layers under volumes, snapshots and tips. */
  async #layersInUse(): Promise<Set<string>> {
    const used = new Set<string>();
    for (const kind of ["volumes", "snapshots"]) {
      for (const name of await readdir(join(this.#folders.folder, kind))) {
        const list = await readLayers(join(this.#folders.folder, kind, name)).catch(() => []);
        for (const layer of list) used.add(layer);
      }
    }
    for (const project of await readdir(join(this.#folders.folder, "tips"))) {
      const last = project.startsWith(".") ? undefined : await this.#lastBase(project);
      for (const layer of last === undefined ? [] : await readLayers(last)) used.add(layer);
    }
    return used;
  }
}
