/**
 * Volumes as btrfs subvolumes. The tip of a project is one too, so a base is a read-only snapshot of the tip, a volume
 * a snapshot of a base, a snapshot a read-only snapshot of a volume: one ioctl each, complete or absent.
 */
import { existsSync } from "node:fs";
import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { CellHost } from "../../../base/host/cell-host.ts";
import { CellError } from "../../../base/host/helper.ts";
import { VivError } from "../../../base/schema/errors.ts";
import { damaged } from "../damage.ts";
import { readShared } from "../shared.ts";
import { VolumeFolders } from "../volume-folders.ts";
import {
  LIVE_SLOTS,
  PROJECT_SLOT,
  liveSides,
  systemParts,
  type BaseSteps,
  type LiveSlot,
  type FolderSides,
  type SystemPart,
  type Tip,
  type VolumeCapabilities,
  type VolumeKeep,
  type VolumeOrSnapshot,
  type VolumePaths,
  type Volumes,
  type VolumeSource,
} from "../volumes.ts";
import { Pool, type PoolOptions } from "./pool.ts";
import { Quotas } from "./quota.ts";

export class BtrfsVolumes implements Volumes {
  readonly name = "btrfs";
  readonly capabilities: VolumeCapabilities;
  readonly pool: Pool;
  readonly repair = {
    due: (): boolean => this.pool.canBeMended(),
    run: async (): Promise<void> => {
      await this.pool.mend();
      await this.#prepare();
    },
  };
  readonly #host: CellHost;
  readonly #quotas: Quotas;
  readonly #folders: VolumeFolders;
  /** Volumes whose quota group may be there before they are. */
  readonly #creating = new Set<string>();

  private constructor(host: CellHost, pool: Pool, shared: VolumeCapabilities["shared"]) {
    this.#host = host;
    this.capabilities = { quota: "hard", roots: "direct", shared };
    this.pool = pool;
    this.#quotas = new Quotas(host, pool.path);
    this.#folders = new VolumeFolders(pool.path, (path) => this.#destroy(path));
  }

  static async open(host: CellHost, options: PoolOptions & Pick<VolumeCapabilities, "shared">): Promise<BtrfsVolumes> {
    const pool = await Pool.open(options);
    const volumes = new BtrfsVolumes(host, pool, options.shared);
    // A pool that takes no writes serves what is there, and is prepared when it has been mended.
    if (pool.isStopped()) await volumes.#folders.look();
    else await volumes.#prepare();
    return volumes;
  }

