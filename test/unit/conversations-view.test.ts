import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import type { ContextEntry, ConversationRecord } from "../../src/base/schema/conversation.ts";
import { newId } from "../../src/base/schema/ids.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import type { Conversations, SaidRecord } from "../../src/work/conversations/conversations.ts";
import { shorten } from "../../src/work/conversations/shortening.ts";
import { estimateTokens, headOf, tailOf } from "../../src/work/conversations/tokens.ts";
import { conversationsOn, madeUp, odd } from "../support/conversations.ts";
import { Randomness } from "../support/randomness.ts";

let folder: string;
let store: Store;
let conversations: Conversations;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "viv-conversations-"));
  store = await openSqliteStore(join(folder, "vivarium.db"));
  conversations = conversationsOn(store);
});
afterAll(async () => {
  await conversations.close();
  await store.close();
  rmSync(folder, { recursive: true });
});

async function keep(said: Iterable<SaidRecord>): Promise<string> {
  const run = newId("run");
  await store.change((change) => conversations.append(change, { run, project: "/p" }, [...said]));
  return run;
}

const cost = (entries: readonly ContextEntry[]): number => entries.reduce((sum, { tokens }) => sum + tokens, 0);
const all = (run: string): Promise<ConversationRecord[]> => store.conversations.list({ run, limit: 1_000_000 });

/** The call that each result belongs to: the last one before it with its id. */
function callsOf(records: readonly ConversationRecord[]): Map<number, number> {
  const open = new Map<string, number>();
  const pairs = new Map<number, number>();
  for (const { sequence, kind, callId } of records) {
    if (callId === null) continue;
    if (kind === "tool-call") open.set(callId, sequence);
    const call = open.get(callId);
    if (kind === "tool-result" && call !== undefined) pairs.set(sequence, call);
  }
  return pairs;
}

/** What is wrong with a view, if anything is. */
function faultsOf(records: readonly ConversationRecord[], entries: readonly ContextEntry[], budget: number): string[] {
  const faults: string[] = [];
  const must = (holds: boolean, what: string): void => void (holds || faults.push(what));
  must(cost(entries) <= budget, "it is over its budget");
  const shown = new Set(entries.filter(({ form }) => form !== "summary").map(({ from }) => from));
  for (const [index, { from, text, tokens, form }] of entries.entries()) {
    must(estimateTokens(text) < tokens, `${from} costs more than it says`);
    must(from > (entries[index - 1]?.from ?? 0), `${from} is out of order`);
    must(form !== "whole" || text === records[from - 1]?.text, `${from} is not whole`);
  }
  for (const [call, results] of Map.groupBy(callsOf(records), ([, each]) => each)) {
    const has = results.filter(([result]) => shown.has(result));
    must(has.length > 0 === shown.has(call), `call ${call} is parted from its results`);
  }
  const pinned = records.filter((record) => record.pinned);
  const pinnedTokens = pinned.reduce((sum, { tokens }) => sum + tokens + 6, 0);
  const pinnedFit = pinnedTokens <= budget * 0.4;
  for (const { sequence, text } of pinned)
    must(!pinnedFit || entries.some((entry) => entry.from === sequence && entry.text === text), `${sequence} is pinned, but not there`);
  must(records[0]?.role !== "task" || (entries[0]?.from === 1 && entries[0].role === "task"), "it does not begin with the task");
  return faults;
}

async function viewOf(run: string, budgetTokens: number): Promise<{ entries: ContextEntry[]; faults: string[] }> {
  const { entries } = await conversations.view(run, { budgetTokens });
  return { entries, faults: faultsOf(await all(run), entries, budgetTokens) };
}

