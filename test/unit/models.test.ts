/** NET-5: what an answer of a model took, and what it costs. */
import { describe, expect, test } from "vitest";
import { dataOf, EventSplitter } from "../../src/models/events.ts";
import { costOf, NO_TOKENS, priceOf } from "../../src/models/prices.ts";
import { providersOf } from "../../src/models/providers.ts";
import { UsageReader } from "../../src/models/usage.ts";

describe("prices", () => {
  test("are found by the longest beginning of a name, the user's own before the built-in ones", () => {
    expect(priceOf("claude-opus-4-5-20251101", {})).toEqual({ input: 5, output: 25 });
    expect(priceOf("claude-opus-4-1-20250805", {})).toEqual({ input: 15, output: 75 });
    expect(priceOf("gpt-5-mini-2025-08-07", {})).toMatchObject({ input: 0.25 });
    expect(priceOf("gpt-5-mini", { gpt: { input: 7, output: 9 } })).toEqual({ input: 7, output: 9 });
  });

  test("of a model that nobody knows are high, so that budgets hold", () => {
    expect(priceOf("something-new", {}).output).toBeGreaterThan(20);
  });

  test("are counted in millionths of a dollar, caches apart", () => {
    const tokens = { input: 1000, output: 500, cacheRead: 2000, cacheWrite: 300, cacheWriteLong: 100 };
    // 1000 * 3 + 500 * 15 + 2000 * 0.3 + 200 * 3.75 + 100 * 6
    expect(costOf(tokens, { input: 3, output: 15 })).toBe(12_450);
    expect(costOf({ ...NO_TOKENS, input: 1 }, { input: 0.1, output: 0 })).toBe(1);
  });
});

describe("the use of a model", () => {
  test("is read from whole answers of all three kinds", () => {
    const anthropic = new UsageReader("anthropic");
    anthropic.answer({ usage: { input_tokens: 10, output_tokens: 5, cache_read_input_tokens: 3, cache_creation_input_tokens: 2 } });
    expect(anthropic.tokens(99)).toEqual({ input: 10, output: 5, cacheRead: 3, cacheWrite: 2, cacheWriteLong: 0 });
    const chat = new UsageReader("openai");
    chat.answer({ usage: { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 4 } } });
    expect(chat.tokens(99)).toEqual({ ...NO_TOKENS, input: 6, output: 5, cacheRead: 4 });
    const responses = new UsageReader("openai");
    responses.answer({ usage: { input_tokens: 10, output_tokens: 5, input_tokens_details: { cached_tokens: 4 } } });
    expect(responses.tokens(99)).toEqual({ ...NO_TOKENS, input: 6, output: 5, cacheRead: 4 });
  });

  test("is read from streams, where later events complete earlier ones", () => {
    const anthropic = new UsageReader("anthropic");
    anthropic.event({ type: "message_start", message: { usage: { input_tokens: 10, output_tokens: 1 } } });
    anthropic.event({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 7 } });
    expect(anthropic.tokens(99)).toEqual({ ...NO_TOKENS, input: 10, output: 7 });
    const responses = new UsageReader("openai");
    responses.event({ type: "response.completed", response: { usage: { input_tokens: 10, output_tokens: 5 } } });
    expect(responses.tokens(99)).toEqual({ ...NO_TOKENS, input: 10, output: 5 });
  });

  test("of a stream that broke off is estimated, never nothing", () => {
    const chat = new UsageReader("openai");
    for (let piece = 0; piece < 20; piece += 1) chat.event({ choices: [{ delta: { content: "x" } }], usage: null });
    expect(chat.tokens(99)).toEqual({ ...NO_TOKENS, input: 99, output: 20 });
  });

  test("that is no number counts as unknown", () => {
    const reader = new UsageReader("anthropic");
    reader.answer({ usage: { input_tokens: -5, output_tokens: "many" } });
    expect(reader.tokens(99)).toEqual(NO_TOKENS);
    const none = new UsageReader("openai");
    none.answer("nothing");
    expect(none.tokens(99)).toMatchObject({ input: 99 });
  });
});

describe("events of a stream", () => {
  test("come out whole, however they are cut", () => {
    const bytes = Buffer.from('event: a\ndata: {"text":"grün"}\n\ndata: [DONE]\r\n\r\nrest');
    const splitter = new EventSplitter(1000);
    const events = [...bytes].flatMap((byte) => splitter.add(Uint8Array.of(byte)) ?? []);
    expect(events).toEqual(['event: a\ndata: {"text":"grün"}\n\n', "data: [DONE]\r\n\r\n"]);
    expect(events.map(dataOf)).toEqual([{ text: "grün" }, undefined]);
    expect(splitter.rest).toBe("rest");
  });

  test("that never end are refused", () => {
    expect(new EventSplitter(10).add(Buffer.from("data: a very long event"))).toBeUndefined();
  });
});

describe("providers", () => {
  test("SC-06: a key goes over plain HTTP to loopback alone", () => {
    expect(() => providersOf({ gate: { url: "http://gate.example.com", secret: "key" } })).toThrow(/https/);
    expect(providersOf({ gate: { url: "http://127.0.0.1:9", secret: "key" } }).size).toBe(1);
    expect(providersOf({ anthropic: { secret: "key" } }).get("anthropic")).toMatchObject({ shape: "anthropic" });
    expect(() => providersOf({ gate: { secret: "key" } })).toThrow(/no url/);
  });
});
