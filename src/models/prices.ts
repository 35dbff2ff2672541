/** What tokens cost. Prices change: the user's own table comes first. */
import type { Price, PricesConfig } from "../schema/model.ts";

export interface Tokens {
  /** Sent, without those of a cache. */
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** Written to a cache that lasts an hour; part of `cacheWrite`. */
  readonly cacheWriteLong: number;
}

export const NO_TOKENS: Tokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0 };

/** Dollars for a million tokens, by the beginning of a model's name. */
const PRICES: Readonly<Record<string, Price>> = {
  "claude-opus-4": { input: 5, output: 25 },
  "claude-opus-4-0": { input: 15, output: 75 },
  "claude-opus-4-1": { input: 15, output: 75 },
  "claude-opus-4-2025": { input: 15, output: 75 },
  "claude-sonnet": { input: 3, output: 15 },
  "claude-3-7-sonnet": { input: 3, output: 15 },
  "claude-3-5-sonnet": { input: 3, output: 15 },
  "claude-haiku": { input: 1, output: 5 },
  "claude-3-5-haiku": { input: 0.8, output: 4 },
  "claude-3-haiku": { input: 0.25, output: 1.25 },
  "gpt-5": { input: 1.25, output: 10 },
  "gpt-5-mini": { input: 0.25, output: 2 },
  "gpt-5-nano": { input: 0.05, output: 0.4 },
  "gpt-5-pro": { input: 15, output: 120 },
  "gpt-4.1": { input: 2, output: 8, cacheRead: 0.5 },
  "gpt-4.1-mini": { input: 0.4, output: 1.6, cacheRead: 0.1 },
  "gpt-4.1-nano": { input: 0.1, output: 0.4, cacheRead: 0.025 },
  "gpt-4o": { input: 2.5, output: 10, cacheRead: 1.25 },
  "gpt-4o-mini": { input: 0.15, output: 0.6, cacheRead: 0.075 },
  o3: { input: 2, output: 8, cacheRead: 0.5 },
  "o4-mini": { input: 1.1, output: 4.4, cacheRead: 0.275 },
  "text-embedding-3-small": { input: 0.02, output: 0 },
  "text-embedding-3-large": { input: 0.13, output: 0 },
};
/** For models that no table knows: rather too much, so that budgets hold. */
const UNKNOWN: Price = { input: 15, output: 75 };

export function priceOf(model: string, own: PricesConfig): Price {
  return longest(model, own) ?? longest(model, PRICES) ?? UNKNOWN;
}

function longest(model: string, table: Readonly<Record<string, Price>>): Price | undefined {
  const [found] = Object.keys(table)
    .filter((beginning) => model.startsWith(beginning))
    .toSorted((one, other) => other.length - one.length);
  return found === undefined ? undefined : table[found];
}

/** Millionths of a dollar: dollars for a million tokens are millionths for one. */
export function costOf({ input, output, cacheRead, cacheWrite, cacheWriteLong }: Tokens, price: Price): number {
  const short = cacheWrite - cacheWriteLong;
  const cost =
    input * price.input +
    output * price.output +
    cacheRead * (price.cacheRead ?? price.input * 0.1) +
    short * (price.cacheWrite ?? price.input * 1.25) +
    cacheWriteLong * price.input * 2;
  return Math.ceil(cost);
}
