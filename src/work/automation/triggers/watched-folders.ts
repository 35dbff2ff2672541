/** Watches folders one by one, as the kernel tells of them. Nothing is asked for while nothing changes. */
import { watch, type FSWatcher } from "node:fs";
import { LIMITS } from "../../../base/schema/limits.ts";

/** Hears the folder, and the name in it; null where only the folder is known. */
type Heard = (folder: string, name: string | null) => void;

export class WatchedFolders {
  readonly #watchers = new Map<string, FSWatcher>();
  readonly #heard: Heard;
  readonly #failed: () => void;

  /** `failed` is called when the kernel has no room for more, or there are too many. */
  constructor(heard: Heard, failed: () => void) {
    this.#heard = heard;
    this.#failed = failed;
  }

  has(folder: string): boolean {
    return this.#watchers.has(folder);
  }

  add(folder: string): void {
    if (this.#watchers.has(folder)) return;
    if (this.#watchers.size >= LIMITS.watchedFolders) return this.#failed();
    try {
      const watcher = watch(folder, { persistent: false }, (_, name) => this.#heard(folder, name));
      watcher.on("error", () => this.remove(folder));
      this.#watchers.set(folder, watcher);
    } catch (error) {
      // A folder that went meanwhile is nothing to watch.
      const { code } = error as NodeJS.ErrnoException;
      if (code !== "ENOENT" && code !== "ENOTDIR") this.#failed();
    }
  }

  remove(folder: string): void {
    this.#watchers.get(folder)?.close();
    this.#watchers.delete(folder);
  }

  close(): void {
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }
}
