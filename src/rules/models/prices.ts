/** What tokens cost. Prices change: the user's own table comes first. */
import type { Price, PricesConfig } from "../../base/schema/model.ts";

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

/** A price with what raises it. */
export interface Rate extends Price {
  /** Long requests cost twice for what is sent, and half as much again for what is answered. */
  readonly long?: boolean;
  /** How many times as much a faster tier costs. */
  readonly factor?: number;
}

const LONG_TOKENS = 200_000;

/** Dollars for a million tokens, as the providers' pages said in November 2026; docs/MODELS.md names the date, too. */
const PRICES: Readonly<Record<string, Rate>> = {
  "claude-fable-5": { input: 10, output: 50 },
  "claude-fable-5-1": { input: 10, output: 50 },
  "claude-mythos-5": { input: 10, output: 50 },
  "claude-mythos-5-1": { input: 10, output: 50 },
  "claude-opus-5-5": { input: 4, output: 20 },
  "claude-opus-5": { input: 5, output: 25 },
  "claude-opus-4-8": { input: 5, output: 25 },
  "claude-opus-4-7": { input: 5, output: 25 },
  "claude-opus-4-6": { input: 5, output: 25, long: true },
  "claude-opus-4-5": { input: 5, output: 25 },
  "claude-opus-4-1": { input: 15, output: 75 },
  "claude-opus-4-0": { input: 15, output: 75 },
  "claude-opus-4": { input: 15, output: 75 },
  "claude-3-opus": { input: 15, output: 75 },
  "claude-sonnet-5-5": { input: 2, output: 10 },
  "claude-sonnet-5": { input: 2, output: 10 },
  "claude-sonnet-4-6": { input: 3, output: 15, long: true },
  "claude-sonnet-4-5": { input: 3, output: 15, long: true },
  "claude-sonnet-4-0": { input: 3, output: 15, long: true },
  "claude-sonnet-4": { input: 3, output: 15, long: true },
  "claude-3-7-sonnet": { input: 3, output: 15 },
  "claude-3-5-sonnet": { input: 3, output: 15 },
  // The price of its longer requests: shorter ones cost less.
  "claude-haiku-5-5": { input: 0.5, output: 2.5 },
  "claude-haiku-4-5": { input: 1, output: 5 },
  "claude-3-5-haiku": { input: 0.8, output: 4 },
  "claude-3-haiku": { input: 0.25, output: 1.25 },
  "gpt-6-astra": { input: 10, output: 50, long: true },
  "gpt-6.1-sol": { input: 2, output: 10, long: true },
  "gpt-6-sol": { input: 2, output: 10, long: true },
  "gpt-6-luna": { input: 0.1, output: 0.5, long: true },
  "gpt-5.6": { input: 4, output: 20, long: true },
  "gpt-5.6-sol": { input: 4, output: 20, long: true },
  "gpt-5.6-terra": { input: 2, output: 12, long: true },
  "gpt-5.6-luna": { input: 0.2, output: 1.2, long: true },
  "gpt-5.5": { input: 5, output: 30, long: true },
  "gpt-5.5-pro": { input: 30, output: 180, long: true, cacheRead: 30 },
  "gpt-5.4": { input: 2.5, output: 15, long: true },
  "gpt-5.4-mini": { input: 0.75, output: 4.5, long: true },
  "gpt-5.4-nano": { input: 0.2, output: 1.25, long: true },
  "gpt-5.4-pro": { input: 30, output: 180, long: true, cacheRead: 30 },
  "gpt-5.2": { input: 1.75, output: 14 },
  "gpt-5.2-codex": { input: 1.75, output: 14 },
  "gpt-5.2-pro": { input: 21, output: 168, cacheRead: 21 },
  "gpt-5.1": { input: 1.25, output: 10 },
  "gpt-5.1-codex": { input: 1.25, output: 10 },
  "gpt-5.1-codex-max": { input: 1.25, output: 10 },
  "gpt-5.1-codex-mini": { input: 0.25, output: 2 },
  "gpt-5": { input: 1.25, output: 10 },
  "gpt-5-codex": { input: 1.25, output: 10 },
  "gpt-5-mini": { input: 0.25, output: 2 },
  "gpt-5-nano": { input: 0.05, output: 0.4 },
  "gpt-5-pro": { input: 15, output: 120, cacheRead: 15 },
  "gpt-4.1": { input: 2, output: 8, cacheRead: 0.5 },
  "gpt-4.1-mini": { input: 0.4, output: 1.6, cacheRead: 0.1 },
  "gpt-4.1-nano": { input: 0.1, output: 0.4, cacheRead: 0.025 },
  "gpt-4o": { input: 2.5, output: 10, cacheRead: 1.25 },
  "gpt-4o-mini": { input: 0.15, output: 0.6, cacheRead: 0.075 },
  o1: { input: 15, output: 60, cacheRead: 7.5 },
  "o1-pro": { input: 150, output: 600, cacheRead: 150 },
  o3: { input: 2, output: 8, cacheRead: 0.5 },
  "o3-mini": { input: 1.1, output: 4.4, cacheRead: 0.55 },
  "o3-pro": { input: 20, output: 80, cacheRead: 20 },
  "o4-mini": { input: 1.1, output: 4.4, cacheRead: 0.275 },
  // Google's lower prices of 2026 for newer models are not counted with: they end with the year.
  "gemini-4-argon": { input: 4, output: 20, cacheRead: 0.2 },
  "gemini-3.8-flash": { input: 1.5, output: 7.5 },
  "gemini-3.5-flash": { input: 1.5, output: 9 },
  "gemini-3.5-flash-lite": { input: 0.3, output: 2.5 },
  "gemini-3.1-pro-preview": { input: 2, output: 12, long: true },
  "gemini-3.1-pro-preview-customtools": { input: 2, output: 12, long: true },
  "gemini-3.1-flash-lite": { input: 0.25, output: 1.5 },
  "gemini-3-flash-preview": { input: 0.5, output: 3 },
  "gemini-2.5-pro": { input: 1.25, output: 10, long: true },
  "gemini-2.5-flash": { input: 0.3, output: 2.5 },
  "gemini-2.5-flash-lite": { input: 0.1, output: 0.4 },
  "text-embedding-3-small": { input: 0.02, output: 0 },
  "text-embedding-3-large": { input: 0.13, output: 0 },
};

