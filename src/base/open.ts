/** Opens what the server stands on: its state folder, the config of its user, the machine and the database. */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { findCell } from "./config/machine.ts";
import { agentsFolder, preparePaths, runtimesFolder, type Paths } from "./config/paths.ts";
import { loadUserConfig } from "./config/project-config.ts";
import type { Closers } from "./host/closers.ts";
import { CELL_REMEDY } from "./host/doctor.ts";
import type { Logger } from "./host/log.ts";
import { examineMachine, type Machine } from "./host/machine.ts";
import { protectFromOom } from "./host/oom.ts";
import { DiskReserve } from "./host/disk-reserve.ts";
import { RepeatedTasks } from "./host/repeated-tasks.ts";
import { StateFolder } from "./host/state-folder.ts";
import type { UserConfig } from "./schema/config.ts";
import { VivError } from "./schema/errors.ts";
import { LIMITS } from "./schema/limits.ts";
import { holdExclusively } from "./store/exclusive.ts";
import type { Restoration } from "./store/restoration.ts";
import { backUpDaily } from "./store/sqlite/backups.ts";
import { openStore } from "./store/sqlite/repair.ts";
import type { Store } from "./store/store.ts";

export interface StateOptions {
  readonly paths: Paths;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
  /** Bring a damaged database back from its newest backup. */
  readonly repair?: boolean;
  /** Called when the state folder is not this server's any more: the process must end without touching anything. */
  readonly onDisowned: (why: VivError) => void;
}

/** What every floor above works with. */
export interface State {
  readonly paths: Paths;
  readonly log: Logger;
  /** Variables that the server was started with. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** When the server began to start. */
  readonly startedAt: Date;
  /** Id of the state folder: what the server makes on the machine carries it. */
  readonly owner: string;
  /** Folder of files that no later server needs. */
  readonly temporary: string;
  readonly user: UserConfig;
  /** The cell's program; undefined where there is none. */
  readonly cell: string | undefined;
  readonly machine: Machine;
  readonly store: Store;
  /** Whether the store was brought back from a backup. */
  readonly restoration: Restoration;
  /** Space for removals on a full disk. */
  readonly reserve: DiskReserve;
  /** Whether the state folder was removed or replaced. Then what has its path now belongs to another server. */
  readonly isDisowned: () => boolean;
}

export async function openState({ paths, env, log, repair, onDisowned }: StateOptions, closers: Closers): Promise<State> {
  const startedAt = new Date();
  preparePaths(paths);
  closers.add(holdExclusively(join(paths.home, "lock.db"), paths.home));
  const folder = StateFolder.open(paths.home);
  closers.add(() => folder.close());
  const isDisowned = watchOwnership(folder, paths.home, onDisowned, closers);
  closers.add(protectFromOom());
  const temporary = emptyFolder(join(paths.home, "tmp"));
  // Before there is a sandbox: what is not there when a sandbox starts is hidden in it.
  for (const shown of [agentsFolder(paths), runtimesFolder(paths)]) mkdirSync(shown, { recursive: true });
  const user = loadUserConfig(paths.config);
  const cell = findCell(env);
  const machine = await examineMachine(cell, paths.home);
  // Without the cell nothing is known about the sandboxes that run: they are left alone, and nothing is made without walls instead.
  if (machine.cellTrouble !== undefined) throw new VivError("cell_failed", machine.cellTrouble, { remedy: CELL_REMEDY });
  const database = join(paths.home, "vivarium.db");
  const { store, restoration } = await openStore(database, repair === true);
  closers.add(() => store.close());
  const reserve = new DiskReserve(join(paths.home, "reserve"));
  const tasks = new RepeatedTasks(log);
  closers.add(() => tasks.close());
  tasks.every("backing up the database", LIMITS.reconcileEveryMs, () => backUpDaily(database));
  return { paths, log, env, startedAt, owner: folder.id, temporary, user, cell, machine, store, restoration, reserve, isDisowned };
}

/** Looks at the state folder as long as the server runs. */
function watchOwnership(folder: StateFolder, home: string, onDisowned: StateOptions["onDisowned"], closers: Closers): () => boolean {
  const isDisowned = (): boolean => {
    if (folder.isThere()) return false;
    onDisowned(new VivError("state_lost", `The state folder ${home} was removed or replaced while the server worked with it.`));
    return true;
  };
  const looking = setInterval(isDisowned, LIMITS.ownershipEveryMs).unref();
  closers.add(() => clearInterval(looking));
  return isDisowned;
}

/** Only a server that was killed leaves something in it. */
function emptyFolder(path: string): string {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return path;
}
