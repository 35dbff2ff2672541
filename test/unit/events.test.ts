import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EventFeed } from "../../src/base/events/events.ts";
import type { VivEvent } from "../../src/base/schema/event.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";

let folder: string;
let store: Store;
let feed: EventFeed;
let stop: AbortController;

async function write(count: number, sandbox: string | null = null, text = ""): Promise<void> {
  await store.change(async (change) => {
    for (let number = 0; number < count; number += 1) await change.event("server.started", sandbox, { text });
  });
}

async function take(events: AsyncIterator<VivEvent>, count: number): Promise<number[]> {
  const sequences: number[] = [];
  while (sequences.length < count) {
    const next = await events.next();
    if (next.done === true) break;
    sequences.push(next.value.sequence);
  }
  return sequences;
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, index) => from + index);

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "viv-events-"));
  store = await openSqliteStore(join(folder, "vivarium.db"));
  feed = new EventFeed(store);
  stop = new AbortController();
});

afterEach(async () => {
  stop.abort();
  feed.close();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("the event feed", () => {
  it("replays what was missed and goes on live, without gap or repetition", async () => {
    await write(450);
    const events = feed.listen(7, { signal: stop.signal });
    expect(await take(events, 300)).toEqual(range(8, 307));
    const rest = take(events, 243);
    for (let round = 0; round < 100; round += 1) await write(1);
    expect(await rest).toEqual(range(308, 550));
  });

  it("gives every listener every event while they are written", async () => {
    const heard = range(1, 20).map(() => take(feed.listen(0, { signal: stop.signal }), 500));
    for (let round = 0; round < 500; round += 1) await write(1);
    for (const sequences of await Promise.all(heard)) expect(sequences).toEqual(range(1, 500));
  });

  it("gives only the events of one sandbox when asked", async () => {
    await write(1, "sbxa");
    await write(3, "sbxb");
    const events = feed.listen(0, { sandbox: "sbxa", signal: stop.signal });
    expect(await take(events, 1)).toEqual([1]);
    const next = take(events, 2);
    await write(2, "sbxb");
    await write(2, "sbxa");
    expect(await next).toEqual([7, 8]);
  });

  it("holds a bounded amount for a listener that does not read, which still gets everything", { timeout: 60_000 }, async () => {
    const events = feed.listen(0, { signal: stop.signal });
    const first = take(events, 1);
    await write(1);
    await first;
    const waiting = events.next();
    let most = 0;
    for (let round = 0; round < 40; round += 1) {
      await write(100, null, "x".repeat(1_000));
      most = Math.max(most, feed.bufferedBytes);
    }
    expect(most).toBeGreaterThan(LIMITS.eventListenerBufferBytes / 4);
    expect(most).toBeLessThanOrEqual(LIMITS.eventListenerBufferBytes);
    expect((await waiting).value).toMatchObject({ sequence: 2 });
    expect(await take(events, 3_999)).toEqual(range(3, 4_001));
  });

  it("ends a listener whose place in the log was dropped", { timeout: 60_000 }, async () => {
    await write(2);
    const events = feed.listen(1, { signal: stop.signal });
    await take(events, 1);
    await write(LIMITS.eventRetentionRows + 10);
    await store.trim();
    await expect(take(events, 1)).rejects.toMatchObject({ code: "not_found" });
    expect(feed.listeners).toBe(0);
  });

  it("ends with its signal and frees its place", async () => {
    const events = feed.listen(0, { signal: stop.signal });
    const next = events.next();
    stop.abort();
    expect(await next).toEqual({ done: true, value: undefined });
    expect(feed.listeners).toBe(0);
  });

  it("refuses more listeners than the limit", async () => {
    const taken = range(1, LIMITS.maxEventListeners).map(() => feed.listen(0, { signal: stop.signal }).next());
    expect(() => feed.listen(0, { signal: stop.signal })).toThrow(expect.objectContaining({ code: "no_capacity" }));
    await write(1);
    await Promise.all(taken);
  });
});
