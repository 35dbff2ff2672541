/** What is noted of the machine's use. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { MachineHistory } from "../../src/interfaces/operations/machine-history.ts";

describe("the history of the machine", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test("has one sample for each minute, keeps the newest of them, and goes on after a look that failed", async () => {
    let looks = 0;
    const failures: unknown[] = [];
    const look = async () => {
      looks += 1;
      if (looks === 3) throw new Error("no disk");
      return {
        memory: { totalBytes: 10, freeBytes: 4 },
        disk: { totalBytes: 100, freeBytes: 30 },
        load: { cpus: 2, lastMinute: looks },
        sandboxes: { running: looks, paused: 5 },
      };
    };
    const history = new MachineHistory(look, { firstMs: 2_000, everyMs: 60_000, most: 4, onFailed: (error) => failures.push(error) });
    expect(history.samples()).toEqual([]);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(history.samples()).toEqual([{ at: new Date().toISOString(), memoryBytes: 6, diskBytes: 70, load: 1, sandboxes: 1 }]);
    await vi.advanceTimersByTimeAsync(6 * 60_000);
    expect(history.samples().map(({ sandboxes }) => sandboxes)).toEqual([4, 5, 6, 7]);
    expect(failures).toHaveLength(1);
    history.close();
    await vi.advanceTimersByTimeAsync(10 * 60_000);
    expect(looks).toBe(7);
  });
});
