/**
 * The folder of the sockets of all sandboxes. Nothing in it outlives a boot, so it lies in memory where the server may mount:
 * a disk file system can take a millisecond to find room for a new file, and each sandbox has six here.
 */
import { mkdirSync } from "node:fs";
import { namesIn } from "../../../base/host/names-in.ts";
import { mountTmpfs, unmountTmpfs } from "../../../base/host/tmpfs.ts";

/** Two small files and three sockets for each sandbox: room for many thousands. */
const SIZE = "256m";

interface RunFolderOptions {
  readonly folder: string;
  /** Whether this server may mount. */
  readonly mounts: boolean;
  readonly mountName: string;
}

export class RunFolder {
  readonly #options: RunFolderOptions;

  private constructor(options: RunFolderOptions) {
    this.#options = options;
  }

  static async open(options: RunFolderOptions): Promise<RunFolder> {
    const { folder, mounts, mountName } = options;
    mkdirSync(folder, { recursive: true, mode: 0o711 });
    // Sandboxes of an earlier version have their sockets on the disk: a mount would cover them.
    if (mounts && namesIn(folder).length === 0) await mountTmpfs(folder, SIZE, mountName);
    return new RunFolder(options);
  }

  /** `idle` tells that no sandbox has processes, which hold the folder. */
  async close(idle: boolean): Promise<void> {
    if (idle) await unmountTmpfs(this.#options.folder, this.#options.mountName);
  }
}
