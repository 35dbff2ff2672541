import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CallerSandboxes } from "../../src/sandbox/ending/caller-sandboxes.ts";
import type { CommandStream } from "../../src/sandbox/commands/stream.ts";
import { VivError } from "../../src/base/schema/errors.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";

const log = { info: () => undefined, warn: () => undefined };
let removed: string[];
let refusal: VivError | undefined;
let holds: CallerSandboxes;

beforeEach(() => {
  vi.useFakeTimers();
  removed = [];
  refusal = undefined;
  holds = new CallerSandboxes(log, async (id) => {
    removed.push(id);
    if (refusal !== undefined) throw refusal;
  });
});
afterEach(() => vi.useRealTimers());

test("BOX-8: a held sandbox whose caller never comes back after making it is removed", async () => {
  holds.expect("one");
  await vi.advanceTimersByTimeAsync(LIMITS.expectedCallerMs - 1);
  expect(removed).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(removed).toEqual(["one"]);
});

test("BOX-8: a held sandbox stays as long as its caller's commands do, and goes soon after the last one", async () => {
  const ends = [Promise.withResolvers<never>(), Promise.withResolvers<never>()];
  holds.expect("one");
  for (const { promise } of ends) holds.during("one", { end: promise } as unknown as CommandStream);
  await vi.advanceTimersByTimeAsync(10 * LIMITS.expectedCallerMs);
  ends[0]?.reject(new Error("gone"));
  await vi.advanceTimersByTimeAsync(10 * LIMITS.goneCallerMs);
  expect(removed).toEqual([]);
  ends[1]?.reject(new Error("gone"));
  await vi.advanceTimersByTimeAsync(LIMITS.goneCallerMs);
  expect(removed).toEqual(["one"]);
});

test("BOX-8: a removal that failed is tried again, one that its caller did is not", async () => {
  refusal = new VivError("busy", "Something is under way.");
  holds.expect("one");
  await vi.advanceTimersByTimeAsync(2 * LIMITS.expectedCallerMs);
  expect(removed).toEqual(["one", "one"]);
  refusal = new VivError("not_found", "It is gone.");
  await vi.advanceTimersByTimeAsync(10 * LIMITS.expectedCallerMs);
  expect(removed).toEqual(["one", "one", "one"]);
});
