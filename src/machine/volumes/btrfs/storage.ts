/**
 * Storage on btrfs. Everything is a subvolume, the tip of a project too: a base is a read-only snapshot of the tip, a
 * volume a snapshot of a base, a snapshot a read-only snapshot of a volume. That is one ioctl each, complete or absent.
 */
import type { CellHost } from "../../../base/host/cell-host.ts";
import type { Storage, StorageCapabilities } from "../volumes.ts";
import { BtrfsBases } from "./bases.ts";
import { BtrfsComparison } from "./comparison.ts";
import { BtrfsDisks } from "./disks.ts";
import { BtrfsHealth } from "./health.ts";
import { Pool, type PoolOptions } from "./pool.ts";
import { BtrfsSnapshots } from "./snapshots.ts";
import { Subvolumes } from "./subvolumes.ts";

export async function openBtrfs(host: CellHost, options: PoolOptions & Pick<StorageCapabilities, "shared">): Promise<Storage> {
  const pool = await Pool.open(options);
  const subvolumes = new Subvolumes(host, pool);
  // A pool that takes no writes serves what is there, and is prepared when it has been mended.
  if (pool.isStopped()) await subvolumes.folders.look();
  else await subvolumes.prepare();
  return {
    name: "btrfs",
    capabilities: { quota: "hard", roots: "direct", shared: options.shared, holds: "machine" },
    bases: new BtrfsBases(subvolumes),
    disks: new BtrfsDisks(subvolumes),
    snapshots: new BtrfsSnapshots(subvolumes),
    comparison: new BtrfsComparison(subvolumes),
    health: new BtrfsHealth(subvolumes),
    async close(idle) {
      await subvolumes.freezes.close();
      await subvolumes.folders.close();
      if (idle) await pool.unmount();
      else await pool.close();
    },
  };
}
