/** Reads how many tokens an answer took, from a whole answer or event by event. What an answer claims is a number or it is nothing. */
import type { ModelShape } from "../../base/schema/model.ts";
import { NO_TOKENS, type Tokens } from "./prices.ts";

/** Fewer than there are in most text: rather too many tokens than too few. */
const CHARACTERS_PER_TOKEN = 4;
/** Faster than models write. */
const TOKENS_PER_SECOND = 200;
/** More than any model takes at once: sums stay numbers that can be counted with. */
const MOST_TOKENS = 1e9;
const COUNTS = ["input_tokens", "output_tokens", "prompt_tokens", "completion_tokens", "promptTokenCount", "candidatesTokenCount"];

export class UsageReader {
  readonly #shape: ModelShape;
  #tokens: Tokens = NO_TOKENS;
  #whole = false;
  /** Tokens that what came has at most, where nothing says how many it took. */
  #seen = 0;

  constructor(shape: ModelShape) {
    this.#shape = shape;
  }

  /** A whole answer. */
  answer(value: unknown, characters: number): void {
    this.#seen = Math.ceil(characters / CHARACTERS_PER_TOKEN);
    if (this.#shape !== "gemini") this.#whole = this.#take(at(value, "usage"));
    // A stream that was not asked for as events is a list of what would be events.
    else for (const part of Array.isArray(value) ? (value as unknown[]) : [value]) this.#whole = this.#take(at(part, "usageMetadata"));
  }

  /** One event of a stream. Counts in it are of all before, too. */
  event(value: unknown): void {
    const type = at(value, "type");
    this.#seen += Math.max(
      1,
      Math.ceil(JSON.stringify(at(value, "delta") ?? at(value, "choices") ?? at(value, "candidates") ?? "").length / CHARACTERS_PER_TOKEN),
    );
    if (this.#shape === "anthropic") {
      this.#take(at(at(value, "message"), "usage") ?? at(value, "usage"));
      if (type === "message_stop" || (type === "message_delta" && typeof at(at(value, "delta"), "stop_reason") === "string"))
        this.#whole = true;
      return;
    }
    if (this.#shape === "gemini") {
      const counted = this.#take(at(value, "usageMetadata"));
      if (counted && isLast(value)) this.#whole = true;
      return;
    }
    if (this.#take(at(value, "usage") ?? at(at(value, "response"), "usage"))) this.#whole = true;
  }

  /** Whether the counts are final. */
  get whole(): boolean {
    return this.#whole;
  }

  /**
   * What was used. Of an answer that broke off the provider bills what it had written by then, seen or not: what came of it or what
   * the time is enough for, whichever is more, and never more than was asked for.
   */
  tokens(asked: { readonly inputTokens: number; readonly outputTokens: number }, elapsedMs: number): Tokens {
    if (this.#whole) return this.#tokens;
    const { input, cacheRead, cacheWrite, output } = this.#tokens;
    const known = input + cacheRead + cacheWrite > 0;
    const written = Math.max(this.#seen, Math.ceil((elapsedMs / 1000) * TOKENS_PER_SECOND));
    return { ...this.#tokens, input: known ? input : asked.inputTokens, output: Math.max(output, Math.min(written, asked.outputTokens)) };
  }

  /** Whether there was a count in it. */
  #take(usage: unknown): boolean {
    if (typeof usage !== "object" || usage === null) return false;
    this.#tokens = READERS[this.#shape](usage, this.#tokens);
    return COUNTS.some((name) => count(usage, name) !== undefined);
  }
}

const READERS: Readonly<Record<ModelShape, (usage: object, before: Tokens) => Tokens>> = { anthropic, openai, gemini };

/** The first event has what was sent, later ones what was answered; each may have everything. */
function anthropic(usage: object, before: Tokens): Tokens {
  const cache = at(usage, "cache_creation");
  return {
    input: count(usage, "input_tokens") ?? before.input,
    output: count(usage, "output_tokens") ?? before.output,
    cacheRead: count(usage, "cache_read_input_tokens") ?? before.cacheRead,
    cacheWrite: count(usage, "cache_creation_input_tokens") ?? before.cacheWrite,
    cacheWriteLong: count(cache, "ephemeral_1h_input_tokens") ?? before.cacheWriteLong,
  };
}

/** Chat has prompt and completion, responses input and output; cached tokens are among those sent. */
function openai(usage: object): Tokens {
  const sent = count(usage, "prompt_tokens") ?? count(usage, "input_tokens") ?? 0;
  const details = at(usage, "prompt_tokens_details") ?? at(usage, "input_tokens_details");
  const cached = Math.min(sent, count(details, "cached_tokens") ?? 0);
  const output = count(usage, "completion_tokens") ?? count(usage, "output_tokens") ?? 0;
  return { ...NO_TOKENS, input: sent - cached, output, cacheRead: cached };
}

/** Cached tokens are among those sent, thoughts are not among those answered. Every event has the counts so far. */
function gemini(usage: object, before: Tokens): Tokens {
  const prompt = count(usage, "promptTokenCount");
  const sent = prompt === undefined ? before.input + before.cacheRead : prompt + (count(usage, "toolUsePromptTokenCount") ?? 0);
  const cached = Math.min(sent, count(usage, "cachedContentTokenCount") ?? before.cacheRead);
  const output = (count(usage, "candidatesTokenCount") ?? 0) + (count(usage, "thoughtsTokenCount") ?? 0);
  return { ...NO_TOKENS, input: sent - cached, output: Math.max(output, before.output), cacheRead: cached };
}

/** Of a stream of Gemini: the event that says why it ends. */
function isLast(value: unknown): boolean {
  const candidates = at(value, "candidates");
  const reasons = Array.isArray(candidates) ? candidates.map((one) => at(one, "finishReason")) : [];
  return reasons.some((reason) => typeof reason === "string") || at(at(value, "promptFeedback"), "blockReason") !== undefined;
}

function at(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

function count(value: unknown, name: string): number | undefined {
  const found = at(value, name);
  return typeof found === "number" && found >= 0 && found <= MOST_TOKENS ? Math.floor(found) : undefined;
}
