import type { CellHost } from "../../base/host/cell-host.ts";
import type { Machine } from "../../base/host/machine.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { UserConfig } from "../../base/schema/config.ts";
import { openBtrfs } from "./btrfs/storage.ts";
import { openPlain } from "./plain/storage.ts";
import type { Storage } from "./volumes.ts";

/** The best storage this machine has, or the one the user asked for. */
export async function openStorage(host: CellHost, machine: Machine, home: string, user: UserConfig): Promise<Storage> {
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
  if (user.storage === "plain" || !able) return openPlain(host, { home });
  // Only overlays of root follow the attributes that lead to a folder of another layer.
  const shared = machine.mode === "root" ? "joined" : "apart";
  return openBtrfs(host, { home, shared, ...(user.poolLimit === undefined ? {} : { limitBytes: user.poolLimit }) });
}
