/** What the kernel saw change in a root since it was last asked. */
import type { CellHost } from "../../base/host/cell-host.ts";
import { CellError } from "../../base/host/helper.ts";

/** Folders in which something changed; "all" when that is not known. */
export type ChangedPaths = readonly Buffer[] | "all";

export class ProjectWatcher {
  readonly #host: CellHost;
  readonly #key: string;
  #watched = false;

  constructor(host: CellHost, key: string) {
    this.#host = host;
    this.#key = key;
  }

  /** Watches from now on. Where nothing can be watched, everything counts as changed. */
  async start(path: string, skip: readonly string[]): Promise<void> {
    await this.stop();
    try {
      await this.#host.request("watch", [["key", this.#key], ["path", path], ...skip.map((folder) => ["skip", folder] as const)]);
      this.#watched = true;
    } catch (error) {
      if (!(error instanceof CellError)) throw error;
    }
  }

  async drain(): Promise<ChangedPaths> {
    if (!this.#watched) return "all";
    try {
      const reply = await this.#host.request("drain", [["key", this.#key]]);
      return reply.flag("overflow") || reply.flag("too_many") ? "all" : reply.rawAll("dirty");
    } catch (error) {
      // A helper that was started anew watches nothing yet.
      if (!(error instanceof CellError) || error.code !== "not-found") throw error;
      return "all";
    }
  }

  async stop(): Promise<void> {
    await this.#host.request("unwatch", [["key", this.#key]]);
    this.#watched = false;
  }
}
