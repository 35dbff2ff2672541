/** An unwalled sandbox: a copy of the project, and commands that run in it with the server's own rights. */
import { once } from "node:events";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { VivError } from "../../../base/schema/errors.ts";
import type { ListedProcess } from "../../../base/host/process-list.ts";
import type { DialTarget, FileOperations, Usage, Walls } from "../drivers.ts";
import type { Launched } from "../../../base/store/rows.ts";
import { FolderCommands } from "./commands.ts";
import { FolderFiles } from "./files.ts";
import { requireOwnUser } from "./own-user.ts";
import { CopyPaths } from "./paths.ts";

interface FolderWallsOptions {
  /** The copy, without links in its path. */
  readonly root: string;
  readonly project: string;
  /** Where logs lie, and one file for every command that runs. */
  readonly records: string;
}

export class FolderWalls implements Walls {
  /** Nothing is to be found again but the copy, which the sandbox's id leads to. */
  readonly launched: Launched = {};
  readonly processId = null;
  readonly commands: FolderCommands;
  readonly files: FileOperations;

  constructor({ root, project, records }: FolderWallsOptions) {
    const paths = new CopyPaths(root, project);
    this.commands = new FolderCommands({ root, paths, records });
    this.files = new FolderFiles(paths, requireOwnUser);
  }

  /** The copy takes commands until it is stopped. */
  async isAlive(): Promise<boolean> {
    return !this.commands.stopped;
  }

  /** There is no process 1: what it would say is in files that every version writes alike. */
  async greet(): Promise<void> {}

  /** Ports are the machine's own: without walls, what listens in one sandbox listens for all. */
  async dial(port: DialTarget): Promise<Duplex> {
    if (typeof port !== "number") throw new VivError("unsupported", "A sandbox without walls has no sockets of its own.");
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    try {
      await once(socket, "connect");
      return socket;
    } catch (cause) {
      throw new VivError("port_unreachable", `Nothing listens on port ${port} of this machine.`, { cause });
    }
  }

  async usage(): Promise<Usage> {
    return { memoryBytes: null, cpuMs: null, processes: null, outOfMemory: 0, tooManyProcesses: 0 };
  }

  async cpuMs(): Promise<number | null> {
    return null;
  }

  async processes(): Promise<ListedProcess[]> {
    throw new VivError("unsupported", "Processes of an unwalled sandbox are the machine's own: they can't be told apart.");
  }

  /** Nothing here stands still for a snapshot. */
  hasMuchUnwritten(): boolean {
    return false;
  }

  /** Nothing here can hold a limit, and the capabilities say so. */
  async limit(): Promise<void> {}

  async freeze(): Promise<void> {
    throw new VivError("unsupported", "An unwalled sandbox can't be paused.");
  }

  async thaw(): Promise<void> {
    throw new VivError("unsupported", "An unwalled sandbox can't be paused.");
  }

  async stop(graceMs: number): Promise<void> {
    await this.commands.stop(graceMs);
  }
}