  async #prepare(): Promise<void> {
    await chmod(this.pool.path, 0o700);
    await this.#quotas.enable();
    await this.#folders.open();
  }

  async openTip(project: string, fresh: boolean): Promise<Tip> {
    await this.pool.requireSpace();
    const folder = this.#folders.path("tip", project);
    if (fresh) await this.#folders.remove("tip", project);
    if (!existsSync(folder)) await this.#folders.make("tip", folder, (aside) => this.#makeTip(aside));
    return { folder, mode: "tip", manifests: join(folder, "manifests/") };
  }

  async #makeTip(folder: string): Promise<void> {
    await this.#host.request("btrfs.create", [["path", folder]]);
    const folders = ["roots", "manifests", "system/upper", "system/work"];
    for (let slot = 0; slot < LIVE_SLOTS; slot += 1) folders.push(`live/${slot}/upper`, `live/${slot}/work`);
    for (const name of folders) await mkdir(join(folder, name), { recursive: true, mode: 0o755 });
  }

  async freeze(project: string, base: string): Promise<void> {
    // First, or a reconcile that sees it before this process hears of it takes it for a leftover.
    this.#folders.add(base);
    await this.#snapshot(this.#folders.path("tip", project), this.#folders.path("base", base), true);
  }

  manifests(base: string): string {
    return join(this.#folders.path("base", base), "manifests/");
  }

  async create(volume: string, source: VolumeSource, diskBytes: number): Promise<VolumePaths> {
    await this.pool.requireSpace();
    const from = "base" in source ? this.#folders.path("base", source.base) : this.#folders.path("snapshot", source.snapshot);
    const folder = this.#folders.path("volume", volume);
    if (existsSync(folder)) throw new VivError("exists", `There is a volume of ${volume} already.`);
    this.#folders.add(volume);
    this.#creating.add(volume);
    // Sent together and carried out in order: one round trip.
    const steps = await Promise.allSettled([this.#quotas.create(volume, diskBytes), this.#snapshot(from, folder, false, volume)]);
    this.#creating.delete(volume);
    const failed = steps.find((step) => step.status === "rejected");
    if (failed === undefined) return { folder, layers: [] };
    await this.remove("volume", volume);
    throw failed.reason;
  }

  async paths(volume: string): Promise<VolumePaths> {
    const folder = this.#folders.path("volume", volume);
    if (!existsSync(folder)) throw new VivError("not_found", `The volume of ${volume} is gone.`);
    return { folder, layers: [] };
  }

  live(of: VolumeOrSnapshot, folder: LiveSlot): FolderSides {
    return liveSides(this.#folders.pathOf(of), folder);
  }

  system(of: VolumeOrSnapshot): SystemPart[] {
    return systemParts(this.#folders.pathOf(of));
  }

  async sides(of: VolumeOrSnapshot, base: string, slot: number): Promise<FolderSides> {
    const folder = this.#folders.pathOf(of);
    const shared = slot === PROJECT_SLOT ? readShared(folder) : undefined;
    return {
      old: [join(this.#folders.path("base", base), "roots", String(slot))],
      new: join(folder, "roots", String(slot)),
      overlay: false,
      ...(shared === undefined ? {} : { shared }),
    };
  }

  async between(from: string, to: string, slot: number): Promise<BaseSteps> {
    const [old, now] = [from, to].map((base) => join(this.#folders.path("base", base), "roots", String(slot))) as [string, string];
    return { back: [], forth: from === to ? [] : [{ old: [old], new: now, overlay: false }] };
  }

  async snapshot(volume: string, snapshot: string): Promise<void> {
    await this.pool.requireSpace();
    const [from, to] = [this.#folders.path("volume", volume), this.#folders.snapshotPath(snapshot, volume)];
    await this.#snapshot(from, to, true, volume, "may have much to write back");
    this.#folders.add(snapshot, volume);
  }

  async seal(snapshot: string): Promise<string> {
    return (await this.#identity(snapshot)).uuid;
  }

  /** Contents and metadata have checksums of the kernel, which refuses to hand out what is damaged: nothing is read here. */
  async verify(snapshot: string, seal: string | undefined): Promise<void> {
    const found = await this.#identity(snapshot);
    if (!found.readOnly || found.changed) throw damaged(snapshot, "something has changed it since it was made");
    if (seal !== undefined && seal !== found.uuid) throw damaged(snapshot, "something else lies in its place");
  }

  async #identity(snapshot: string): Promise<{ uuid: string; readOnly: boolean; changed: boolean }> {
    if (!this.#folders.has("snapshot", snapshot)) throw damaged(snapshot, "it is gone from the storage");
    try {
      const reply = await this.#host.request("btrfs.identity", [["path", this.#folders.path("snapshot", snapshot)]]);
      return { uuid: reply.get("uuid") ?? "", readOnly: reply.flag("readonly"), changed: reply.flag("changed") };
    } catch (error) {
      if (!(error instanceof CellError)) throw error;
      throw damaged(snapshot, error.code === "bad-request" ? "something else lies in its place" : error.message, error);
    }
  }

  async rollback(volume: string, snapshot: string): Promise<void> {
    await this.pool.requireSpace();
    const source = this.#folders.path("snapshot", snapshot);
    await this.#folders.replaceVolume(volume, (aside) => this.#snapshot(source, aside, false, volume));
  }

  async remove(kind: "volume" | "snapshot" | "base", id: string): Promise<void> {
    await this.#folders.remove(kind, id);
  }

  async usage(volume: string): Promise<number> {
    return this.#quotas.usage(volume);
  }

  async limit(volume: string, diskBytes: number): Promise<void> {
    await this.#quotas.limit(volume, diskBytes);
  }

  async free(): Promise<{ totalBytes: number; freeBytes: number }> {
    return this.pool.free();
  }

  errors(): number | undefined {
    return this.pool.errors();
  }

  async writeBack(volume: string): Promise<void> {
    await this.#host.request("btrfs.sync", [["path", this.#folders.path("volume", volume)]]);
  }

  async reconcile(keep: VolumeKeep): Promise<string[]> {
    const removed = await this.#folders.reconcile(keep);
    await this.#quotas.removeOthers([...(await this.#folders.charged()), ...this.#creating]);
    this.pool.startGivingBack();
    return removed;
  }

  async close(idle: boolean): Promise<void> {
    await this.#folders.close();
    if (idle) await this.pool.unmount();
    else await this.pool.close();
  }

  /** What has nothing to write back takes a moment; the rest must not keep others waiting. */
  async #snapshot(
    source: string,
    path: string,
    readOnly: boolean,
    charged?: string,
    amount: "written already" | "may have much to write back" = "written already",
  ): Promise<void> {
    const fields = [
      ["source", source],
      ["path", path],
      ["readonly", readOnly ? "1" : "0"],
      ["apart", amount === "written already" ? "0" : "1"],
      ...(charged === undefined ? [] : [["qgroup", this.#quotas.group(charged)] as const]),
    ] as const;
    await this.#host.request("btrfs.snapshot", fields).catch((error: unknown) => {
      throw explain(error);
    });
  }

  async #destroy(path: string): Promise<void> {
    try {
      await this.#host.request("btrfs.delete", [["path", path]]);
    } catch (error) {
      // A folder that is no subvolume is here only if a person put it here.
      if (!(error instanceof CellError) || error.code !== "bad-request") throw error;
      await this.#host.request("remove", [["path", path]]);
    }
  }
}

function explain(error: unknown): unknown {
  if (!(error instanceof CellError)) return error;
  if (error.code === "no-space") return new VivError("disk_full", "There is no room for another volume in the pool.", { cause: error });
  if (error.code === "not-found") return new VivError("not_found", "What the volume was to be made from is gone.", { cause: error });
  return error;
}
