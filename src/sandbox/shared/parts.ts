import type { KeyedLocks } from "../../base/host/locks.ts";
import type { Logger } from "../../base/host/log.ts";
import type { DiskReserve } from "../../base/host/disk-reserve.ts";
import type { Backends } from "../../machine/backends.ts";
import type { Egress } from "../../rules/network/egress.ts";
import type { PrivateHosts } from "../../rules/network/private-hosts.ts";
import type { UserConfig } from "../../base/schema/config.ts";
import type { Restoration } from "../../base/store/restoration.ts";
import type { Store } from "../../base/store/store.ts";
import type { Live } from "./live.ts";

/** Where a sandbox speaks to the server from inside: a socket of its own, there as long as its processes are. */
export interface GatewaySockets {
  /** In this folder of its sockets; one that is open there stays. */
  open(sandbox: string, folder: string): void;
  close(sandbox: string): void;
}

/** Variables by which programs inside find their model APIs. */
export interface ModelVariables {
  /** For a sandbox with these variables, before which they come. */
  environment(present: Readonly<Record<string, string>>): Record<string, string>;
  /** Files that those variables name, by path inside; none where no variable does. */
  files(present: Readonly<Record<string, string>>): Promise<Record<string, string>>;
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
  readonly reserve: DiskReserve;
  /** One thing at a time per sandbox. */
  readonly locks: KeyedLocks;
  /** The way out of sandboxes. */
  readonly egress: Egress;
  /** What people opened beside the user's config. */
  readonly privateHosts: PrivateHosts;
  readonly gateway: GatewaySockets;
  readonly models: ModelVariables;
  /** Sandboxes with processes. */
  readonly live: Live;
  /** Called at named points of every operation that must survive being killed there. */
  readonly reach: (point: string) => void;
}
