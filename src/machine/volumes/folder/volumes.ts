/**
 * Volumes for machines where no walls can be had: plain copies of the project's folder (by reflink where the file
 * system can), made by Node alone. A base is a frozen copy, a volume and a snapshot are copies of it; each holds
 * roots/0 and nothing else of a volume's inside. The quota has to be watched.
 */
import { existsSync, statfsSync, statSync } from "node:fs";
import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { VivError } from "../../../base/schema/errors.ts";
import { damaged } from "../damage.ts";
import { VolumeFolders } from "../volume-folders.ts";
import { requireHostSpace, spareHostBytes } from "../space.ts";
import type {
  BaseSteps,
  FolderSides,
  SystemPart,
  Tip,
  VolumeKeep,
  VolumeOrSnapshot,
  VolumePaths,
  Volumes,
  VolumeSource,
} from "../volumes.ts";
import { compareTrees } from "./compare.ts";
import { copyTree, removeTree } from "./trees.ts";

/** Written last into a volume or snapshot: the id of its base. Its time tells when the copy was complete. */
const MARK = "base";
const BLOCK_BYTES = 512;
/** A walk is not repeated before this many times its own duration have passed. */
const USAGE_REST = 20;

interface Measured {
  readonly bytes: number;
  /** Monotonic time until which it is good enough. */
  readonly until: number;
}

export class FolderVolumes implements Volumes {
  readonly name = "folder";
  readonly capabilities = { quota: "watched", roots: "direct", shared: "apart" } as const;
  readonly #folders: VolumeFolders;
  readonly #measured = new Map<string, Measured>();

  private constructor(folder: string) {
    this.#folders = new VolumeFolders(folder, removeTree);
  }

  static async open(options: { home: string }): Promise<FolderVolumes> {
    const folder = join(options.home, "folders");
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const volumes = new FolderVolumes(folder);
    await volumes.#folders.open();
    // A tip is there only while a capture is under way: one that is found now was left by a crash.
    for (const name of await readdir(join(folder, "tips"))) await volumes.#folders.discard("tip", name);
    return volumes;
  }

