/** What every implementation of the store's port does with conversations. */
import { describe, expect, it } from "vitest";
import type { NewRecord } from "../../src/base/store/conversation-log.ts";
import type { Store } from "../../src/base/store/store.ts";

const ONE = { run: "run1", project: "/p" };
const OTHER = { run: "run2", project: "/q" };

function said(text: string, changes: Partial<NewRecord> = {}): NewRecord {
  const rest = { at: "2026-01-01T00:00:00.000Z", tool: null, callId: null, pinned: false };
  return { role: "agent", kind: "text", text, tokens: text.length, ...rest, ...changes };
}

export function conversationsContract(opened: () => Store): void {
  const append = (to: typeof ONE, ...records: NewRecord[]): Promise<number> =>
    opened().change((change) => change.conversations.append(to, records));

  describe("conversations", () => {
    it("number the records of each run from 1 on, and sum them up", async () => {
      const { conversations } = opened();
      expect(await append(ONE, said("a"), said("bb"))).toBe(2);
      expect(await append(OTHER, said("c"))).toBe(1);
      expect(await append(ONE, said("dd"))).toBe(3);
      expect(await conversations.sums("run1")).toEqual({ project: "/p", records: 3, tokens: 5 });
      expect(await conversations.sums("run1", 2)).toEqual({ project: "/p", records: 2, tokens: 3 });
      expect(await conversations.sums("run1", 9)).toEqual(await conversations.sums("run1"));
      expect(await conversations.sums("run3")).toBeUndefined();
      expect((await conversations.list({ run: "run1", limit: 9 })).map(({ sequence, text }) => [sequence, text])).toEqual([
        [1, "a"],
        [2, "bb"],
        [3, "dd"],
      ]);
      expect((await conversations.list({ run: "run1", after: 1, before: 3, limit: 9 })).map(({ text }) => text)).toEqual(["bb"]);
      expect((await conversations.heads({ run: "run1", before: 3, limit: 9 })).map(({ sequence }) => sequence)).toEqual([2, 1]);
    });

    it("keep every character, and find records by strange words without failing", async () => {
      const { conversations } = opened();
      const text = "nul \0 escape \x1b[31m half \ud800 quote \"' emoji 😀 ende\u2028";
      await append(ONE, said(text));
      expect(await conversations.get("run1", 1)).toEqual({ sequence: 1, ...said(text) });
      expect(await conversations.get("run1", 2)).toBeUndefined();
      for (const word of ['"', "\0", "a\0b", "NEAR(", "*", "^x", "text:x", "-", "😀", "\ud800", "' or 1", "AND", ""])
        expect(await conversations.search.words([word, "escape"], {}, 9), JSON.stringify(word)).toEqual([1]);
      expect(await conversations.search.words(["", '"'], {}, 9)).toEqual([]);
    });

    it("keep nothing of a change that throws", async () => {
      const failed = opened().change(async (change) => {
        await change.conversations.append(ONE, [said("walrus")]);
        throw new Error("no");
      });
      await expect(failed).rejects.toThrow("no");
      expect(await opened().conversations.sums("run1")).toBeUndefined();
      expect(await opened().conversations.search.words(["walrus"], {}, 9)).toEqual([]);
      expect(await append(ONE, said("a"))).toBe(1);
    });

    it("are found by words in other forms, in a run, a project or all, the best first", async () => {
      const { search } = opened().conversations;
      await append(ONE, said("the tests are failing in a long list of many other words about all kinds of things"), said("nothing"));
      await append(OTHER, said("Test failed"));
      expect(await search.words(["test", "fails"], {}, 9)).toEqual([3, 1]);
      expect(await search.words(["test", "fails"], {}, 1)).toEqual([3]);
      expect(await search.words(["tests"], { run: "run1" }, 9)).toEqual([1]);
      expect(await search.words(["tests"], { project: "/q" }, 9)).toEqual([3]);
      expect(await search.get(3)).toMatchObject({ id: 3, ...OTHER, record: { sequence: 1, text: "Test failed" } });
      expect(await search.get(4)).toBeUndefined();
    });

    it("find pinned records, and the call that a result belongs to", async () => {
      const call = { kind: "tool-call", callId: "x", tool: "bash" } as const;
      await append(ONE, said("task", { pinned: true }), said("c", call), said("c", call), said("r", { ...call, kind: "tool-result" }));
      await append(ONE, said("decided", { pinned: true, kind: "decision" }));
      await append(OTHER, said("other", { ...call, pinned: true }));
      const { conversations } = opened();
      expect((await conversations.pinned({ run: "run1", limit: 9 })).map(({ sequence }) => sequence)).toEqual([5, 1]);
      expect((await conversations.callBefore("run1", "x", 4))?.sequence).toBe(3);
      expect((await conversations.callBefore("run1", "x", 3))?.sequence).toBe(2);
      expect([await conversations.callBefore("run1", "x", 2), await conversations.callBefore("run1", "y", 4)]).toEqual([
        undefined,
        undefined,
      ]);
    });

    it("have vectors of each embedder beside them, and know which records lack one", async () => {
      await append(ONE, said("a"), said("b"));
      await append(OTHER, said("c"));
      const { search } = opened().conversations;
      const vector = new Uint8Array([1, 200, 3]);
      await opened().change((change) =>
        change.conversations.addVectors(
          "e",
          [1, 2].map((id) => ({ id, vector })),
        ),
      );
      expect(await search.withoutVector("e", 9)).toEqual([{ id: 3, text: "c" }]);
      expect((await search.withoutVector("f", 2)).map(({ id }) => id)).toEqual([1, 2]);
      await opened().change((change) => change.conversations.addVectors("e", [{ id: 3, vector }]));
      const ids = async (...[scope, after]: [object, number]): Promise<number[]> =>
        (await search.vectors("e", scope, after, 9)).map(({ id }) => id);
      expect([...((await search.vectors("e", {}, 0, 1))[0]?.vector ?? [])]).toEqual([1, 200, 3]);
      expect([await ids({}, 0), await ids({}, 1), await ids({ run: "run1" }, 0), await ids({ project: "/q" }, 0)]).toEqual([
        [1, 2, 3],
        [2, 3],
        [1, 2],
        [3],
      ]);
    });

    it("go with all their words and vectors when they are removed, and others stay", async () => {
      await append(ONE, said("walrus"));
      await append(OTHER, said("walrus"));
      await opened().change(async (change) => {
        await change.conversations.addVectors("e", [{ id: 1, vector: new Uint8Array(1) }]);
        await change.conversations.remove("run1");
        await change.conversations.remove("run3");
      });
      const { conversations } = opened();
      expect([await conversations.sums("run1"), await conversations.get("run1", 1)]).toEqual([undefined, undefined]);
      expect(await conversations.search.words(["walrus"], {}, 9)).toEqual([2]);
      expect(await conversations.search.vectors("e", {}, 0, 9)).toEqual([]);
    });
  });
}
