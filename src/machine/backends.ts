/** The ways to isolate that a machine has, each with its storage. */
import type { Tool } from "../base/host/tool.ts";
import { VivError } from "../base/schema/errors.ts";
import type { DriverName } from "../base/schema/sandbox.ts";
import type { Capture } from "./capture/capture.ts";
import type { Driver } from "./drivers/drivers.ts";
import type { Gather } from "./volumes/gather.ts";
import type { CopyFilesOut } from "./volumes/copy-files-out.ts";
import type { Storage } from "./volumes/volumes.ts";

/** A driver with the storage and the capture it works with. */
export interface Backend {
  readonly driver: Driver;
  readonly storage: Storage;
  readonly capture: Capture;
  /** Compares a captured folder with what a sandbox made of it, and takes contents out where asked. */
  readonly gather: Gather;
  readonly takeOut: CopyFilesOut;
  /** Runs programs of the host where that is cheaper than to do it here. */
  readonly tool?: Tool;
}

/** The ways to isolate that this machine has. A sandbox's row holds its driver's name for one reason: to find its backend again. */
export class Backends {
  readonly #all: ReadonlyMap<DriverName, Backend>;

  constructor(all: readonly Backend[]) {
    this.#all = new Map(all.map((backend) => [backend.driver.name, backend]));
  }

  /** The backend that a config asks for; undefined where this machine does not have it. */
  find(name: DriverName): Backend | undefined {
    return this.#all.get(name);
  }

  /** Whether this machine has the backend of a sandbox. */
  has(row: { readonly driver: DriverName }): boolean {
    return this.#all.has(row.driver);
  }

  /** The backend of a sandbox. */
  of(row: { readonly driver: DriverName }): Backend {
    const backend = this.#all.get(row.driver);
    if (backend === undefined) throw new VivError("no_walls", `The driver ${row.driver} is not available on this machine.`);
    return backend;
  }

  /** The one with the strongest walls. */
  get best(): Backend {
    const [first] = this.#all.values();
    if (first === undefined) throw new Error("a machine has one way to isolate at least");
    return first;
  }

  /** The strongest walls; undefined where this machine has none. */
  walled(): Backend | undefined {
    return this.all().find(({ driver }) => driver.capabilities.walled);
  }

  /** The way without walls, for callers who accept to go without. */
  unwalled(): Backend | undefined {
    return this.all().find(({ driver }) => !driver.capabilities.walled);
  }

  /** The strongest walls first. */
  all(): Backend[] {
    return [...this.#all.values()];
  }
}
