/** The folders volumes and their like stand in, and what keeps them complete or absent over a crash. */
import { existsSync } from "node:fs";
import { mkdir, readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { VivError } from "../../base/schema/errors.ts";
import { hasIdPrefix } from "../../base/schema/ids.ts";
import { asideName, checkedId, MAKING, parseSnapshotName, REPLACING, snapshotName, TRASH } from "./names.ts";
import type { VolumeOrSnapshot } from "./comparison.ts";
import type { VolumeKeep } from "./health.ts";

const FOLDERS = { volume: "volumes", snapshot: "snapshots", base: "bases", tip: "tips" } as const;
export type Kind = keyof typeof FOLDERS;
const KINDS = Object.keys(FOLDERS) as Kind[];
/** Whose id each kind has: anything else in these folders was put there by a person. */
const ID_KINDS = { volume: "sandbox", snapshot: "snapshot", base: "base", tip: "project" } as const satisfies Record<Kind, string>;
const QUIET_MS = 15;
const ASIDE = [MAKING, TRASH, REPLACING];

export class VolumeFolders {
  readonly folder: string;
  readonly #destroy: (path: string) => Promise<unknown>;
  /** Which volume a snapshot was taken of. */
  readonly #owners = new Map<string, string>();
  /** Ids this process made; reconcile leaves them alone. */
  readonly #made = new Set<string>();
  readonly #removals = new Set<Promise<void>>();
  /** Names in use by this process although they look half-made or half-removed. */
  readonly #busy = new Set<string>();

  constructor(folder: string, destroy: (path: string) => Promise<unknown>) {
    this.folder = folder;
    this.#destroy = destroy;
  }

  async open(): Promise<void> {
    for (const kind of Object.values(FOLDERS)) await mkdir(join(this.folder, kind), { recursive: true, mode: 0o700 });
    await this.look();
  }

  /** Learns what is there. */
  async look(): Promise<void> {
    for (const name of await readdir(join(this.folder, FOLDERS.snapshot))) {
      const parsed = parseSnapshotName(name);
      if (parsed !== undefined) this.#owners.set(parsed.snapshot, parsed.volume);
    }
  }

  has(kind: Kind, id: string): boolean {
    return (kind !== "snapshot" || this.#owners.has(id)) && existsSync(this.path(kind, id));
  }

  /** The folder in which all of a kind lie. */
  folderOf(kind: Kind): string {
    return join(this.folder, FOLDERS[kind]);
  }

  pathOf(of: VolumeOrSnapshot): string {
    return "volume" in of ? this.path("volume", of.volume) : this.path("snapshot", of.snapshot);
  }

  path(kind: Kind, id: string): string {
    return join(this.folder, FOLDERS[kind], this.#name(kind, id));
  }

  /** The folder of a volume that must be there. */
  volume(id: string): string {
    const folder = this.path("volume", id);
    if (!existsSync(folder)) throw new VivError("not_found", `The volume of ${id} is gone.`);
    return folder;
  }

  /** The folder for a volume that is not there yet, and that no reconcile touches from now on. */
  newVolume(id: string): string {
    const folder = this.path("volume", id);
    if (existsSync(folder)) throw new VivError("exists", `There is a volume of ${id} already.`);
    this.add(id);
    return folder;
  }

  /** A new volume from what `work` makes. */
  async makeVolume(id: string, work: (aside: string) => Promise<void>): Promise<void> {
    await this.make("volume", this.newVolume(id), work);
  }

  #name(kind: Kind, id: string): string {
    if (kind !== "snapshot") return checkedId(id);
    const owner = this.#owners.get(id);
    if (owner === undefined) throw new VivError("not_found", `The snapshot ${id} is gone.`);
    return snapshotName(id, owner);
  }

  /** Where a new snapshot of a volume belongs. */
  snapshotPath(snapshot: string, volume: string): string {
    return join(this.folder, FOLDERS.snapshot, snapshotName(snapshot, volume));
  }

  /** Notes that something is complete; for a snapshot, of which volume. */
  add(id: string, owner?: string): void {
    this.#made.add(id);
    if (owner !== undefined) this.#owners.set(id, owner);
  }

  /** Leaves something to the next reconcile. */
  forget(id: string): void {
    this.#made.delete(id);
  }

  /** Folders that are there and are charged to a volume: its own, and those of its snapshots. */
  chargedTo(volume: string): string[] {
    const snapshots = [...this.#owners].filter(([, owner]) => owner === volume).map(([snapshot]) => this.path("snapshot", snapshot));
    return [this.path("volume", volume), ...snapshots].filter((folder) => existsSync(folder));
  }

  /** Every volume that is there or has snapshots. */
  async charged(): Promise<Set<string>> {
    return new Set([...this.#owners.values(), ...(await readdir(join(this.folder, FOLDERS.volume)))]);
  }

  /** Makes something under another name and puts it in place when it is complete. */
  async make<T>(kind: Kind, target: string, work: (aside: string) => Promise<T>): Promise<T> {
    const name = asideName(MAKING);
    const aside = join(this.folder, FOLDERS[kind], name);
    this.#busy.add(name);
    try {
      const result = await work(aside);
      await rename(aside, target);
      return result;
    } catch (error) {
      await this.discard(kind, name);
      throw error;
    } finally {
      this.#busy.delete(name);
    }
  }

  /**
   * Puts what `work` makes in a volume's place. Between the two renames the volume is absent; reconcile finishes the
   * second one after a crash, because what has the replacing prefix is complete.
   */
  async replaceVolume(volume: string, work: (aside: string) => Promise<void>): Promise<void> {
    const name = REPLACING + checkedId(volume);
    const next = join(this.folder, FOLDERS.volume, name);
    this.#busy.add(name);
    try {
      await this.discard("volume", name);
      await this.make("volume", next, work);
      await this.discard("volume", checkedId(volume));
      await rename(next, this.path("volume", volume));
    } finally {
      this.#busy.delete(name);
    }
  }

  async remove(kind: Kind, id: string): Promise<void> {
    this.#made.delete(id);
    if (kind === "snapshot" && !this.#owners.has(id)) return;
    await this.discard(kind, this.#name(kind, id));
    if (kind === "snapshot") this.#owners.delete(id);
  }

  /**
   * Gone at once by a rename within its folder (a read-only subvolume can't change folders), deleted in the background, a moment later: a
   * caller that waits for what takes its place has the machine first.
   */
  async discard(kind: Kind, name: string): Promise<void> {
    const folder = join(this.folder, FOLDERS[kind]);
    const trash = asideName(TRASH);
    this.#busy.add(trash);
    try {
      await rename(join(folder, name), join(folder, trash));
    } catch (error) {
      this.#busy.delete(trash);
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
      throw error;
    }
    const done = (): void => void (this.#busy.delete(trash), this.#removals.delete(removal));
    // What could not be deleted stays in the trash, where the next reconcile finds it.
    const removal: Promise<void> = delay(QUIET_MS)
      .then(() => this.#destroy(join(folder, trash)))
      .then(done, done);
    this.#removals.add(removal);
  }

  async reconcile(keep: VolumeKeep, kinds: readonly Kind[] = KINDS): Promise<string[]> {
    const removed: string[] = [];
    for (const kind of kinds) {
      for (const name of await readdir(join(this.folder, FOLDERS[kind]))) {
        if (!this.#busy.has(name) && (await this.#settle(kind, name, keep))) removed.push(`${kind} ${name}`);
      }
    }
    return removed;
  }

  /** Says whether the entry was removed. */
  async #settle(kind: Kind, name: string, keep: VolumeKeep): Promise<boolean> {
    if (name.startsWith(REPLACING) && (await this.#finishReplacing(name))) return false;
    if (ASIDE.some((prefix) => name.startsWith(prefix))) {
      await this.discard(kind, name);
      return true;
    }
    const id = kind === "snapshot" ? parseSnapshotName(name)?.snapshot : name;
    const kept = { volume: keep.volumes, snapshot: keep.snapshots, base: keep.bases, tip: keep.projects }[kind];
    if (id === undefined || !hasIdPrefix(ID_KINDS[kind], id) || kept.has(id) || this.#made.has(id)) return false;
    await this.remove(kind, id);
    return true;
  }

  async #finishReplacing(name: string): Promise<boolean> {
    const folder = this.path("volume", name.slice(REPLACING.length));
    if (existsSync(folder)) return false;
    await rename(join(this.folder, FOLDERS.volume, name), folder);
    return true;
  }

  async close(): Promise<void> {
    while (this.#removals.size > 0) await Promise.all(this.#removals);
  }
}
