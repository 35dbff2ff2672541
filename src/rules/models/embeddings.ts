/** The call for vectors of texts, and what of its answer can be believed. */
import { z } from "zod";
import type { MaximumCost, ModelRequest } from "./request.ts";
import { Refusal } from "./refusal.ts";

/** Code has about this many characters in a token: rather too many tokens than too few. */
const CHARACTERS_PER_TOKEN = 3;

const Answer = z.object({ data: z.array(z.object({ index: z.int().min(0), embedding: z.array(z.number()).min(1).max(8192) })) });

export function embeddingRequest(model: string, texts: readonly string[]): ModelRequest & { readonly billed: MaximumCost } {
  // An API refuses an empty text, and JSON half a character.
  const input = texts.map((text) => (text.trim() === "" ? "-" : text.toWellFormed()));
  const body = Buffer.from(JSON.stringify({ model, input, encoding_format: "float" }));
  const inputTokens = Math.ceil(body.length / CHARACTERS_PER_TOKEN);
  return {
    method: "POST",
    path: "/embeddings",
    headers: { "content-type": "application/json", "accept-encoding": "identity" },
    body,
    billed: { model, inputTokens, outputTokens: 0, factor: 1, streamed: false },
    hideUsage: false,
  };
}

/** One vector for each text, all of one length. */
export function vectorsIn(answer: unknown, texts: number): number[][] {
  const parsed = Answer.safeParse(answer);
  const vectors = (parsed.data?.data ?? []).toSorted((one, other) => one.index - other.index).map(({ embedding }) => embedding);
  const isWhole = vectors.length === texts && vectors.every(({ length }) => length === vectors[0]?.length);
  if (!isWhole) throw new Refusal("provider_unusable", "The model API gave no vector for each text.");
  return vectors;
}
