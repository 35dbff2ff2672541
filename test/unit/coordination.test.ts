/** Who may wait for whom, and how many at once. */
import { describe, expect, test } from "vitest";
import { Coordination, type Sibling } from "../../src/interfaces/gateway/coordination.ts";
import { Rates } from "../../src/interfaces/gateway/rates.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";

const never = new AbortController().signal;
const party = (name: string, project = "/project"): Sibling => ({ id: `sbx-${name}`, name, project });
const options = { timeoutMs: 60_000, signal: never, record: () => Promise.resolve() };
const text = { action: "review", context: null, conversation: false };

/** A request that is waited for in the background; its end does not matter unless a test awaits it. */
function asks(coordination: Coordination, from: Sibling, to: Sibling, more: Partial<typeof options> = {}): Promise<unknown> {
  const asked = coordination.request(from, to, text, { ...options, ...more }).then(([, answer]) => answer);
  asked.catch(() => undefined);
  return asked;
}

const read = (coordination: Coordination, { id }: Sibling) => coordination.messages(id, 0, 1000, never);

describe("siblings that ask each other", () => {
  const [a, b, c] = [party("a"), party("b"), party("c")];

  test("COORD-1: get the answer, and the sibling sees who asks", async () => {
    const coordination = new Coordination();
    const answer = asks(coordination, a, b);
    const [message] = await read(coordination, b);
    expect(message).toMatchObject({ from: a.id, fromName: "a", provenance: "sibling", action: "review", depth: 1 });
    coordination.answer(b.id, message?.id ?? "", "fine");
    expect(await answer).toBe("fine");
    expect(await coordination.messages(b.id, 0, 0, never)).toEqual([]);
  });

  test("a message is not seen before it is recorded, and never when it can't be", async () => {
    const coordination = new Coordination();
    const recorded = Promise.withResolvers<void>();
    const asked = asks(coordination, a, b, { record: () => recorded.promise });
    expect(await coordination.messages(b.id, 0, 0, never)).toEqual([]);
    recorded.reject(new Error("full"));
    await expect(asked).rejects.toThrow("full");
    expect(await coordination.messages(b.id, 0, 0, never)).toEqual([]);
  });

  test("COORD-4: one that works when it is asked answers, under the same limits, and hears when no caller waits any more", async () => {
    const coordination = new Coordination();
    const over = Promise.withResolvers<AbortSignal>();
    const serve = async (signal: AbortSignal): Promise<string> => {
      over.resolve(signal);
      return "fine";
    };
    expect((await coordination.request(a, b, text, { ...options, serve }))[1]).toBe("fine");
    expect((await over.promise).aborted).toBe(true);
    const late = coordination.request(a, b, text, { ...options, timeoutMs: 1, serve: () => new Promise(() => undefined) });
    await expect(late).rejects.toMatchObject({ code: "timeout", remedy: expect.stringContaining("ask the same again") });
    await expect(coordination.request(a, a, text, { ...options, serve })).rejects.toMatchObject({ code: "invalid_input" });
  });

  test("only the one who was asked can answer, once", async () => {
    const coordination = new Coordination();
    void asks(coordination, a, b);
    const [message] = await read(coordination, b);
    const id = message?.id ?? "";
    expect(() => coordination.answer(c.id, id, "mine")).toThrow(/No message/);
    coordination.answer(b.id, id, "fine");
    expect(() => coordination.answer(b.id, id, "again")).toThrow(/No message/);
  });

  test("COORD-3: a circle of any length is refused to the one who would close it, and the others go on", async () => {
    const coordination = new Coordination();
    const first = asks(coordination, a, b);
    await expect(asks(coordination, b, a)).rejects.toMatchObject({ code: "coordination_cycle" });
    void asks(coordination, b, c);
    await expect(asks(coordination, c, a)).rejects.toMatchObject({ code: "coordination_cycle", message: /a waits for b waits for c/ });
    await expect(asks(coordination, a, a)).rejects.toMatchObject({ code: "invalid_input" });
    const [message] = await read(coordination, b);
    coordination.answer(b.id, message?.id ?? "", "fine");
    expect(await first).toBe("fine");
  });

  test("COORD-3: two that ask each other in the same moment don't both wait", async () => {
    const coordination = new Coordination();
    const record = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    const both = await Promise.allSettled([
      asks(coordination, a, b, { record, timeoutMs: 50 }),
      asks(coordination, b, a, { record, timeoutMs: 50 }),
    ]);
    const codes = both.map((one) => (one.status === "rejected" ? (one.reason as { code: string }).code : "answered"));
    expect(codes).toEqual(["timeout", "coordination_cycle"]);
  });

  test("COORD-3: requests that lead to requests end at a depth", async () => {
    const coordination = new Coordination();
    const chain = Array.from({ length: LIMITS.coordinationDepth + 2 }, (_, index) => party(`deep-${index}`));
    for (const [index, from] of chain.slice(0, -2).entries()) {
      const to = chain[index + 1] ?? from;
      void asks(coordination, from, to);
      expect((await read(coordination, to)).map(({ depth }) => depth)).toEqual([index + 1]);
    }
    await expect(asks(coordination, chain.at(-2) ?? a, chain.at(-1) ?? a)).rejects.toMatchObject({ code: "no_capacity" });
  });

  test("COORD-5: sixteen of a project at once, and another project has sixteen of its own", async () => {
    const coordination = new Coordination();
    for (let pair = 0; pair < 8; pair += 1) void asks(coordination, party(`ask-${pair}`), party(`answer-${pair}`));
    await expect(asks(coordination, a, b)).rejects.toMatchObject({ code: "no_capacity", message: /16 siblings/ });
    const elsewhere = asks(coordination, party("x", "/other"), party("y", "/other"));
    const [message] = await read(coordination, party("y"));
    coordination.answer("sbx-y", message?.id ?? "", "fine");
    expect(await elsewhere).toBe("fine");
    coordination.forget("sbx-ask-0");
    await new Promise((resolve) => setImmediate(resolve));
    const asked = asks(coordination, a, b, { timeoutMs: 20 });
    await expect(asked).rejects.toMatchObject({ code: "timeout" });
  });

  test("no sandbox waits for a sibling that has ended, nor answers one that has gone", async () => {
    const coordination = new Coordination();
    const left = asks(coordination, a, b);
    coordination.forget(b.id);
    await expect(left).rejects.toMatchObject({ code: "not_running" });
    const leaving = new AbortController();
    const gone = asks(coordination, a, c, { signal: leaving.signal });
    const [message] = await read(coordination, c);
    leaving.abort();
    await expect(gone).rejects.toMatchObject({ code: "cancelled" });
    expect(() => coordination.answer(c.id, message?.id ?? "", "late")).toThrow(/No message/);
  });
});

describe("rates", () => {
  test("COORD-3: let a burst through, then as many as refill, for each sandbox alone", () => {
    let now = 0;
    const rates = new Rates({ ask: { burst: 3, perSecond: 2 } }, () => now);
    expect([1, 2, 3, 4].map(() => rates.take("one", "ask"))).toEqual([0, 0, 0, 500]);
    expect(rates.take("other", "ask")).toBe(0);
    now = 500;
    expect([rates.take("one", "ask"), rates.take("one", "ask")]).toEqual([0, 500]);
    now = 60_000;
    expect([1, 2, 3, 4].map(() => rates.take("one", "ask") === 0)).toEqual([true, true, true, false]);
  });
});
