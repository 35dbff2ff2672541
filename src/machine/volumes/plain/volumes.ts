/**
 * Volumes as ordinary folders, for file systems without snapshots and for ordinary users. A snapshot copies what the
 * sandbox changed (by reflink where the file system can), and the quota has to be watched.
 */
import { existsSync, statfsSync } from "node:fs";
import { copyFile, cp, mkdir, readdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import type { CellHost } from "../../../base/host/cell-host.ts";
import { KeyedLocks } from "../../../base/host/locks.ts";
import { VivError } from "../../../base/schema/errors.ts";
import { checkedId } from "../names.ts";
import { damaged } from "../damage.ts";
import { VolumeFolders } from "../volume-folders.ts";
import { SLOTS_FILE } from "../slots.ts";
import { requireHostSpace, spareHostBytes } from "../space.ts";
import {
  LIVE_SLOTS,
  liveSides,
  systemParts,
  type BaseSteps,
  type LiveSlot,
  type FolderSides,
  type SystemPart,
  type Tip,
  type VolumeKeep,
  type VolumeOrSnapshot,
  type VolumePaths,
  type Volumes,
  type VolumeSource,
} from "../volumes.ts";
import { digestOf } from "./digest.ts";
import { copyAttributes, mergeInto, MOST_LAYERS, readLayers, rootsOf, writeLayers, writeWhole } from "./layers.ts";
import { copyTree, diskUsage } from "./trees.ts";

export class PlainVolumes implements Volumes {
  readonly name = "plain";
  readonly capabilities = { quota: "watched", roots: "overlay", shared: "apart" } as const;
  readonly #folders: VolumeFolders;
  readonly #locks = new KeyedLocks();

  private constructor(host: CellHost, folder: string) {
    this.#folders = new VolumeFolders(folder, (path) => host.request("remove", [["path", path]]));
  }

  static async open(host: CellHost, options: { home: string }): Promise<PlainVolumes> {
    const folder = join(options.home, "volumes");
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const volumes = new PlainVolumes(host, folder);
    await volumes.#folders.open();
    return volumes;
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

  manifests(base: string): string {
    return join(this.#folders.path("base", base), "manifests/");
  }

  async create(volume: string, source: VolumeSource): Promise<VolumePaths> {
    requireHostSpace(this.#folders.folder);
    const target = this.#folders.path("volume", volume);
    if (existsSync(target)) throw new VivError("exists", `There is a volume of ${volume} already.`);
    this.#folders.add(volume);
    await this.#folders.make("volume", target, async (aside) => {
      if ("snapshot" in source) await this.#copy(this.#folders.path("snapshot", source.snapshot), aside);
      else await this.#start(this.#folders.path("base", source.base), aside);
    });
    return this.paths(volume);
  }

  /** An empty volume over a base. The top folder of every overlay takes owner and mode from its upper side. */
  async #start(base: string, folder: string): Promise<void> {
    const layers = await readLayers(base);
    for (const side of ["upper", "work"]) await mkdir(join(folder, "system", side), { recursive: true, mode: 0o755 });
    for (let slot = 0; slot < LIVE_SLOTS; slot += 1) {
      for (const side of ["upper", "work"]) await mkdir(join(folder, `live/${slot}`, side), { recursive: true, mode: 0o755 });
      const like = join(base, `live/${slot}/upper`);
      if (existsSync(like)) await copyAttributes(like, join(folder, `live/${slot}/upper`));
    }
    for (const [slot, like] of await rootsOf(layers.map((layer) => this.#folders.path("base", layer)))) {
      for (const side of ["upper", "work"]) await mkdir(join(folder, "roots", slot, side), { recursive: true, mode: 0o755 });
      await copyAttributes(like, join(folder, "roots", slot, "upper"));
    }
    await writeLayers(folder, layers);
  }

  async paths(volume: string): Promise<VolumePaths> {
    const folder = this.#folders.path("volume", volume);
    if (!existsSync(folder)) throw new VivError("not_found", `The volume of ${volume} is gone.`);
    return { folder, layers: (await readLayers(folder)).map((layer) => this.#folders.path("base", layer)) };
  }

  live(of: VolumeOrSnapshot, folder: LiveSlot): FolderSides {
    return liveSides(this.#folders.pathOf(of), folder);
  }

  system(of: VolumeOrSnapshot): SystemPart[] {
    return systemParts(this.#folders.pathOf(of));
  }

  async sides(of: VolumeOrSnapshot, base: string, slot: number): Promise<FolderSides> {
    const folder = this.#folders.pathOf(of);
    const layers = await readLayers(folder);
    const [own = base] = layers;
    const sides = { old: this.#layerFolders(layers, slot), new: join(folder, "roots", String(slot), "upper"), overlay: true };
    if (own === base) return sides;
    const compared = this.#layerFolders(await readLayers(this.#folders.path("base", base)), slot);
    return { ...sides, before: { base: compared, way: await this.between(base, own, slot) } };
  }

  #layerFolders(layers: readonly string[], slot: number): string[] {
    return layers.map((layer) => join(this.#folders.path("base", layer), "roots", String(slot)));
  }

  /** Down the layers that only the first has, up those that only the second has. */
  async between(from: string, to: string, slot: number): Promise<BaseSteps> {
    const [old, now] = await Promise.all([from, to].map((base) => readLayers(this.#folders.path("base", base))));
    let common = 0;
    while (old?.at(-1 - common) !== undefined && old.at(-1 - common) === now?.at(-1 - common)) common += 1;
    return { back: this.#steps(old ?? [], common, slot), forth: this.#steps(now ?? [], common, slot).toReversed() };
  }

  /** Each layer over those below it, topmost first, down to the common ones. */
  #steps(layers: readonly string[], common: number, slot: number): FolderSides[] {
    const folders = this.#layerFolders(layers, slot);
    return folders
      .slice(0, folders.length - common)
      .map((folder, index) => ({ old: folders.slice(index + 1), new: folder, overlay: true }))
      .filter((sides) => existsSync(sides.new))
      .map((sides) => (sides.old.length === 0 ? { ...sides, old: [join(this.#folders.folder, "nothing")] } : sides));
  }

  async snapshot(volume: string, snapshot: string): Promise<void> {
    requireHostSpace(this.#folders.folder);
    const target = this.#folders.snapshotPath(snapshot, volume);
    await this.#folders.make("snapshot", target, (aside) => this.#copy(this.#folders.path("volume", volume), aside));
    this.#folders.add(snapshot, volume);
  }

  async seal(snapshot: string): Promise<string> {
    return digestOf(this.#folders.path("snapshot", snapshot));
  }

  /** A file system without checksums hands out whatever is on the disk: a snapshot is read once before it is copied. */
  async verify(snapshot: string, seal: string | undefined): Promise<void> {
    if (!this.#folders.has("snapshot", snapshot)) throw damaged(snapshot, "it is gone from the storage");
    try {
      const layers = await readLayers(this.#folders.path("snapshot", snapshot));
      const lost = layers.find((layer) => !this.#folders.has("base", layer));
      if (lost !== undefined) throw damaged(snapshot, `the base ${lost} under it is gone`);
      if (seal === undefined || seal === (await this.seal(snapshot))) return;
    } catch (error) {
      if (error instanceof VivError && error.code === "snapshot_damaged") throw error;
      throw damaged(snapshot, `it can't be read (${error instanceof Error ? error.message : String(error)})`, error);
    }
    throw damaged(snapshot, "its content is not what was saved");
  }

  async rollback(volume: string, snapshot: string): Promise<void> {
    requireHostSpace(this.#folders.folder);
    await this.#folders.replaceVolume(volume, (aside) => this.#copy(this.#folders.path("snapshot", snapshot), aside));
  }

  /** Copies the upper sides; work folders hold nothing between mounts. */
  async #copy(from: string, to: string): Promise<void> {
    await mkdir(to, { mode: 0o700 });
    for (const parent of await uppersOf(from)) {
      await mkdir(join(to, parent, "work"), { recursive: true, mode: 0o755 });
      await copyTree(join(from, parent, "upper"), join(to, parent, "upper"));
    }
    if (existsSync(join(from, SLOTS_FILE))) await copyFile(join(from, SLOTS_FILE), join(to, SLOTS_FILE));
    await writeLayers(to, await readLayers(from));
  }

  /** Forgets the base; its layer goes when nothing stands on it any more. */
  async remove(kind: "volume" | "snapshot" | "base", id: string): Promise<void> {
    if (kind === "base") await this.#removeBase(id);
    else await this.#folders.remove(kind, id);
  }

  async #removeBase(id: string): Promise<void> {
    await this.#locks.run("layers", async () => {
      const inUse = (await this.#layersInUse()).has(id) || (await this.#isBelowAnother(id));
      if (inUse) this.#folders.forget(id);
      else await this.#folders.remove("base", id);
    });
  }

  /** Whether another base has it as a layer; whether that one is still needed, the next reconcile knows. */
  async #isBelowAnother(id: string): Promise<boolean> {
    const bases = (await readdir(join(this.#folders.folder, "bases"))).filter((name) => name !== id && !name.startsWith("."));
    return (await this.#layersOfKept(new Set(bases))).includes(id);
  }

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

  async usage(volume: string): Promise<number> {
    const folders = [
      this.#folders.path("volume", volume),
      ...this.#folders.snapshotsOf(volume).map((id) => this.#folders.path("snapshot", id)),
    ];
    return diskUsage(folders.filter((folder) => existsSync(folder)));
  }

  /** The watcher of the quota knows the limit; nothing here enforces it. */
  async limit(): Promise<void> {}

  async free(): Promise<{ totalBytes: number; freeBytes: number }> {
    const found = statfsSync(this.#folders.folder);
    return { totalBytes: found.blocks * found.bsize, freeBytes: Math.max(0, spareHostBytes(this.#folders.folder)) };
  }

  async reconcile(keep: VolumeKeep): Promise<string[]> {
    return this.#locks.run("layers", async () => {
      // Removing volumes first frees layers; what still carries something stays.
      const first = await this.#folders.reconcile(keep, ["volume", "snapshot", "tip"]);
      const bases = new Set([...keep.bases, ...(await this.#layersOfKept(keep.bases)), ...(await this.#layersInUse())]);
      return [...first, ...(await this.#folders.reconcile({ ...keep, bases }, ["base"]))];
    });
  }

  async #layersOfKept(bases: ReadonlySet<string>): Promise<string[]> {
    const lists = await Promise.all([...bases].map((base) => readLayers(this.#folders.path("base", base)).catch(() => [])));
    return lists.flat();
  }

  /** A file that can't be read is an error for the command that reads it. */
  errors(): undefined {
    return undefined;
  }

  /** A copy reads what is not yet on the disk just as well. */
  async writeBack(): Promise<void> {}

  async close(): Promise<void> {
    await this.#folders.close();
  }
}

/** The folders of a volume that have an upper side: system, roots/<n>, live/<n>. */
async function uppersOf(folder: string): Promise<string[]> {
  const inside = async (name: string): Promise<string[]> =>
    existsSync(join(folder, name)) ? (await readdir(join(folder, name))).map((slot) => join(name, slot)) : [];
  return ["system", ...(await inside("roots")), ...(await inside("live"))];
}
