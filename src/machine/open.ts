/** Opens the ways to isolate that this machine has, and the cell host that serves them. */
import { join } from "node:path";
import { agentsFolder, runtimesFolder } from "../base/config/paths.ts";
import type { State } from "../base/open.ts";
import { CellHost } from "../base/host/cell-host.ts";
import { Cgroups, groupName } from "../base/host/cgroups.ts";
import type { Closers } from "../base/host/closers.ts";
import { errorText } from "../base/host/log.ts";
import { toolWith } from "../base/host/tool.ts";
import { Backends, type Backend } from "./backends.ts";
import { FolderCapture } from "./capture/folder/capture.ts";
import { MaskLayers, type MaskOptions } from "./capture/masks.ts";
import { ProjectCapture } from "./capture/projects.ts";
import { FolderDriver } from "./drivers/folder/folder.ts";
import { NativeDriver } from "./drivers/native/native.ts";
import { RunFolder } from "./drivers/native/run-folder.ts";
import { gatherCopies } from "./volumes/folder/gather.ts";
import { takeOutOfCopy } from "./volumes/folder/copy-files-out.ts";
import { openFolder } from "./volumes/folder/storage.ts";
import { gatherWith } from "./volumes/gather.ts";
import { openStorage } from "./volumes/open.ts";
import { takeOutWith } from "./volumes/copy-files-out.ts";

export interface MachineOptions {
  /** What stands in settings files for logins that the server keeps. */
  readonly standIns: NonNullable<MaskOptions["standIns"]>;
  /** Whether no sandbox has processes now: what they use can be taken down. */
  readonly isIdle: () => boolean;
  /** Called when the cell host ends again and again: the next server takes the sandboxes over. */
  readonly onLost: () => void;
}

export interface MachineParts {
  readonly backends: Backends;
  /** Undefined where there is no cell. */
  readonly host: CellHost | undefined;
}

export async function openMachine(state: State, options: MachineOptions, closers: Closers): Promise<MachineParts> {
  const { cell, machine, paths } = state;
  const unwalled = await openUnwalled(paths.home, closers);
  if (cell === undefined) return { backends: new Backends([unwalled]), host: undefined };
  if (machine.mode === "none") return { backends: new Backends([unwalled]), host: openCellHost(cell, state, options, closers) };
  const { native, host } = await openNative(cell, state, options, closers);
  return { backends: new Backends([native, unwalled]), host };
}

/** Walls: the cell, storage, capture and masks that go with it. */
async function openNative(
  cell: string,
  state: State,
  options: MachineOptions,
  closers: Closers,
): Promise<{ native: Backend; host: CellHost }> {
  const { machine, paths, owner } = state;
  const cgroups = Cgroups.open(groupName(owner));
  // Before the cell host's closer, so that it comes after it: the host lives in a group itself.
  closers.add(() => cgroups?.close(options.isIdle()));
  const enter = (host: CellHost): void => (host.pid === undefined ? undefined : cgroups?.moveCells(host.pid));
  let driver: NativeDriver | undefined;
  const host = openCellHost(cell, state, options, closers, {
    exited: (sandbox) => driver?.exited(sandbox),
    restarted: async (next) => {
      enter(next);
      await driver?.rejoin();
    },
  });
  enter(host);
  const mode = machine.mode === "root" ? "root" : "user";
  const storage = await openStorage(host, machine, paths.home, state.user);
  closers.add(() => storage.close(options.isIdle()));
  const capture = new ProjectCapture(host, storage);
  closers.add(() => capture.close());
  const own = [paths.home, paths.config];
  const ownShown = [agentsFolder(paths), runtimesFolder(paths)];
  const folder = join(paths.home, "masks");
  const { standIns } = options;
  const masks = await MaskLayers.open({ host, folder, mounts: machine.mounts, mountName: groupName(owner), own, ownShown, mode, standIns });
  closers.add(() => masks.close(options.isIdle()));
  const run = await RunFolder.open({ home: paths.home, mounts: machine.mounts, name: groupName(owner) });
  closers.add(() => run.close(options.isIdle()));
  driver = new NativeDriver({ host, mode, uid: machine.uid, gid: machine.gid, home: paths.home, run: run.path, owner, cgroups, masks });
  const native = { driver, storage, capture, gather: gatherWith(host), takeOut: takeOutWith(host), tool: toolWith(host) };
  return { native, host };
}

/** No walls: copies of a folder, for machines where nothing else can be had and callers who accept it. */
async function openUnwalled(home: string, closers: Closers): Promise<Backend> {
  const storage = await openFolder({ home });
  closers.add(() => storage.close(true));
  const capture = new FolderCapture(storage.bases);
  closers.add(() => capture.close());
  const driver = new FolderDriver({ home });
  closers.add(() => driver.close());
  return { driver, storage, capture, gather: gatherCopies, takeOut: takeOutOfCopy };
}

/** What the driver hears of the cell host. */
interface HostListener {
  exited(sandbox: string): void;
  /** Another process has taken over. */
  restarted(host: CellHost): Promise<void>;
}

function openCellHost(cell: string, { log }: State, { onLost }: MachineOptions, closers: Closers, listener?: HostListener): CellHost {
  const host = new CellHost({
    program: cell,
    onEvent: (name, fields) => name === "exited" && listener?.exited(fields.get("sandbox") ?? ""),
    onRestart: (reason, next) => {
      log.warn("the cell host was started again", { reason: reason.message });
      const trouble = (error: unknown): void => log.warn("the new cell host does not watch all sandboxes", { error: errorText(error) });
      listener?.restarted(next).catch(trouble);
    },
    onLost: (reason) => {
      const message = "the cell host ends again and again; the server ends and the next one takes the sandboxes over";
      log.warn(message, { reason: reason.message });
      onLost();
    },
  });
  closers.add(() => host.close());
  return host;
}
