import { setImmediate as turnOfLoop } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { Queue, type QueuedWork } from "./queue.ts";

const NEVER = new AbortController().signal;
const work = (order: string, more: Partial<QueuedWork> = {}): QueuedWork => ({ priority: 0, order, group: "one", groupMost: 9, ...more });

describe("the queue of attempts", () => {
  test("lets work that may go beyond the most begin beside the rest, once, and others wait for a place", async () => {
    const queue = new Queue(2);
    const begun: string[] = [];
    const take = async (name: string, more: Partial<QueuedWork> = {}): Promise<() => void> => {
      const leave = await queue.take(work(name, more), NEVER);
      begun.push(name);
      return leave;
    };
    const [first] = await Promise.all([take("1"), take("2")]);
    const third = take("3");
    const leaveBaseline = await take("baseline", { beyond: 1 });
    const other = take("other baseline", { beyond: 1 });
    await turnOfLoop();
    expect(begun).toEqual(["1", "2", "baseline"]);
    leaveBaseline();
    await other;
    first?.();
    await turnOfLoop();
    expect(begun).toEqual(["1", "2", "baseline", "other baseline"]);
    (await other)();
    await third;
    expect(begun).toEqual(["1", "2", "baseline", "other baseline", "3"]);
  });

  test("holds the bound of a group also for work that may go beyond the most", async () => {
    const queue = new Queue(2);
    const leave = await queue.take(work("1", { groupMost: 1 }), NEVER);
    let isBegun = false;
    const baseline = queue.take(work("baseline", { groupMost: 1, beyond: 1 }), NEVER).then(() => (isBegun = true));
    await turnOfLoop();
    expect(isBegun).toBe(false);
    leave();
    await baseline;
    expect(isBegun).toBe(true);
  });
});
