import { describe, expect, test } from "vitest";
import { MessageQueue } from "../../src/work/agents/message-queue.ts";
import type { RunJournal } from "../../src/work/agents/run-journal.ts";

const journal = { row: { id: "run1" }, message: () => undefined, event: () => undefined } as unknown as RunJournal;

describe("what is said to an agent", () => {
  test("AGT-3: urgent messages come first, the others in the order in which they were said", () => {
    const queue = new MessageQueue(journal, []);
    for (const [text, way] of [
      ["one", "steer"],
      ["two", "steer"],
      ["now", "urgent"],
      ["at the end", "after-turn"],
      ["now, too", "urgent"],
    ] as const)
      queue.add("person", text, way);
    const order: string[] = [];
    for (let next = queue.next(true); next !== undefined; next = queue.next(true)) {
      order.push(next.text);
      queue.sent(next.id);
    }
    expect(order).toEqual(["now", "now, too", "one", "two", "at the end"]);
  });

  test("AGT-3: one for the end of a turn waits for that, and the task comes before all", () => {
    const queue = new MessageQueue(journal, []);
    queue.add("person", "later", "after-turn");
    expect(queue.next(false)).toBe(undefined);
    expect(queue.next(true)?.text).toBe("later");
    queue.add("person", "now", "urgent");
    queue.add("task", "the task", "steer");
    expect(queue.next(false)?.text).toBe("the task");
  });
});