describe("AGT-6: a view of a conversation", () => {
  it.each(Array.from({ length: 12 }, (_, seed) => seed))(
    "is never over its budget, in order, with task and decisions, and parts no call from its result (%i)",
    async (seed) => {
      const random = new Randomness(seed);
      const run = await keep(madeUp(random, 5 + random.below(120)));
      for (const budget of [LIMITS.leastContextTokens, 700, 2_000, 8_000, 30_000, 1_000_000])
        expect((await viewOf(run, budget)).faults).toEqual([]);
    },
  );

  it.each(Array.from({ length: 12 }, (_, seed) => seed))("holds the same for odd records of a hostile agent (%i)", async (seed) => {
    const run = await keep(odd(new Randomness(seed), 200));
    for (const budget of [LIMITS.leastContextTokens, 1_000, 5_000, 20_000]) expect((await viewOf(run, budget)).faults).toEqual([]);
  });

  it("is the whole conversation where that fits", async () => {
    const run = await keep(madeUp(new Randomness(7), 10));
    const { entries, faults } = await viewOf(run, 100_000);
    expect(faults).toEqual([]);
    expect(entries.map(({ from, text, form }) => [from, text, form])).toEqual(
      (await all(run)).map(({ sequence, text }) => [sequence, text, "whole"]),
    );
  });

  it("has the newest records whole, those before shortened, and the rest in summaries, without a gap", async () => {
    const run = await keep(madeUp(new Randomness(3), 300));
    const { entries, faults } = await viewOf(run, 10_000);
    expect(faults).toEqual([]);
    const forms = entries.filter(({ pinned }) => !pinned).map(({ form }) => form);
    expect(forms[0]).toBe("summary");
    expect(entries.at(-1)?.form).toBe("whole");
    expect(entries.filter(({ form }) => form === "whole").length).toBeGreaterThan(10);
    expect(forms).toContain("shortened");
    const records = (await all(run)).length;
    const told = new Set(entries.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, index) => from + index)));
    expect(told.size).toBe(records);
    // Most of the budget is used.
    expect(cost(entries)).toBeGreaterThan(8_000);
  });

  it("is the same each time", async () => {
    const run = await keep(madeUp(new Randomness(5), 100));
    expect(await conversations.view(run, { budgetTokens: 3_000 })).toEqual(await conversations.view(run, { budgetTokens: 3_000 }));
  });

  it("keeps what a person said and what went wrong in the summary of a long past", async () => {
    const filler = [...madeUp(new Randomness(9), 200)];
    const past: SaidRecord[] = [
      ...filler.slice(0, 100),
      { role: "person", kind: "text", text: "Never touch the billing tables, the auditors look at them." },
      {
        role: "tool",
        kind: "tool-result",
        callId: "none",
        text: `${"ok\n".repeat(900)}TypeError: invoice is not iterable\n${"ok\n".repeat(900)}`,
      },
    ];
    const { entries, faults } = await viewOf(await keep([...past, ...filler.slice(100)]), 6_000);
    expect(faults).toEqual([]);
    const summaries = entries.filter(({ form }) => form === "summary").map(({ text }) => text);
    expect(summaries.join("\n")).toContain("billing tables");
    expect(summaries.join("\n")).toContain("invoice is not iterable");
  });

  it("has the task even where it alone is over the budget, and the newest decisions of very many", async () => {
    const decisions = Array.from(
      { length: 2_000 },
      (_, index) => ({ role: "agent", kind: "decision", text: `Decision ${index}.` }) as const,
    );
    const run = await keep([{ role: "task", kind: "text", text: "Do this. ".repeat(5_000) }, ...decisions]);
    const { entries, faults } = await viewOf(run, 1_000);
    expect(faults).toEqual([]);
    expect(entries[0]?.form).toBe("shortened");
    const { entries: others } = await viewOf(await keep([{ role: "task", kind: "text", text: "Do this." }, ...decisions]), 1_000);
    expect(others.at(-1)?.text).toBe("Decision 1999.");
  });

  it("brings a call from far back with its late result", async () => {
    const call: SaidRecord = { role: "agent", kind: "tool-call", callId: "late", tool: "build", text: "make" };
    const result: SaidRecord = { role: "tool", kind: "tool-result", callId: "late", tool: "build", text: "done" };
    const run = await keep([call, ...madeUp(new Randomness(1), 200), result]);
    const { entries, faults } = await viewOf(run, 3_000);
    expect(faults).toEqual([]);
    expect([entries[0]?.text, entries.at(-1)?.text]).toEqual(["make", "done"]);
  });

  it("is refused for a run that has said nothing", async () => {
    await expect(conversations.view(newId("run"), { budgetTokens: 1_000 })).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("a record", () => {
  it("keeps a very long text by its beginning and its end", async () => {
    const text = `start${"x".repeat(3 * 1024 ** 2)}end`;
    const run = await keep([{ role: "tool", kind: "tool-result", callId: "1", text }]);
    const [record] = await all(run);
    expect(record?.text.length).toBeLessThan(LIMITS.recordCharacters + 200);
    expect(record?.text).toMatch(/^start.*\n\[\d+ characters are not kept here; .*\]\nx*end$/s);
  });

  it("pins tasks, decisions and what is asked for, but no calls and results", async () => {
    const run = await keep([
      { role: "task", kind: "text", text: "t" },
      { role: "agent", kind: "decision", text: "d" },
      { role: "person", kind: "text", text: "p", pinned: true },
      { role: "agent", kind: "text", text: "a" },
      { role: "tool", kind: "tool-result", callId: "x", text: "r", pinned: true },
    ]);
    expect((await all(run)).map(({ pinned }) => pinned)).toEqual([true, true, true, false, false]);
  });
});

describe("a shortened text", () => {
  test("takes no more than it may, whatever it holds", () => {
    const random = new Randomness(11);
    for (const { text } of [...odd(random, 200), ...madeUp(random, 50)])
      for (const tokens of [0, 1, 2, 10, 47, 48, 60, 160, 1_000]) {
        const short = shorten(text, tokens);
        expect(estimateTokens(short)).toBeLessThanOrEqual(tokens);
        expect(short === text).toBe(estimateTokens(text) <= tokens);
      }
  });

  test("has beginning and end, and errors from between", () => {
    const text = `first line\n${"noise\n".repeat(2_000)}Error: no such table: users\n${"noise\n".repeat(2_000)}last line`;
    const short = shorten(text, 120);
    expect(short).toMatch(/^first line\n.*characters left out\].*no such table: users.*last line$/s);
  });

  test("is cut between characters, not in them", () => {
    expect([headOf("😀😀", 3), tailOf("😀😀", 3), headOf("", 5), tailOf("abc", 0)]).toEqual(["😀", "😀", "", ""]);
  });
});
