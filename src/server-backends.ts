/** Makes the ways to isolate that this machine has, each with its storage and capture. */
import { join } from "node:path";
import { FolderCapture } from "./machine/capture/folder/capture.ts";
import { MaskLayers, type MaskOptions } from "./machine/capture/masks.ts";
import { ProjectCapture } from "./machine/capture/projects.ts";
import type { Paths } from "./base/config/paths.ts";
import { FolderDriver } from "./machine/drivers/folder/folder.ts";
import { NativeDriver } from "./machine/drivers/native/native.ts";
import type { CellHost } from "./base/host/cell-host.ts";
import { type Cgroups, groupName } from "./base/host/cgroups.ts";
import type { Machine } from "./base/host/machine.ts";
import { toolWith } from "./base/host/tool.ts";
import type { Live } from "./sandbox/shared/live.ts";
import type { Backend } from "./sandbox/shared/parts.ts";
import type { UserConfig } from "./base/schema/config.ts";
import { gatherCopies } from "./machine/volumes/folder/gather.ts";
import { takeOutOfCopy } from "./machine/volumes/folder/take-out.ts";
import { FolderVolumes } from "./machine/volumes/folder/volumes.ts";
import { gatherWith } from "./machine/volumes/gather.ts";
import { openVolumes } from "./machine/volumes/open.ts";
import { takeOutWith } from "./machine/volumes/take-out.ts";

/** Notes what is to be closed; the last one noted is closed first. */
type OnClose = (close: () => unknown) => void;

export interface NativeBackendOptions {
  readonly host: CellHost;
  readonly cgroups: Cgroups | undefined;
  readonly machine: Machine;
  readonly paths: Paths;
  readonly user: UserConfig;
  /** Id of the state folder. */
  readonly owner: string;
  readonly live: Live;
  readonly standIns: NonNullable<MaskOptions["standIns"]>;
}

/** Walls: the cell, storage, capture and masks that go with it. */
export async function openNative(options: NativeBackendOptions, onClose: OnClose): Promise<Backend & { readonly driver: NativeDriver }> {
  const { host, cgroups, machine, paths, owner, live, standIns } = options;
  const mode = machine.mode === "root" ? "root" : "user";
  const volumes = await openVolumes(host, machine, paths.home, options.user);
  onClose(() => volumes.close(live.size === 0));
  const capture = new ProjectCapture(host, volumes);
  onClose(() => capture.close());
  const own = [paths.home, paths.config];
  const folder = join(paths.home, "masks");
  const masks = await MaskLayers.open({ host, folder, mounts: machine.mounts, mountName: groupName(owner), own, mode, standIns });
  onClose(() => masks.close(live.size === 0));
  const driver = new NativeDriver({ host, mode, uid: machine.uid, gid: machine.gid, home: paths.home, owner, cgroups, masks });
  return { driver, volumes, capture, gather: gatherWith(host), takeOut: takeOutWith(host), tool: toolWith(host) };
}

/** No walls: copies of a folder, for machines where nothing else can be had and callers who accept it. */
export async function openUnwalled(home: string, onClose: OnClose): Promise<Backend> {
  const volumes = await FolderVolumes.open({ home });
  onClose(() => volumes.close());
  const capture = new FolderCapture(volumes);
  onClose(() => capture.close());
  const driver = new FolderDriver({ home });
  onClose(() => driver.close());
  return { driver, volumes, capture, gather: gatherCopies, takeOut: takeOutOfCopy };
}
