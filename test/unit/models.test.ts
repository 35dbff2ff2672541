/** NET-5: what an answer of a model took, and what it costs. */
import { describe, expect, test } from "vitest";
import { dataOf, EventSplitter } from "../../src/rules/models/events.ts";
import { costOf, NO_TOKENS, priceOf, UNKNOWN } from "../../src/rules/models/prices.ts";
import { providersOf } from "../../src/rules/models/providers.ts";
import { UsageReader } from "../../src/rules/models/usage.ts";
import { ANTHROPIC_OVERLOADED, ANTHROPIC_STREAM, CHAT_STREAM, RESPONSES_INCOMPLETE, RESPONSES_STREAM } from "../support/model-streams.ts";

const ASKED = { inputTokens: 99, outputTokens: 1000 };

describe("prices", () => {
  test("are found by name and date, the user's own before the built-in ones by the longest beginning", () => {
    expect(priceOf("claude-opus-4-5-20251101", {})).toEqual({ input: 5, output: 25 });
    expect(priceOf("claude-opus-4-1-20250805", {})).toEqual({ input: 15, output: 75 });
    expect(priceOf("claude-opus-4-20250514", {})).toEqual({ input: 15, output: 75 });
    expect(priceOf("claude-3-5-haiku-latest", {})).toEqual({ input: 0.8, output: 4 });
    expect(priceOf("gpt-5-mini-2025-08-07", {})).toMatchObject({ input: 0.25 });
    expect(priceOf("gemini-3.1-pro-preview", {})).toEqual({ input: 2, output: 12, long: true });
    expect(priceOf("gemini-2.5-flash-lite", {})).toEqual({ input: 0.1, output: 0.4 });
    expect(priceOf("gpt-5-mini", { gpt: { input: 7, output: 9 }, "gpt-5": { input: 6, output: 8 } })).toEqual({ input: 6, output: 8 });
  });

  test("NET-5: of an unknown model are the dearest of all, also when its name begins like a cheap one", () => {
    expect(UNKNOWN).toEqual({ input: 150, output: 600 });
    for (const model of ["something-new", "gpt-5-max", "gpt-5.9-pro", "o3-deep", "claude-haiku-9", "gpt-4o-audio", ""])
      expect(priceOf(model, {}), model).toEqual(UNKNOWN);
    expect(priceOf("local-7b", { local: { input: 0, output: 0 } })).toEqual({ input: 0, output: 0 });
  });

  test("of long requests and faster tiers are higher", () => {
    const price = priceOf("gpt-5.5", {});
    expect(costOf({ ...NO_TOKENS, input: 200_000, output: 1000 }, price)).toBe(200_000 * 5 + 1000 * 30);
    expect(costOf({ ...NO_TOKENS, input: 150_000, cacheRead: 60_000, output: 1000 }, price)).toBe(
      2 * (150_000 * 5 + 60_000 * 0.5) + 1000 * 45,
    );
    expect(costOf({ ...NO_TOKENS, output: 1000 }, { ...price, factor: 2.5 })).toBe(75_000);
  });

  test("are counted in millionths of a dollar, caches apart", () => {
    const tokens = { input: 1000, output: 500, cacheRead: 2000, cacheWrite: 300, cacheWriteLong: 100 };
    // 1000 * 3 + 500 * 15 + 2000 * 0.3 + 200 * 3.75 + 100 * 6
    expect(costOf(tokens, { input: 3, output: 15 })).toBe(12_450);
    expect(costOf({ ...NO_TOKENS, input: 1 }, { input: 0.1, output: 0 })).toBe(1);
  });
});

