/** Files that change in the project of a sandbox while an agent works there, as the kernel tells it and not the agent. */
import type { RunEventBody } from "../../base/schema/run.ts";
import { projectInside } from "../../base/schema/workspace.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { Live } from "../../sandbox/shared/live.ts";

/** Changes within this time are told together. */
const GATHER_MS = 300;
const LISTED = 50;

export class FileWatch {
  readonly #tell: (event: RunEventBody) => void;
  readonly #stop = new AbortController();
  readonly #changed = new Set<string>();
  readonly #done: Promise<void>;
  #timer: NodeJS.Timeout | undefined;

  constructor(live: Live, row: SandboxRow, tell: (event: RunEventBody) => void) {
    this.#tell = tell;
    this.#done = this.#watch(live, row);
  }

  async #watch(live: Live, row: SandboxRow): Promise<void> {
    const leave = live.require(row).concurrency.watches.take();
    try {
      for await (const { path } of live.require(row).walls.files.watch(projectInside(row), row.user, true, this.#stop.signal)) {
        if (path === ".git" || path.startsWith(".git/")) continue;
        this.#changed.add(path);
        this.#timer ??= setTimeout(() => this.#flush(), GATHER_MS);
      }
    } catch {
      // Where nothing can be watched, the diff tells what changed.
    } finally {
      leave();
    }
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const paths = [...this.#changed].toSorted();
    this.#changed.clear();
    if (paths.length > 0) this.#tell({ type: "file_change", paths: paths.slice(0, LISTED), more: Math.max(0, paths.length - LISTED) });
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#done.catch(() => undefined);
    this.#flush();
  }
}
