import type { CellHost } from "../../base/host/cell-host.ts";
import type { Machine } from "../../base/host/machine.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { UserConfig } from "../../base/schema/config.ts";
import { BtrfsVolumes } from "./btrfs/volumes.ts";
import { PlainVolumes } from "./plain/volumes.ts";
import type { Volumes } from "./volumes.ts";

/** The best storage this machine has, or the one the user asked for. */
export async function openVolumes(host: CellHost, machine: Machine, home: string, user: UserConfig): Promise<Volumes> {
  const able = machine.mounts && machine.mode !== "none" && machine.btrfsTools && machine.btrfsKernel;
  if (user.storage === "btrfs" && !able)
    throw new VivError(
      "unsupported",
      "storage is set to btrfs, but this machine can't: it takes root, btrfs-progs and a kernel with btrfs.",
    );
  if (user.storage === "plain" && machine.stateOnOverlay)
    throw new VivError(
      "unsupported",
      `storage is set to plain, but ${home} lies on overlayfs, which holds no changes of another overlay.`,
      {
        remedy: "Set storage to btrfs, or let VIV_HOME name a folder on a disk.",
      },
    );
  if (user.storage === "plain" || !able) return PlainVolumes.open(host, { home });
  // Only overlays of root follow the attributes that lead to a folder of another layer.
  const shared = machine.mode === "root" ? "joined" : "apart";
  return BtrfsVolumes.open(host, { home, shared, ...(user.poolLimit === undefined ? {} : { limitBytes: user.poolLimit }) });
}