describe("the use of a model", () => {
  test("is read from Gemini's answers: whole, as events, and as a list of what would be events", () => {
    const first = { candidates: [{ content: { parts: [{ text: "hel" }] } }], usageMetadata: { promptTokenCount: 10 } };
    const last = {
      candidates: [{ content: { parts: [{ text: "lo" }] }, finishReason: "STOP" }],
      usageMetadata: {
        promptTokenCount: 10,
        toolUsePromptTokenCount: 6,
        cachedContentTokenCount: 4,
        candidatesTokenCount: 5,
        thoughtsTokenCount: 7,
      },
    };
    const took = { ...NO_TOKENS, input: 12, output: 12, cacheRead: 4 };
    const [whole, events, list, cut] = Array.from({ length: 4 }, () => new UsageReader("gemini")) as [
      UsageReader,
      UsageReader,
      UsageReader,
      UsageReader,
    ];
    whole.answer(last, 40);
    for (const event of [first, last]) events.event(event);
    list.answer([first, last], 80);
    for (const reader of [whole, events, list]) expect(reader.tokens(ASKED, 9e9)).toEqual(took);
    cut.event(first);
    expect(cut.whole).toBe(false);
    expect(cut.tokens(ASKED, 1000)).toEqual({ ...NO_TOKENS, input: 10, output: 200 });
  });

  test("is read from whole answers of all three kinds", () => {
    const anthropic = new UsageReader("anthropic");
    anthropic.answer({ usage: { input_tokens: 10, output_tokens: 5, cache_read_input_tokens: 3, cache_creation_input_tokens: 2 } }, 40);
    expect(anthropic.tokens(ASKED, 0)).toEqual({ input: 10, output: 5, cacheRead: 3, cacheWrite: 2, cacheWriteLong: 0 });
    const chat = new UsageReader("openai");
    chat.answer({ usage: { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 4 } } }, 40);
    expect(chat.tokens(ASKED, 0)).toEqual({ ...NO_TOKENS, input: 6, output: 5, cacheRead: 4 });
    const responses = new UsageReader("openai");
    responses.answer({ usage: { input_tokens: 10, output_tokens: 5, input_tokens_details: { cached_tokens: 4 } } }, 40);
    expect(responses.tokens(ASKED, 0)).toEqual({ ...NO_TOKENS, input: 6, output: 5, cacheRead: 4 });
  });

  test("is read from streams, where later events complete earlier ones", () => {
    const anthropic = new UsageReader("anthropic");
    anthropic.event({ type: "message_start", message: { usage: { input_tokens: 10, output_tokens: 1 } } });
    anthropic.event({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 7 } });
    expect(anthropic.tokens(ASKED, 0)).toEqual({ ...NO_TOKENS, input: 10, output: 7 });
    const responses = new UsageReader("openai");
    responses.event({ type: "response.completed", response: { usage: { input_tokens: 10, output_tokens: 5 } } });
    expect(responses.tokens(ASKED, 0)).toEqual({ ...NO_TOKENS, input: 10, output: 5 });
  });

  test("of a stream that broke off is estimated, never nothing", () => {
    const chat = new UsageReader("openai");
    for (let piece = 0; piece < 20; piece += 1) chat.event({ choices: [{ delta: { content: "x" } }], usage: null });
    const { input, output } = chat.tokens(ASKED, 0);
    expect(input).toBe(99);
    expect(output).toBeGreaterThanOrEqual(20);
  });

  test("NET-5: of an answer that was cut off is what the time was enough for, and never more than was asked for", () => {
    const hidden = new UsageReader("openai");
    expect(hidden.tokens(ASKED, 1000)).toEqual({ ...NO_TOKENS, input: 99, output: 200 });
    expect(hidden.tokens(ASKED, 60_000)).toEqual({ ...NO_TOKENS, input: 99, output: 1000 });
  });

  test("that is no number counts as unknown", () => {
    const reader = new UsageReader("anthropic");
    reader.answer({ usage: { input_tokens: -5, output_tokens: "many" } }, 400);
    expect(reader.tokens(ASKED, 0)).toEqual({ ...NO_TOKENS, input: 99, output: 100 });
    const none = new UsageReader("openai");
    none.answer("nothing", 9);
    expect(none.tokens(ASKED, 0)).toMatchObject({ input: 99, output: 3 });
  });
});

describe("streams as they come over the wire", () => {
  const read = (shape: "anthropic" | "openai", stream: string, piece: number): UsageReader => {
    const [splitter, usage, bytes] = [new EventSplitter(100_000), new UsageReader(shape), Buffer.from(stream)];
    for (let at = 0; at < bytes.length; at += piece)
      for (const event of splitter.add(bytes.subarray(at, at + piece)) ?? []) {
        const data = dataOf(event);
        if (data !== undefined) usage.event(data);
      }
    return usage;
  };

  test.each([1, 7, 100, 100_000])("NET-5: tell what they took, in pieces of %i bytes", (piece) => {
    expect(read("anthropic", ANTHROPIC_STREAM, piece).tokens(ASKED, 9e9)).toEqual({
      input: 472,
      output: 89,
      cacheRead: 30_000,
      cacheWrite: 1200,
      cacheWriteLong: 200,
    });
    expect(read("openai", CHAT_STREAM, piece).tokens(ASKED, 9e9)).toEqual({ ...NO_TOKENS, input: 93, output: 446, cacheRead: 1024 });
    for (const stream of [RESPONSES_STREAM, RESPONSES_INCOMPLETE])
      expect(read("openai", stream, piece).tokens(ASKED, 9e9)).toEqual({ ...NO_TOKENS, input: 200, output: 52, cacheRead: 128 });
  });

  test("NET-5: that end with an error have what was sent, and what was answered so far", () => {
    const usage = read("anthropic", ANTHROPIC_OVERLOADED, 50);
    expect(usage.whole).toBe(false);
    expect(usage.tokens(ASKED, 0)).toMatchObject({ input: 472 });
    expect(usage.tokens(ASKED, 0).output).toBeGreaterThanOrEqual(2);
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
    expect(providersOf({ gemini: { secret: "key" } }).get("gemini")).toMatchObject({ shape: "gemini" });
    expect(() => providersOf({ gate: { secret: "key" } })).toThrow(/no url/);
  });
});
