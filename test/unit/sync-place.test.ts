/** Where the write-ahead log is synced: in the event loop while the disk is quick and little is to be synced, in a thread otherwise. */
import { expect, test } from "vitest";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { SyncPlace } from "../../src/base/store/sqlite/sync-place.ts";

const QUICK = LIMITS.quickSyncMs / 2;
const SLOW = LIMITS.quickSyncMs;

/** A disk that is synced again and again, with a rest before each. */
class Syncs {
  readonly place = new SyncPlace();
  now = 0;

  /** Where each of these syncs was done; a number is how long it takes. */
  after(rest: number, ...took: readonly number[]): string[] {
    return took.map((ms) => {
      const began = (this.now += rest);
      const where = this.place.begin(began);
      this.place.end(began, (this.now += ms));
      return where;
    });
  }

  rested(...took: readonly number[]): string[] {
    return this.after(LIMITS.syncRestMs, ...took);
  }
}

function times(count: number, ms = QUICK): number[] {
  return Array.from({ length: count }, () => ms);
}

const threads = (count: number): string[] => Array.from({ length: count }, () => "thread");

test("threads sync until so many syncs in a row were quick, then the event loop does", () => {
  const syncs = new Syncs();
  expect(syncs.rested(...times(LIMITS.quickSyncs + 2))).toEqual([...threads(LIMITS.quickSyncs), "loop", "loop"]);
});

test("one slow sync gives the next ones back to threads, until so many in a row were quick again", () => {
  const syncs = new Syncs();
  syncs.rested(...times(LIMITS.quickSyncs));
  expect(syncs.rested(SLOW)).toEqual(["loop"]);
  expect(syncs.rested(...times(LIMITS.quickSyncs + 1))).toEqual([...threads(LIMITS.quickSyncs), "loop"]);
});

test("a slow sync between quick ones begins the row anew", () => {
  const syncs = new Syncs();
  syncs.rested(...times(LIMITS.quickSyncs - 1), 5 * SLOW, ...times(LIMITS.quickSyncs - 1));
  expect(syncs.rested(QUICK, QUICK)).toEqual(["thread", "loop"]);
});

test("a sync that takes as long as the limit is slow, and one just below it is quick", () => {
  const [slow, quick] = [new Syncs(), new Syncs()];
  slow.rested(...times(LIMITS.quickSyncs, SLOW));
  quick.rested(...times(LIMITS.quickSyncs, SLOW - 0.001));
  expect([...slow.rested(QUICK), ...quick.rested(QUICK)]).toEqual(["thread", "loop"]);
});

test("a sync that fails counts as slow, however soon it failed", () => {
  const syncs = new Syncs();
  syncs.rested(...times(LIMITS.quickSyncs));
  const began = (syncs.now += LIMITS.syncRestMs);
  expect(syncs.place.begin(began)).toBe("loop");
  syncs.place.end(began, began, true);
  expect(syncs.rested(...times(LIMITS.quickSyncs + 1))).toEqual([...threads(LIMITS.quickSyncs), "loop"]);
});

test("syncs in quick succession are done in threads, and the first after a rest in the event loop", () => {
  const syncs = new Syncs();
  syncs.after(0, ...times(LIMITS.quickSyncs));
  expect(syncs.after(LIMITS.syncRestMs - 0.001, ...times(20))).toEqual(threads(20));
  expect(syncs.rested(QUICK)).toEqual(["loop"]);
  expect(syncs.after(0, QUICK)).toEqual(["thread"]);
});

test("a sync that begins while another is under way is done in a thread", () => {
  const syncs = new Syncs();
  syncs.rested(...times(LIMITS.quickSyncs));
  const { place } = syncs;
  const first = syncs.now + LIMITS.syncRestMs;
  expect(place.begin(first)).toBe("loop");
  expect(place.begin(first + LIMITS.syncRestMs)).toBe("thread");
  place.end(first, first + LIMITS.syncRestMs + QUICK);
  expect(place.begin(first + 3 * LIMITS.syncRestMs)).toBe("thread");
});
