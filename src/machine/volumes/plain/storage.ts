/**
 * Storage in ordinary folders, for file systems without snapshots and for ordinary users. A snapshot copies what the
 * sandbox changed (by reflink where the file system can), and the quota has to be watched.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { CellHost } from "../../../base/host/cell-host.ts";
import { CopiedSnapshots } from "../copied-snapshots.ts";
import { HostDiskHealth } from "../host-disk-health.ts";
import { VolumeFolders } from "../volume-folders.ts";
import type { Storage } from "../volumes.ts";
import { PlainBases } from "./bases.ts";
import { PlainComparison } from "./comparison.ts";
import { PlainDisks } from "./disks.ts";
import { copyVolume } from "./copies.ts";
import { DigestSeals } from "./seals.ts";

export async function openPlain(host: CellHost, options: { home: string }): Promise<Storage> {
  const folder = join(options.home, "volumes");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const folders = new VolumeFolders(folder, (path) => host.request("remove", [["path", path]]));
  await folders.open();
  const bases = new PlainBases(folders);
  return {
    name: "plain",
    capabilities: { quota: "watched", roots: "overlay", shared: "apart", holds: "machine" },
    bases,
    disks: new PlainDisks(folders),
    snapshots: new CopiedSnapshots(folders, copyVolume, new DigestSeals(folders)),
    comparison: new PlainComparison(folders),
    health: new HostDiskHealth(folder, (keep) => bases.reconcile(keep)),
    close: () => folders.close(),
  };
}
