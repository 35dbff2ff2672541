/**
 * Storage for machines where no walls can be had: plain copies of the project's folder (by reflink where the file system
 * can), made by Node alone. A base is a frozen copy, a volume and a snapshot are copies of it; each holds roots/0 and
 * nothing else of a volume's inside. The quota has to be watched.
 */
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { CopiedSnapshots } from "../copied-snapshots.ts";
import { HostDiskHealth } from "../host-disk-health.ts";
import { VolumeFolders } from "../volume-folders.ts";
import type { Storage } from "../volumes.ts";
import { FolderBases } from "./bases.ts";
import { FolderComparison } from "./comparison.ts";
import { FolderDisks } from "./disks.ts";
import { copyCopy } from "./copies.ts";
import { PresenceSeals } from "./seals.ts";
import { removeTree } from "./trees.ts";

/** Its capture links what did not change from the base before, and asks the bases where that is. */
export type FolderStorage = Storage & { readonly bases: FolderBases };

export async function openFolder(options: { home: string }): Promise<FolderStorage> {
  const folder = join(options.home, "folders");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const folders = new VolumeFolders(folder, removeTree);
  await folders.open();
  // A tip is there only while a capture is under way: one that is found now was left by a crash.
  for (const name of await readdir(join(folder, "tips"))) await folders.discard("tip", name);
  return {
    name: "folder",
    capabilities: { quota: "watched", roots: "direct", shared: "apart", holds: "project" },
    bases: new FolderBases(folders),
    disks: new FolderDisks(folders),
    // Processes go on during a copy, so a file that is being written may be copied half-written.
    snapshots: new CopiedSnapshots(folders, copyCopy, new PresenceSeals(folders)),
    comparison: new FolderComparison(folders),
    health: new HostDiskHealth(folder, (keep) => folders.reconcile(keep)),
    close: () => folders.close(),
  };
}
