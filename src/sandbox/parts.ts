import type { Capture } from "../capture/capture.ts";
import type { Driver } from "../drivers/drivers.ts";
import type { KeyedLocks } from "../host/locks.ts";
import type { Logger } from "../host/log.ts";
import type { UserConfig } from "../schema/config.ts";
import type { DriverName } from "../schema/sandbox.ts";
import type { Store } from "../store/store.ts";
import type { Volumes } from "../volumes/volumes.ts";
import type { Live } from "./live.ts";

/** What the sandbox folder works with; made once by the server. */
export interface Parts {
  readonly store: Store;
  readonly volumes: Volumes;
  readonly capture: Capture;
  /** Drivers this machine has. */
  readonly drivers: ReadonlyMap<DriverName, Driver>;
  readonly user: UserConfig;
  /** Uid of the server, the default user of commands. */
  readonly uid: number;
  readonly home: string;
  readonly log: Logger;
  /** One thing at a time per sandbox. */
  readonly locks: KeyedLocks;
  /** Sandboxes with processes. */
  readonly live: Live;
  /** Called at named points of every operation that must survive being killed there. */
  readonly reach: (point: string) => void;
}