  /** An empty folder: a copy is always whole, with what did not change linked from the base before. */
  async openTip(project: string): Promise<Tip> {
    requireHostSpace(this.#folders.folder);
    await this.#folders.remove("tip", project);
    const folder = this.#folders.path("tip", project);
    for (const inside of ["roots", "manifests"]) await mkdir(join(folder, inside), { recursive: true, mode: 0o700 });
    return { folder, mode: "tip", manifests: join(folder, "manifests/") };
  }

  async freeze(project: string, base: string): Promise<void> {
    this.#folders.add(base);
    await rename(this.#folders.path("tip", project), this.#folders.path("base", base));
  }

  manifests(base: string): string {
    return join(this.#folders.path("base", base), "manifests/");
  }

  /** A base's copy of a captured folder; undefined when the base is gone. */
  frozen(base: string, slot: number): string | undefined {
    const folder = join(this.#folders.path("base", base), "roots", String(slot));
    return existsSync(folder) ? folder : undefined;
  }

  async create(volume: string, source: VolumeSource): Promise<VolumePaths> {
    requireHostSpace(this.#folders.folder);
    const target = this.#folders.path("volume", volume);
    if (existsSync(target)) throw new VivError("exists", `There is a volume of ${volume} already.`);
    this.#folders.add(volume);
    await this.#folders.make("volume", target, async (aside) => {
      if ("snapshot" in source) await this.#copy(this.#folders.path("snapshot", source.snapshot), aside);
      else await this.#fill(this.#folders.path("base", source.base), aside, source.base);
    });
    return this.paths(volume);
  }

  async #copy(from: string, to: string): Promise<void> {
    await this.#fill(from, to, await readFile(join(from, MARK), "utf8"), statSync(join(from, MARK)).mtimeMs);
  }

  async #fill(from: string, to: string, base: string, since?: number): Promise<void> {
    await mkdir(join(to, "roots"), { recursive: true, mode: 0o700 });
    await copyTree(join(from, "roots/0"), join(to, "roots/0"), since === undefined ? {} : { since });
    await writeFile(join(to, MARK), base, { mode: 0o600 });
  }

  async paths(volume: string): Promise<VolumePaths> {
    const folder = this.#folders.path("volume", volume);
    if (!existsSync(folder)) throw new VivError("not_found", `The volume of ${volume} is gone.`);
    return { folder, layers: [] };
  }

  live(): FolderSides {
    throw new VivError("unsupported", "A sandbox without walls shares nothing live.");
  }

  system(): SystemPart[] {
    throw new VivError("unsupported", "A sandbox without walls has no system of its own.");
  }

  async sides(of: VolumeOrSnapshot, base: string, slot: number): Promise<FolderSides> {
    const folder = this.#folders.pathOf(of);
    return {
      old: [join(this.#folders.path("base", base), "roots", String(slot))],
      new: join(folder, "roots", String(slot)),
      overlay: false,
    };
  }

  async between(from: string, to: string, slot: number): Promise<BaseSteps> {
    const [old, now] = [from, to].map((base) => join(this.#folders.path("base", base), "roots", String(slot))) as [string, string];
    return { back: [], forth: from === to ? [] : [{ old: [old], new: now, overlay: false }] };
  }

  /** Processes go on meanwhile, so a file that is being written may be copied half-written. */
  async snapshot(volume: string, snapshot: string): Promise<void> {
    requireHostSpace(this.#folders.folder);
    const target = this.#folders.snapshotPath(snapshot, volume);
    await this.#folders.make("snapshot", target, (aside) => this.#copy(this.#folders.path("volume", volume), aside));
    this.#folders.add(snapshot, volume);
  }

  /** Copies of a folder without walls are only looked for, not read again. */
  async seal(snapshot: string): Promise<string> {
    return snapshot;
  }

  async verify(snapshot: string): Promise<void> {
    if (!this.#folders.has("snapshot", snapshot)) throw damaged(snapshot, "it is gone from the storage");
  }

  async rollback(volume: string, snapshot: string): Promise<void> {
    requireHostSpace(this.#folders.folder);
    await this.#folders.replaceVolume(volume, (aside) => this.#copy(this.#folders.path("snapshot", snapshot), aside));
  }

  async remove(kind: "volume" | "snapshot" | "base", id: string): Promise<void> {
    this.#measured.delete(id);
    await this.#folders.remove(kind, id);
  }

  /** Bytes that differ from the base: what every sandbox holds of the project is not charged to it. */
  async usage(volume: string): Promise<number> {
    const known = this.#measured.get(volume);
    if (known !== undefined && performance.now() < known.until) return known.bytes;
    const began = performance.now();
    const folders = [
      this.#folders.path("volume", volume),
      ...this.#folders.snapshotsOf(volume).map((id) => this.#folders.path("snapshot", id)),
    ];
    let bytes = 0;
    for (const folder of folders) bytes += existsSync(join(folder, MARK)) ? await this.#ownBytes(folder) : 0;
    const until = performance.now() + (performance.now() - began) * USAGE_REST;
    this.#measured.set(volume, { bytes, until });
    return bytes;
  }

  async #ownBytes(folder: string): Promise<number> {
    const base = join(this.#folders.path("base", await readFile(join(folder, MARK), "utf8")), "roots/0");
    const found = await compareTrees(base, join(folder, "roots/0"));
    return found.reduce((sum, { status, stats }) => sum + (status === "deleted" ? 0 : stats.blocks * BLOCK_BYTES), 0);
  }

  /** The watcher of the quota knows the limit; nothing here enforces it. */
  async limit(): Promise<void> {}

  async free(): Promise<{ totalBytes: number; freeBytes: number }> {
    const found = statfsSync(this.#folders.folder);
    return { totalBytes: found.blocks * found.bsize, freeBytes: Math.max(0, spareHostBytes(this.#folders.folder)) };
  }

  async reconcile(keep: VolumeKeep): Promise<string[]> {
    return this.#folders.reconcile(keep);
  }

  errors(): undefined {
    return undefined;
  }

  /** A copy reads what is not yet on the disk just as well. */
  async writeBack(): Promise<void> {}

  async close(): Promise<void> {
    await this.#folders.close();
  }
}
