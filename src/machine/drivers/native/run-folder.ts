/**
 * Where the sockets of running sandboxes lie. None of them outlives the machine, so they need no disk: to make a name in memory takes a
 * disk's file system out of every launch. The mount outlives a crash of the server, as the sandboxes do.
 */
import { mkdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { namesIn } from "../../../base/host/names-in.ts";
import { mountTmpfs, unmountTmpfs } from "../../../base/host/tmpfs.ts";

interface RunFolderOptions {
  /** State folder of the server. */
  readonly home: string;
  /** Whether this process may mount. */
  readonly mounts: boolean;
  /** Name of the mount, by which it is found again. */
  readonly name: string;
}

const SIZE = "64m";

export class RunFolder {
  readonly path: string;
  readonly #options: RunFolderOptions;

  private constructor(path: string, options: RunFolderOptions) {
    this.path = path;
    this.#options = options;
  }

  static async open(options: RunFolderOptions): Promise<RunFolder> {
    const path = join(options.home, "run");
    mkdirSync(path, { recursive: true, mode: 0o700 });
    // What lies here is of sandboxes that run, whether it lies in memory already or not; a mount would hide it.
    if (options.mounts && seesMachinesMounts() && namesIn(path).length === 0) await mountTmpfs(path, SIZE, options.name);
    return new RunFolder(path, options);
  }

  /** `idle` tells that no sandbox runs. */
  async close(idle: boolean): Promise<void> {
    if (idle && namesIn(this.path).length === 0) await unmountTmpfs(this.path, this.#options.name);
  }
}

/** The kernel numbers namespaces that are made later from here on. */
const FIRST_MADE = 0xf0000000;

/** A server with mounts of its own takes them along when it ends: the next server would not see the sockets of the sandboxes that go on. */
function seesMachinesMounts(): boolean {
  const own = mountsOf("self");
  if (own === undefined) return false;
  // Since Linux 6.18 the machine's first mount namespace has a fixed number, which tells it where process 1 is out of reach.
  return own === mountsOf("1") || Number(/\d+/.exec(own)?.[0]) < FIRST_MADE;
}

function mountsOf(process: string): string | undefined {
  try {
    return readlinkSync(`/proc/${process}/ns/mnt`);
  } catch {
    return undefined;
  }
}
