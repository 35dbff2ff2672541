import type { Capture } from "../../machine/capture/capture.ts";
import type { Driver } from "../../machine/drivers/drivers.ts";
import type { KeyedLocks } from "../../base/host/locks.ts";
import type { Logger } from "../../base/host/log.ts";
import type { Reserve } from "../../base/host/reserve.ts";
import type { Tool } from "../../base/host/tool.ts";
import type { Egress } from "../../rules/network/egress.ts";
import type { PrivateHosts } from "../../rules/network/private-hosts.ts";
import type { UserConfig } from "../../base/schema/config.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { DriverName } from "../../base/schema/sandbox.ts";
import type { Restoration } from "../../base/store/restoration.ts";
import type { Store } from "../../base/store/store.ts";
import type { Gather } from "../../machine/volumes/gather.ts";
import type { TakeOut } from "../../machine/volumes/take-out.ts";
import type { Volumes } from "../../machine/volumes/volumes.ts";
import type { Live } from "./live.ts";

/** A driver with the storage and the capture it works with. */
export interface Backend {
  readonly driver: Driver;
  readonly volumes: Volumes;
  readonly capture: Capture;
  /** Compares a captured folder with what a sandbox made of it, and takes contents out where asked. */
  readonly gather: Gather;
  readonly takeOut: TakeOut;
  /** Runs programs of the host where that is cheaper than to do it here. */
  readonly tool?: Tool;
}

/** The ways to isolate that this machine has. */
export class Backends {
  readonly #all: ReadonlyMap<DriverName, Backend>;

  constructor(all: readonly Backend[]) {
    this.#all = new Map(all.map((backend) => [backend.driver.name, backend]));
  }

  has(name: DriverName): boolean {
    return this.#all.has(name);
  }

  get(name: DriverName): Backend {
    const backend = this.#all.get(name);
    if (backend === undefined) throw new VivError("no_walls", `The driver ${name} is not available on this machine.`);
    return backend;
  }

  /** The backend of a sandbox. */
  of(row: { readonly driver: DriverName }): Backend {
    return this.get(row.driver);
  }

  all(): Backend[] {
    return [...this.#all.values()];
  }
}

/** Where a sandbox speaks to the server from inside: a socket of its own, there as long as its processes are. */
export interface Doors {
  /** In this folder of its sockets; one that is open there stays. */
  open(sandbox: string, folder: string): void;
  close(sandbox: string): void;
}

/** Variables by which programs inside find their model APIs. */
export interface ModelVariables {
  /** For a sandbox with these variables, before which they come. */
  environment(present: Readonly<Record<string, string>>): Record<string, string>;
  /** Files that those variables name, by path inside; none where no variable does. */
  files(present: Readonly<Record<string, string>>): Record<string, string>;
}

/** What the sandbox folder works with; made once by the server. */
export interface Parts {
  readonly store: Store;
  readonly backends: Backends;
  readonly user: UserConfig;
  /** Uid of the server, the default user of commands. */
  readonly uid: number;
  /** Home folder of the server's user. */
  readonly home: string;
  /** State folder of the server. */
  readonly state: string;
  readonly log: Logger;
  /** Whether the store was brought back from a backup. */
  readonly restoration: Restoration;
  /** Space for removals on a full disk. */
  readonly reserve: Reserve;
  /** One thing at a time per sandbox. */
  readonly locks: KeyedLocks;
  /** The way out of sandboxes. */
  readonly egress: Egress;
  /** What people opened beside the user's config. */
  readonly privateHosts: PrivateHosts;
  readonly gateway: Doors;
  readonly models: ModelVariables;
  /** Sandboxes with processes. */
  readonly live: Live;
  /** Called at named points of every operation that must survive being killed there. */
  readonly reach: (point: string) => void;
}
