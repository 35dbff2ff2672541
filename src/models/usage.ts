/** Reads how many tokens an answer took, from a whole answer or event by event. What an answer claims is a number or it is nothing. */
import type { ModelShape } from "../schema/model.ts";
import { NO_TOKENS, type Tokens } from "./prices.ts";

export class UsageReader {
  readonly #shape: ModelShape;
  #tokens: Tokens = NO_TOKENS;
  #whole = false;
  /** Pieces of an answer: about a token each. */
  #pieces = 0;

  constructor(shape: ModelShape) {
    this.#shape = shape;
  }

  /** A whole answer. */
  answer(value: unknown): void {
    this.#take(at(value, "usage"));
    this.#whole = at(value, "usage") !== undefined;
  }

  /** One event of a stream. Counts in it are of all before, too. */
  event(value: unknown): void {
    const type = at(value, "type");
    this.#pieces += 1;
    if (this.#shape === "anthropic") {
      this.#take(at(at(value, "message"), "usage") ?? at(value, "usage"));
      if (type === "message_stop" || (type === "message_delta" && at(at(value, "delta"), "stop_reason") !== undefined)) this.#whole = true;
      return;
    }
    const usage = at(value, "usage") ?? at(at(value, "response"), "usage");
    if (typeof usage !== "object" || usage === null) return;
    this.#take(usage);
    this.#whole = true;
  }

  /** Whether the counts are final. */
  get whole(): boolean {
    return this.#whole;
  }

  /** What was used; what an answer that broke off did not say is taken from the request and what came. */
  tokens(estimatedInput: number): Tokens {
    if (this.#whole) return this.#tokens;
    const { input, cacheRead, cacheWrite } = this.#tokens;
    const known = input + cacheRead + cacheWrite > 0;
    return { ...this.#tokens, input: known ? input : estimatedInput, output: Math.max(this.#tokens.output, this.#pieces) };
  }

  #take(usage: unknown): void {
    if (typeof usage !== "object" || usage === null) return;
    this.#tokens = this.#shape === "anthropic" ? anthropic(usage, this.#tokens) : openai(usage);
  }
}

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

function at(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

function count(value: unknown, name: string): number | undefined {
  const found = at(value, name);
  return typeof found === "number" && Number.isFinite(found) && found >= 0 ? Math.floor(found) : undefined;
}