/** Further parts of a name that mean the same model: a date, or that it is the latest. */
const SAME_MODEL = /^(-\d{4}-\d{2}-\d{2}|-\d{8}|-latest|-chat-latest|@\d{8})?$/;

/** For models that no table knows, the dearest that any of them costs: budgets hold, whatever it is. */
export const UNKNOWN: Rate = {
  input: Math.max(...Object.values(PRICES).map(({ input }) => input)),
  output: Math.max(...Object.values(PRICES).map(({ output }) => output)),
};

export function priceOf(model: string, own: PricesConfig): Rate {
  return longest(model, own) ?? builtIn(model) ?? UNKNOWN;
}

/** Whether the user gave it a price: then it is meant to be there. */
export function hasOwnPrice(model: string, own: PricesConfig): boolean {
  return longest(model, own) !== undefined;
}

/** A name that only begins like a known one may cost many times as much: gpt-5 and gpt-5.5-pro. */
function builtIn(model: string): Rate | undefined {
  const [found] = Object.entries(PRICES).filter(([name]) => model.startsWith(name) && SAME_MODEL.test(model.slice(name.length)));
  return found?.[1];
}

function longest(model: string, table: PricesConfig): Price | undefined {
  const [found] = Object.keys(table)
    .filter((beginning) => model.startsWith(beginning))
    .toSorted((one, other) => other.length - one.length);
  return found === undefined ? undefined : table[found];
}

/** Millionths of a dollar: dollars for a million tokens are millionths for one. */
export function costOf({ input, output, cacheRead, cacheWrite, cacheWriteLong }: Tokens, price: Rate): number {
  const short = cacheWrite - cacheWriteLong;
  const sent =
    input * price.input +
    cacheRead * (price.cacheRead ?? price.input * 0.1) +
    short * (price.cacheWrite ?? price.input * 1.25) +
    cacheWriteLong * price.input * 2;
  const isLong = price.long === true && input + cacheRead + cacheWrite > LONG_TOKENS;
  const cost = isLong ? sent * 2 + output * price.output * 1.5 : sent + output * price.output;
  return Math.ceil(cost * (price.factor ?? 1));
}
