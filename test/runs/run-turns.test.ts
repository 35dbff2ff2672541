/** Turns of an agent: what it is told at their ends, and the snapshots before them. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunLab } from "../support/agents/run-lab.ts";
import { needs } from "../support/skip.ts";

describe("the turns of a run", needs("root"), () => {
  let lab: RunLab;
  beforeAll(async () => {
    lab = await RunLab.open();
  });
  afterAll(async () => lab?.remove());

  /** A run in its first turn, which lasts until there is a file `go`. */
  async function holding(agent: object = {}): Promise<{ id: string; sandbox: string }> {
    const { id } = await lab.begin(["call echo one > work.txt", "hold go"], { agent });
    await lab.waitForEvent(id, "tool_result");
    return { id, sandbox: (await lab.server.client.call("inspectRun", { run: id })).sandbox ?? "" };
  }

  test("AGT-3: an urgent message that was said last is heard first", async () => {
    const { client } = lab.server;
    const { id, sandbox } = await holding();
    for (const [text, way] of [
      ["text first said", "after-turn"],
      ["text second said", "after-turn"],
      ["text urgent", "urgent"],
    ] as const)
      await client.call("sayToRun", { run: id, text, way });
    await lab.server.sh(sandbox, "touch go");
    await lab.ended(id);
    const { messages } = await client.call("listRunMessages", { run: id });
    expect(messages.map(({ state }) => state)).toEqual(Array(4).fill("delivered"));
    const heard = (await lab.events(id)).flatMap((event) => (event.type === "message" && event.from === "person" ? [event.text] : []));
    expect(heard.filter((text) => text.endsWith("said") || text.endsWith("urgent"))).toEqual([
      "text urgent",
      "text first said",
      "text second said",
    ]);
  });

  test("SNAP-5: where that was asked for, a snapshot before each turn brings files and conversation back together", async () => {
    const { client } = lab.server;
    const { id, sandbox } = await holding({ snapshots: true });
    expect((await client.call("listSnapshots", { sandbox })).snapshots).toHaveLength(1);
    await client.call("sayToRun", { run: id, text: "call echo two > work.txt\nhold never", way: "after-turn" });
    await lab.server.sh(sandbox, "touch go");
    const content = async (): Promise<string> => (await lab.server.sh(sandbox, "cat work.txt")).stdout;
    await expect.poll(content, { timeout: 20_000 }).toBe("two\n");
    const { snapshots } = await client.call("listSnapshots", { sandbox });
    expect(snapshots).toHaveLength(2);
    const newest = snapshots.toSorted((one, other) => one.createdAt.localeCompare(other.createdAt)).at(-1);
    await client.call("rollback", { sandbox, snapshot: newest?.id ?? "" });
    expect(await lab.ended(id)).toMatchObject({ restarts: 1 });
    expect(await content()).toBe("one\n");
    const { messages } = await client.call("listRunMessages", { run: id });
    expect(messages.at(-1)).toMatchObject({ text: expect.stringContaining("brought back"), state: "delivered" });
  });

  test("SNAP-5: without being asked for there is none", async () => {
    const { id, sandbox } = await holding();
    expect((await lab.server.client.call("listSnapshots", { sandbox })).snapshots).toEqual([]);
    await lab.server.sh(sandbox, "touch go");
    await lab.ended(id);
  });
});
