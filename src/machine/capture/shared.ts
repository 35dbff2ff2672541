/** Whether folders that sandboxes share live with reality changed since the last call. */
import type { CellHost } from "../../base/host/cell-host.ts";
import type { SharedFolders } from "./capture.ts";
import { ProjectWatcher } from "./project-watcher.ts";

/** Tools write there whenever they run, and read nothing from it that they could not make anew. */
const CACHE = /^\.(cache|vite|vite-temp|vitest|turbo|tmp)(\/|$)/;

export class WatchedFolders implements SharedFolders {
  readonly #watches: readonly ProjectWatcher[];

  private constructor(watches: readonly ProjectWatcher[]) {
    this.#watches = watches;
  }

  static async open(host: CellHost, key: string, paths: readonly string[]): Promise<WatchedFolders> {
    const watches = paths.map((_, index) => new ProjectWatcher(host, `${key}.shared.${index}`));
    for (const [index, path] of paths.entries()) await watches[index]?.start(path, []);
    return new WatchedFolders(watches);
  }

  async moved(): Promise<boolean | undefined> {
    const dirty = await Promise.all(this.#watches.map((watch) => watch.drain()));
    if (dirty.includes("all")) return undefined;
    return dirty.some((folders) => folders !== "all" && folders.some((folder) => !CACHE.test(folder.toString())));
  }

  async close(): Promise<void> {
    for (const watch of this.#watches) await watch.stop();
  }
}
