/** Changes below a folder, as the system's own watch tells them. */
import type { FSWatcher, WatchListener } from "node:fs";
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import type { FileChange } from "../../../base/schema/files.ts";

type Begin = (options: { recursive: boolean }, listener: WatchListener<string>) => FSWatcher;

/** So many changes may wait for their reader; then one says that some are missing. */
const WAITING_MAX = 10_000;

export async function* watchChanges(
  begin: Begin,
  folder: string,
  recursive: boolean,
  signal: AbortSignal,
): AsyncGenerator<FileChange, void, void> {
  const waiting: { event: string; path: string }[] = [];
  let overflow = false;
  let wake: (() => void) | undefined;
  const stop = (): void => wake?.();
  const watcher = begin({ recursive }, (event, name) => {
    if (waiting.length >= WAITING_MAX) overflow = true;
    else waiting.push({ event, path: name ?? "." });
    wake?.();
  });
  // A folder that vanishes under its watch has no more changes.
  watcher.on("error", () => watcher.close()).on("close", stop);
  signal.addEventListener("abort", stop, { once: true });
  try {
    while (!signal.aborted) {
      const next = waiting.shift();
      if (next !== undefined) yield { change: await changeOf(folder, next), path: next.path };
      else if (overflow) {
        overflow = false;
        yield { change: "overflow", path: "." };
      } else await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    signal.removeEventListener("abort", stop);
    watcher.close();
  }
}

/** The system says "rename" for what came and for what went: which one it was shows by whether it is there. */
async function changeOf(folder: string, { event, path }: { event: string; path: string }): Promise<FileChange["change"]> {
  if (event !== "rename") return "changed";
  return lstat(join(folder, path)).then(
    () => "created" as const,
    () => "removed" as const,
  );
}
