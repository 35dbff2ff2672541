/** The pool, its folders and its quotas, which all ports of this storage share, and the one ioctl that makes everything. */
import { chmod } from "node:fs/promises";
import type { CellHost } from "../../../base/host/cell-host.ts";
import { CellError } from "../../../base/host/helper.ts";
import { VivError } from "../../../base/schema/errors.ts";
import { VolumeFolders } from "../volume-folders.ts";
import { Freezes } from "./freezes.ts";
import { Nursery } from "./nursery.ts";
import { Origins } from "./origin.ts";
import type { Pool } from "./pool.ts";
import { Quotas } from "./quota.ts";

interface CopyOptions {
  readonly readOnly: boolean;
  /** The volume that the copy's space is charged to. */
  readonly charged?: string;
  /** Bytes for all that is charged to that volume, which is new. */
  readonly limitBytes?: number;
  /** Others are made at the same time, in their own folders. */
  readonly besideOthers?: boolean;
}

export class Subvolumes {
  readonly host: CellHost;
  readonly pool: Pool;
  readonly quotas: Quotas;
  readonly folders: VolumeFolders;
  readonly nursery: Nursery;
  readonly freezes: Freezes;
  readonly origins: Origins;
  /** Volumes whose quota group may be there before they are. */
  readonly creating = new Set<string>();

  constructor(host: CellHost, pool: Pool) {
    this.host = host;
    this.pool = pool;
    this.quotas = new Quotas(host, pool.path);
    this.folders = new VolumeFolders(pool.path, (path) => this.#destroy(path));
    this.nursery = new Nursery(pool.path);
    this.origins = new Origins(host, this.folders);
    this.freezes = new Freezes(this.folders, {
      freeze: async (project, base) => {
        // Without others that wait for it: it takes as long as the disk does.
        await this.freeze(project, base);
        void this.origins.learn(base).catch(() => undefined);
      },
      sync: async () => void (await host.request("btrfs.sync", [["path", pool.path]])),
    });
  }

  async prepare(): Promise<void> {
    await chmod(this.pool.path, 0o700);
    await this.quotas.enable();
    await this.folders.open();
    await this.nursery.prepare();
    await this.settleNursery();
    await this.freezes.open(!this.pool.isMended());
    this.pool.forgetMending();
  }

  /** The tip of a project as it is now, as a base. */
  async freeze(project: string, base: string): Promise<void> {
    const { folders } = this;
    // First, or a reconcile that sees it before this process hears of it takes it for a leftover.
    folders.add(base);
    await this.copy(folders.path("tip", project), folders.path("base", base), { readOnly: true });
    this.freezes.frozen(project);
  }

  /** What a crash left half-way to its place gets there. */
  async settleNursery(): Promise<void> {
    await this.nursery.empty(this.folders.folderOf("volume"), this.creating);
  }

  /** A subvolume as a copy of another; complete or absent. */
  async copy(source: string, path: string, { readOnly, charged, limitBytes, besideOthers = false }: CopyOptions): Promise<void> {
    const fields = [
      ["source", source],
      ["path", path],
      ["readonly", readOnly ? "1" : "0"],
      ...(besideOthers ? [["nursery", this.nursery.place()] as const] : []),
      ...(charged === undefined ? [] : [["qgroup", this.quotas.group(charged)] as const]),
      ...(limitBytes === undefined ? [] : [["limit", String(limitBytes)] as const]),
    ] as const;
    await this.host.request("btrfs.snapshot", fields).catch((error: unknown) => {
      throw explain(error);
    });
  }

  async #destroy(path: string): Promise<void> {
    try {
      await this.host.request("btrfs.delete", [["path", path]]);
    } catch (error) {
      // Another program made this folder: it is no subvolume.
      if (!(error instanceof CellError) || error.code !== "bad-request") throw error;
      await this.host.request("remove", [["path", path]]);
    }
  }
}

function explain(error: unknown): unknown {
  if (!(error instanceof CellError)) return error;
  if (error.code === "no-space") return new VivError("disk_full", "There is no room for another volume in the pool.", { cause: error });
  if (error.code === "not-found") return new VivError("not_found", "What the volume was to be made from is gone.", { cause: error });
  return error;
}
