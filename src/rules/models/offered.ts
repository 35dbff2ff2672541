/**
 * Whether a model API has a model, before anything is started for it. Only a clear no counts: an API without such calls, one that is
 * slow, or a login that may not ask leaves it to the first request of the agent.
 */
import { z } from "zod";
import type { ModelShape } from "../../base/schema/model.ts";
import type { ModelRequest } from "./request.ts";

/** Asks the API; undefined where there was no answer that can be used. */
export type Ask = (request: ModelRequest) => Promise<{ readonly status: number; readonly text: string } | undefined>;

export interface Missing {
  /** What the API said, if anything. */
  readonly words: string | undefined;
  /** Models that it has, those of the nearest names first. */
  readonly others: readonly string[];
}

interface Calls {
  readonly one: (model: string) => string;
  readonly all: string;
  readonly headers: Readonly<Record<string, string>>;
}

const CALLS: Readonly<Record<ModelShape, Calls>> = {
  anthropic: {
    one: (model) => `/v1/models/${model}`,
    all: "/v1/models?limit=1000",
    headers: { "anthropic-version": "2023-06-01" },
  },
  openai: { one: (model) => `/models/${model}`, all: "/models", headers: {} },
  gemini: { one: (model) => `/v1beta/models/${model}`, all: "/v1beta/models?pageSize=1000", headers: {} },
};

const NOT_FOUND = 404;
const SHOWN = 3;
const WORDS_CHARACTERS = 300;
/** Names that can stand in a sentence. */
const NAME = /^[\w.:@/+-]{1,128}$/;
const List = z
  .object({ data: z.array(z.object({ id: z.string() })).optional(), models: z.array(z.object({ name: z.string() })).optional() })
  .transform(({ data = [], models = [] }) => [...data.map(({ id }) => id), ...models.map(({ name }) => name.replace(/^models\//, ""))]);
const Said = z.object({ error: z.object({ message: z.string() }) });

/**
 * What is known of a model that the API does not have; undefined where it has it, or does not say. An API knows further names than its
 * list has, so it is asked for the one; it may have no such call, so its list has to lack the model, too.
 */
export async function missing(shape: ModelShape, model: string, ask: Ask): Promise<Missing | undefined> {
  const { one, all } = CALLS[shape];
  const answer = await ask(get(shape, one(encodeURIComponent(model))));
  if (answer?.status !== NOT_FOUND) return undefined;
  const names = namesIn(await ask(get(shape, all)));
  if (names.length === 0 || names.includes(model)) return undefined;
  return { words: wordsIn(answer.text), others: nearest(model, names) };
}

/** The sentence in an error of any of the APIs. */
export function wordsIn(text: string): string | undefined {
  const said = Said.safeParse(parsed(text));
  const words = said.data?.error.message
    .replaceAll(/[\s\p{Cc}]+/gu, " ")
    .trim()
    .slice(0, WORDS_CHARACTERS);
  return words === "" ? undefined : words;
}

function get(shape: ModelShape, path: string): ModelRequest {
  const headers = { ...CALLS[shape].headers, accept: "application/json", "accept-encoding": "identity" };
  return { method: "GET", path, headers, body: undefined, billed: undefined, hideUsage: false };
}

function namesIn(answer: Awaited<ReturnType<Ask>>): string[] {
  if (answer === undefined || answer.status !== 200) return [];
  return (List.safeParse(parsed(answer.text)).data ?? []).filter((name) => NAME.test(name));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Those that begin as it does for longest. */
function nearest(model: string, names: readonly string[]): string[] {
  const shared = (name: string): number => {
    const at = name.split("").findIndex((character, index) => character !== model[index]);
    return at < 0 ? name.length : at;
  };
  return [...new Set(names)].toSorted((one, other) => shared(other) - shared(one) || other.localeCompare(one)).slice(0, SHOWN);
}
