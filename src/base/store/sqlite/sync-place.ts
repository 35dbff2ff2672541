/**
 * Decides where the write-ahead log is synced. A thread beside the event loop costs more than a quick disk needs for the sync itself;
 * a slow disk would hold up everything else in the event loop. Where one sync follows the other, a thread is right as well: meanwhile
 * the event loop takes the next changes, and all of them need one sync together.
 */
import { LIMITS } from "../../schema/limits.ts";

export class SyncPlace {
  /** Quick syncs, one after the other, since the last slow one. */
  #quick = 0;
  #underWay = 0;
  /** When the last sync ended. Times are of one monotonic clock. */
  #ended = -Infinity;

  /** Where a sync that begins now is done. Each that begins ends. */
  begin(now: number): "loop" | "thread" {
    const isQuiet = this.#underWay === 0 && now - this.#ended >= LIMITS.syncRestMs;
    this.#underWay += 1;
    return isQuiet && this.#quick >= LIMITS.quickSyncs ? "loop" : "thread";
  }

  /** A thread's way there and back counts along: what is quick with it is quick without it. A sync that failed says nothing good of the disk. */
  end(began: number, now: number, failed = false): void {
    this.#underWay -= 1;
    this.#ended = now;
    this.#quick = !failed && now - began < LIMITS.quickSyncMs ? this.#quick + 1 : 0;
  }
}
