/** Threads beside the event loop. */
import { lstat } from "node:fs";
import { setImmediate as immediate } from "node:timers/promises";

/**
 * Resolves once the threads have begun with what they were given in this turn of the event loop. The kernel mostly wakes them on the
 * processor that the event loop has, and there they wait until it sleeps: work that is done at once, while the disk is to write, makes
 * the disk begin later. So a thread is asked for as good as nothing, and the event loop sleeps until it has answered.
 */
export async function othersBegun(): Promise<void> {
  await immediate();
  await new Promise<void>((resolve) => lstat("/", () => resolve()));
}
